#include "core/model/weight_groups.h"

#include <set>

#include "core/base/text.h"
#include "core/model/parameters.h"
#include "tests/support/catch.h"
#include "tests/support/model_variants.h"

namespace forge::model {
namespace {

/// What the model itself knows of a weight.
WeightGroup expected(const Parameter& parameter) {
  if (parameter.part == "embedding") return WeightGroup::embeddings;
  if (parameter.part == "lm_head") return WeightGroup::head;
  if (parameter.is_matrix) return WeightGroup::matrices;
  if (parameter.part == "norm" || parameter.part == "qk_norm") return WeightGroup::norms;
  const bool is_canon = starts_with(parameter.part, "canon_") || parameter.part == "short_conv";
  return is_canon ? WeightGroup::canon : WeightGroup::vectors;
}

TEST_CASE("names and shapes tell the groups of every kind of model") {
  std::set<WeightGroup> seen;
  for (const tests::ModelVariant& variant : tests::all_variants()) {
    for (const Parameter& parameter : parameters(tests::model_of(variant.change))) {
      INFO(parameter.name << " of " << parameter.part);
      const WeightGroup group = group_of(parameter.name, parameter.shape);
      CHECK(schema::name_of(group) == schema::name_of(expected(parameter)));
      seen.insert(group);
    }
  }
  CHECK(seen.size() == names_of(WeightGroup()).size());
}

TEST_CASE("weights that no kind of forge's has are vectors or matrices") {
  CHECK(group_of("model.layers.0.my_mixer.shift", {8}) == WeightGroup::vectors);
  CHECK(group_of("model.layers.0.my_mixer.out.bias", {8}) == WeightGroup::vectors);
  CHECK(group_of("model.layers.0.my_mixer.taps", {8, 1, 4}) == WeightGroup::vectors);
  CHECK(group_of("model.layers.0.my_mixer.out.weight", {8, 4}) == WeightGroup::matrices);
  CHECK(group_of("weight", {8}) == WeightGroup::vectors);
}

}  // namespace
}  // namespace forge::model

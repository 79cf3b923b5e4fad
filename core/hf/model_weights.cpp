#include "core/hf/model_weights.h"

#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/model/parameters.h"
#include "core/weights/convert.h"
#include "core/weights/dtype.h"

namespace forge::hf {
namespace {

constexpr size_t names_shown = 4;

std::string shape_text(const std::vector<int64_t>& shape) {
  std::vector<std::string> sizes;
  for (const int64_t size : shape) sizes.push_back(std::to_string(size));
  return "[" + join(sizes, ", ") + "]";
}

/// "missing 3: 'a', 'b', 'c'", or "" where there are none.
std::string listed(const std::string& what, const std::vector<std::string>& items) {
  if (items.empty()) return "";
  const size_t shown = std::min(items.size(), names_shown);
  const std::vector<std::string> first(items.begin(), items.begin() + static_cast<long>(shown));
  return what + " " + std::to_string(items.size()) + ": " + join(first, ", ") +
         (items.size() > shown ? ", …" : "");
}

bool is_set_aside(const std::string& name, const config::ModelConfig& model) {
  return ends_with(name, "rotary_emb.inv_freq") ||
         (model.tie_embeddings && name == "lm_head.weight");
}

std::string hint_for(const std::vector<std::string>& missing,
                     const std::vector<std::string>& unexpected) {
  if (missing.size() == 1 && missing[0] == "'lm_head.weight'") {
    return "a model whose embeddings are tied says so with tie_word_embeddings";
  }
  for (const std::string& name : unexpected) {
    if (ends_with(name, ".bias'")) return "forge's layers have no bias";
  }
  return "";
}

}  // namespace

std::map<std::string, weights::TensorView> model_weights(
    const config::ModelConfig& model, const std::map<std::string, weights::TensorView>& tensors) {
  std::map<std::string, weights::TensorView> weights;
  std::vector<std::string> missing, misshapen, not_floating, unexpected;
  for (const model::Parameter& parameter : model::parameters(model)) {
    const auto found = tensors.find(parameter.name);
    if (found == tensors.end()) {
      missing.push_back("'" + parameter.name + "'");
      continue;
    }
    const weights::TensorView& tensor = found->second;
    weights[parameter.name] = tensor;
    if (tensor.shape != parameter.shape) {
      misshapen.push_back("'" + parameter.name + "' " + shape_text(tensor.shape) + " instead of " +
                          shape_text(parameter.shape));
    } else if (!weights::is_floating(tensor.dtype)) {
      not_floating.push_back("'" + parameter.name + "' " + weights::name_of(tensor.dtype));
    }
  }
  for (const auto& [name, tensor] : tensors) {
    if (weights.count(name) == 0 && !is_set_aside(name, model)) {
      unexpected.push_back("'" + name + "'");
    }
  }
  std::vector<std::string> faults;
  for (const std::string& fault : {listed("missing", missing),
                                   listed("of another shape", misshapen),
                                   listed("no floating-point numbers", not_floating),
                                   listed("unexpected", unexpected)}) {
    if (!fault.empty()) faults.push_back(fault);
  }
  if (faults.empty()) return weights;
  throw Error("the weights are not those of the model; " + join(faults, "; "),
              {},
              hint_for(missing, unexpected));
}

}  // namespace forge::hf

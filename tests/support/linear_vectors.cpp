#include "tests/support/linear_vectors.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/model/kinds.h"
#include "core/model/weights/model_files.h"
#include "core/model/weights/release_names.h"
#include "tests/support/support.h"
#include "tests/support/vector_case.h"

namespace forge::tests {
namespace {

using nlohmann::json;

void require_value(const json& config, const char* key, const json& value) {
  if (config.at(key) == value) return;
  throw Error(std::string("the case's '") + key + "' is " + config.at(key).dump() +
              ", which forge does not read");
}

model::ModelConfig model_of_case(const json& config) {
  const std::string family = config.at("family");
  const int heads = config.at("n_heads");
  model::ModelConfig model;
  model.layers = {family};
  model.vocab_size = config.at("vocab_size");
  model.hidden_size = config.at("hidden_size");
  model.num_layers = config.at("n_layers");
  model.mlp.intermediate_size = config.at("intermediate_size");
  model.norm.eps = config.at("eps");
  // As the released code reads it: a letter is there or not.
  const std::string letters = config.at("canon_set");
  for (const char letter : std::string("AbBCD")) {
    if (letters.find(letter) != std::string::npos) model.canon.set += letter;
  }
  model.gla5.num_heads = model.gdn2.num_heads = model.mamba2.num_heads = heads;
  model.gla5.expand_k = model.gdn2.expand_k = config.at("expand_k");
  model.gla5.expand_v = model.gdn2.expand_v = config.at("expand_v");
  model.gla5.gate_rank = config.at("gate_low_rank_dim");
  model.gla5.gate_normalizer = config.at("gate_logit_normalizer");
  model.gla5.output_gate_rank = model.gdn2.output_gate_rank = config.at("output_gate_rank");
  model.mamba2.state_size = config.at("state");
  require_value(config, "n_groups", 1);
  if (family != "gla5") model.gla5 = {};
  if (family != "gdn2") model.gdn2 = {};
  if (family != "mamba2") model.mamba2 = {};
  model::complete_model(model);
  return model;
}

/// Every number of an array, whatever it is nested in.
void append_numbers(const json& array, std::vector<float>& values) {
  for (const json& item : array) {
    if (item.is_array()) {
      append_numbers(item, values);
    } else {
      values.push_back(item.get<float>());
    }
  }
}

constexpr const char* ending = "_cases.json";

/// Those of vectors_dir(); of a folder that has none, of tests/vectors.
std::vector<fs::path> case_files() {
  std::vector<fs::path> files;
  for (const fs::path& folder : {vectors_dir(), tests_dir() / "vectors"}) {
    for (const fs::path& file : folder_entries(folder)) {
      if (ends_with(file.filename().string(), ending)) files.push_back(file);
    }
    if (!files.empty()) break;
  }
  return files;
}

std::vector<float> floats_of(const weights::TensorView& view) {
  const auto* first = reinterpret_cast<const float*>(view.data);
  return {first, first + view.bytes / sizeof(float)};
}

}  // namespace

LinearWeights::LinearWeights(const json& file) {
  for (const auto& [name, shape] : file.at("shapes").items()) {
    shapes_[name] = shape.get<std::vector<int64_t>>();
    append_numbers(file.at("data").at(name), values_[name]);
  }
}

std::map<std::string, weights::TensorView> LinearWeights::views(const json& names) const {
  std::map<std::string, weights::TensorView> views;
  for (const json& name : names) {
    const std::vector<float>& values = values_.at(name);
    views[name] = {weights::Dtype::f32,
                   shapes_.at(name),
                   reinterpret_cast<const std::byte*>(values.data()),
                   values.size() * sizeof(float)};
  }
  return views;
}

std::vector<LinearCase> linear_cases() {
  std::vector<LinearCase> cases;
  for (const fs::path& file : case_files()) {
    const std::string name = file.filename().string();
    const std::string stem = name.substr(0, name.size() - std::string(ending).size());
    const json all = json::parse(read_file(file));
    const LinearWeights weights(json::parse(read_file(shared_vector_file(stem + "_weights.json"))));
    for (const json& expected : all.at("cases")) {
      const json& config = expected.at("config");
      LinearCase read{stem + " " + config.at("canon_set").get<std::string>(),
                      model_of_case(config),
                      {},
                      all.at("input_ids"),
                      expected};
      for (const auto& [weight, view] :
           huggingface::model_weights(read.model, weights.views(expected.at("params"))))
        read.weights[weight] = floats_of(view);
      cases.push_back(std::move(read));
    }
  }
  return cases;
}

std::vector<double> under_file_name(const model::ModelConfig& model,
                                    const std::map<std::string, std::vector<double>>& ours,
                                    const std::string& name) {
  std::map<int64_t, const std::vector<double>*> parts;  // by first row
  for (const auto& [own, place] : weights::release_places(model)) {
    if (place.name == name) parts[place.first_row] = &ours.at(own);
  }
  if (parts.empty()) throw Error("no weight of the model is '" + name + "' of the file");
  std::vector<double> values;
  for (const auto& [row, part] : parts) values.insert(values.end(), part->begin(), part->end());
  return values;
}

}  // namespace forge::tests

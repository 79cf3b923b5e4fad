#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/config/experiment.h"
#include "core/model/weights/safetensors.h"

namespace forge::tests {

/// Llama of two layers with some thousand weights.
model::ModelConfig small_model();

/// Drawn weights of a model, under their names.
class SampleWeights {
 public:
  explicit SampleWeights(const model::ModelConfig& model);
  SampleWeights(const SampleWeights&) = delete;
  SampleWeights& operator=(const SampleWeights&) = delete;
  std::map<std::string, weights::TensorView> views;

 private:
  std::vector<std::vector<float>> values_;
};

/// A checkpoint of such weights below `folder`; returns its own folder.
std::filesystem::path write_sample_checkpoint(const std::filesystem::path& folder,
                                              const model::ModelConfig& model);

/// tokenizer.json of the 262 tokens that every vocabulary of forge's has.
std::filesystem::path write_sample_tokenizer(const std::filesystem::path& folder);

}  // namespace forge::tests

#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/huggingface/model_config.h"
#include "core/model/weights/model_files.h"

namespace forge::huggingface {

/// A model folder that was read and checked; its weights are mapped, not copied.
struct ImportedModel {
  ReadConfig config;
  weights::ModelFiles files;
  std::map<std::string, weights::TensorView> weights;  ///< views into `files`
  std::filesystem::path tokenizer;    ///< tokenizer.json where forge can use it, else ""
  std::string tokenizer_fingerprint;  ///< "" where there is none
  std::vector<std::string> notes;     ///< what to tell the user
};

/// Whether a folder looks like one of transformers' models.
bool is_model_folder(const std::filesystem::path& folder);

/// Reads config.json, the weights and the tokenizer of a model folder of plain Llama or LlamaCanon,
/// in one file or sharded, of float32, bfloat16, float16 or float64. A tokenizer that forge cannot
/// follow is noted and left out. Throws Error naming the file and what is wrong in it.
ImportedModel import_model(const std::filesystem::path& folder);

}  // namespace forge::huggingface

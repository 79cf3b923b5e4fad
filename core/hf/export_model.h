#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/hf/model_config.h"
#include "core/weights/model_files.h"

namespace forge::hf {

/// A trained model that is to leave.
struct ExportSource {
  config::ModelConfig model;
  int64_t max_positions = 0;         ///< longest row that was trained on
  std::filesystem::path checkpoint;  ///< its folder
  std::filesystem::path tokenizer;   ///< tokenizer.json, "": the model has none
};

struct ExportOptions {
  weights::Dtype dtype = weights::Dtype::f32;  ///< f32, bf16 or f16
  int64_t shard_bytes = weights::default_shard_bytes;
  bool replace = false;  ///< a model folder that is there already
};

struct Exported {
  Architecture architecture = Architecture::llama;
  std::vector<std::string> forge_keys;  ///< see WrittenConfig
  int64_t parameters = 0;
  std::vector<weights::WrittenFile> files;
};

/// "float32", "bfloat16", "float16" as a dtype; throws Error for another word.
weights::Dtype dtype_from_name(const std::string& name);

/// Writes a model folder: config.json, generation_config.json, model.safetensors (or shards with
/// their index), tokenizer.json, tokenizer_config.json and special_tokens_map.json. It is written
/// aside, synced and renamed: `folder` is there whole or not at all. What stands in its place may
/// be an empty folder or, with `replace`, a model folder (plain files, config.json among them).
/// Throws Error before it writes where the weights are not those of the model, the tokenizer is not
/// the model's, or the folder cannot be replaced.
Exported export_model(const ExportSource& source,
                      const std::filesystem::path& folder,
                      const ExportOptions& options);

}  // namespace forge::hf

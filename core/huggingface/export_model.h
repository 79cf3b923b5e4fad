#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/data/tokenizer/tokenizer.h"
#include "core/huggingface/model_config.h"
#include "core/model/weights/model_files.h"

namespace forge::huggingface {

/// tokenizer_config.json: what transformers' PreTrainedTokenizerFast asks for beside
/// tokenizer.json.
nlohmann::ordered_json tokenizer_config(const data::Tokenizer& tokenizer, int64_t max_positions);

/// special_tokens_map.json: the name of each special token by its role.
nlohmann::ordered_json special_tokens_map(const data::Tokenizer& tokenizer);

/// generation_config.json. Generation ends at EOS and, because forge puts no EOS behind a document
/// but BOS before the next one, at BOS too.
nlohmann::ordered_json generation_config(const data::Tokenizer& tokenizer);

/// A trained model that is to leave.
struct ExportSource {
  model::ModelConfig model;
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
/// be an empty folder, which stays the same one and gets its files, config.json last; or, with
/// `replace`, a model folder (plain files, config.json among them) other than the current folder,
/// whose group and rights are kept.
/// Throws Error before it writes where the weights are not those of the model, the tokenizer is not
/// the model's, or the folder cannot be replaced.
Exported export_model(const ExportSource& source,
                      const std::filesystem::path& folder,
                      const ExportOptions& options);

}  // namespace forge::huggingface

#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json_text.h"
#include "core/weights/convert.h"
#include "core/weights/dtype.h"
#include "core/weights/model_files.h"

namespace forge::weights {
namespace {

using Tensors = std::map<std::string, TensorView>;

int64_t written_bytes(const TensorView& tensor, std::optional<Dtype> floating) {
  const Dtype dtype = floating && is_floating(tensor.dtype) ? *floating : tensor.dtype;
  return static_cast<int64_t>(tensor.bytes / bytes_of(tensor.dtype) * bytes_of(dtype));
}

std::vector<Tensors> shards_of(const Tensors& tensors,
                               std::optional<Dtype> floating,
                               int64_t shard_bytes) {
  std::vector<Tensors> shards(1);
  int64_t filled = 0;
  for (const auto& named : tensors) {
    const int64_t bytes = written_bytes(named.second, floating);
    if (!shards.back().empty() && bytes > shard_bytes - filled) {
      shards.emplace_back();
      filled = 0;
    }
    shards.back().insert(named);
    filled += bytes;
  }
  return shards;
}

std::string shard_name(size_t number, size_t count) {
  char name[64];
  std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", number, count);
  return name;
}

}  // namespace

std::vector<WrittenFile> write_model_files(const fs::path& folder,
                                           const Tensors& tensors,
                                           std::optional<Dtype> floating,
                                           int64_t shard_bytes) {
  if (shard_bytes <= 0) throw Error("a file of a model cannot be of 0 bytes");
  // transformers loads a file only with this metadata.
  const std::map<std::string, std::string> metadata = {{"format", "pt"}};
  const std::vector<Tensors> shards = shards_of(tensors, floating, shard_bytes);
  std::vector<WrittenFile> files;
  nlohmann::json weight_map = nlohmann::json::object();
  int64_t total = 0;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shards.size() == 1 ? model_file : shard_name(i + 1, shards.size());
    const int64_t bytes = write_safetensors(folder / name, shards[i], metadata, floating);
    files.push_back({name, bytes});
    for (const auto& [tensor, view] : shards[i]) {
      weight_map[tensor] = name;
      total += written_bytes(view, floating);
    }
  }
  if (shards.size() == 1) return files;
  const nlohmann::json index = {{"metadata", {{"total_size", total}}}, {"weight_map", weight_map}};
  const std::string text = json_text(index, 2) + "\n";
  write_file_atomic(folder / model_index_file, text);
  files.push_back({model_index_file, static_cast<int64_t>(text.size())});
  return files;
}

}  // namespace forge::weights

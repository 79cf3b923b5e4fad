#include "core/model/weights/model_files.h"

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <set>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/json_file.h"
#include "core/base/text.h"
#include "core/model/parameters.h"
#include "core/model/weights/checkpoint.h"
#include "core/model/weights/dtype.h"
#include "core/model/weights/release_names.h"

namespace forge::weights {
namespace {

using Json = nlohmann::json;

constexpr uintmax_t largest_index = 100'000'000;
constexpr size_t most_shards = 10'000;

[[noreturn]] void refuse(const fs::path& index, const std::string& fault) {
  throw Error("'" + shown_path(index) + "' " + fault, ExitCode::failed);
}

/// The index's map from tensor to file.
std::map<std::string, std::string> read_weight_map(const fs::path& index) {
  const Json json = read_json_file(index, largest_index);
  if (!json.is_object()) refuse(index, "is not a JSON object");
  const auto map = json.find("weight_map");
  if (map == json.end() || !map->is_object()) refuse(index, "has no object 'weight_map'");
  std::map<std::string, std::string> files;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string()) refuse(index, "gives '" + tensor + "' a file that is no text");
    files[tensor] = file.get<std::string>();
  }
  return files;
}

/// A name that cannot lead out of the folder.
bool is_plain_file_name(const std::string& name) {
  return ends_with(name, ".safetensors") && name[0] != '.' &&
         name.find_first_of(std::string("/\\\0", 3)) == std::string::npos;
}

std::string hint_without_safetensors(const fs::path& folder) {
  for (const char* pickle : {"pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    if (!path_exists(folder / pickle)) continue;
    return std::string(pickle) +
           " is a pickle, which runs code when it is read; save the model with "
           "transformers' save_pretrained(…, safe_serialization=True)";
  }
  return "";
}

}  // namespace

ModelFiles::ModelFiles(const fs::path& folder) {
  if (is_folder(folder) && ::access((folder / "").c_str(), X_OK) != 0)
    throw system_error("read the model in '" + shown_path(folder) + "'", errno);
  if (path_exists(folder / weights_file)) {
    add(folder / weights_file);
  } else if (path_exists(folder / model_file)) {
    add(folder / model_file);
  } else if (path_exists(folder / model_index_file)) {
    open_shards(folder / model_index_file);
  } else {
    throw Error(
        "'" + shown_path(folder) + "' has neither " + model_file + " nor " + model_index_file,
        hint_without_safetensors(folder));
  }
}

bool ModelFiles::are_in(const fs::path& folder) {
  return path_exists(folder / weights_file) || path_exists(folder / model_file) ||
         path_exists(folder / model_index_file);
}

std::vector<fs::path> ModelFiles::paths() const {
  std::vector<fs::path> paths;
  for (const SafetensorsFile& file : files_) paths.push_back(file.path());
  return paths;
}

void ModelFiles::open_shards(const fs::path& index) {
  const std::map<std::string, std::string> file_of = read_weight_map(index);
  std::set<std::string> names;
  for (const auto& [tensor, file] : file_of) names.insert(file);
  if (names.size() > most_shards) refuse(index, "names more than 10,000 files");
  for (const std::string& name : names) {
    if (is_plain_file_name(name)) continue;
    refuse(index, "names '" + name + "', which is no .safetensors file beside it");
  }
  for (const std::string& name : names) {
    add(index.parent_path() / name);
    for (const auto& [tensor, view] : files_.back().tensors()) {
      const auto listed = file_of.find(tensor);
      if (listed == file_of.end() || listed->second != name) {
        refuse(index, "does not place '" + tensor + "' in '" + name + "', which holds it");
      }
    }
  }
  for (const auto& [tensor, file] : file_of) {
    if (tensors_.count(tensor) == 0) {
      refuse(index, "places '" + tensor + "' in '" + file + "', which does not hold it");
    }
  }
}

void ModelFiles::add(const fs::path& path) {
  files_.emplace_back(path);
  tensors_.insert(files_.back().tensors().begin(), files_.back().tensors().end());
}

std::string content_hash(const std::map<std::string, TensorView>& tensors) {
  Hasher hasher;
  for (const auto& [name, tensor] : tensors) {
    // JSON text ends where the bytes begin, without a doubt about where a name ends.
    hasher.update(json_text(Json({name, name_of(tensor.dtype), tensor.shape})));
    hasher.update(tensor.data, tensor.bytes);
  }
  return hasher.hex();
}

namespace {

/// How many values have all bits of `exponent`: those are NaN or infinite.
template <class Bits>
size_t count_not_finite(const TensorView& tensor, Bits exponent) {
  size_t count = 0;
  for (size_t at = 0; at + sizeof(Bits) <= tensor.bytes; at += sizeof(Bits)) {
    Bits bits;  // the data need not be aligned
    std::memcpy(&bits, tensor.data + at, sizeof(Bits));
    count += (bits & exponent) == exponent ? 1 : 0;
  }
  return count;
}

size_t count_not_finite(const TensorView& tensor) {
  switch (tensor.dtype) {
    case Dtype::f64: return count_not_finite<uint64_t>(tensor, 0x7ff0'0000'0000'0000);
    case Dtype::f32: return count_not_finite<uint32_t>(tensor, 0x7f80'0000);
    case Dtype::f16: return count_not_finite<uint16_t>(tensor, 0x7c00);
    case Dtype::bf16: return count_not_finite<uint16_t>(tensor, 0x7f80);
    default: return 0;
  }
}

}  // namespace

std::string not_finite_text(const std::map<std::string, TensorView>& tensors) {
  std::string text;
  size_t more = 0;
  for (const auto& [name, tensor] : tensors) {
    const size_t count = count_not_finite(tensor);
    if (count == 0) continue;
    if (!text.empty()) {
      ++more;
      continue;
    }
    text = with_thousands(int64_t(count)) + " of " +
           with_thousands(int64_t(tensor.bytes / bytes_of(tensor.dtype))) + " values of '" + name +
           "' are NaN or infinite";
  }
  return more == 0 ? text : text + ", and values of " + counted(more, "other tensor");
}

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

namespace forge::huggingface {
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

bool is_set_aside(const std::string& name, const model::ModelConfig& model) {
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
    const model::ModelConfig& model, const std::map<std::string, weights::TensorView>& given) {
  const std::map<std::string, weights::TensorView> tensors = weights::from_release(model, given);
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
              hint_for(missing, unexpected));
}

}  // namespace forge::huggingface

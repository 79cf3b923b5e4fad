#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/base/json_text.h"
#include "core/base/text.h"
#include "core/weights/checkpoint.h"
#include "core/weights/dtype.h"
#include "core/weights/model_files.h"

namespace forge::weights {
namespace {

using Json = nlohmann::json;

constexpr uintmax_t largest_index = 100'000'000;
constexpr size_t most_shards = 10'000;

[[noreturn]] void refuse(const fs::path& index, const std::string& fault) {
  throw Error("'" + shown_path(index) + "' " + fault, {}, "", ExitCode::failed);
}

/// The index's map from tensor to file.
std::map<std::string, std::string> read_weight_map(const fs::path& index) {
  std::error_code unreadable;
  const uintmax_t bytes = fs::file_size(index, unreadable);
  if (!unreadable && bytes > largest_index) refuse(index, "is impossibly large for an index");
  const Json json = try_parse_json(read_file(index));
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
    if (!fs::exists(folder / pickle)) continue;
    return std::string(pickle) +
           " is a pickle, which runs code when it is read; save the model with "
           "transformers' save_pretrained(…, safe_serialization=True)";
  }
  return "";
}

}  // namespace

ModelFiles::ModelFiles(const fs::path& folder) {
  if (fs::exists(folder / weights_file)) {
    add(folder / weights_file);
  } else if (fs::exists(folder / model_file)) {
    add(folder / model_file);
  } else if (fs::exists(folder / model_index_file)) {
    open_shards(folder / model_index_file);
  } else {
    throw Error(
        "'" + shown_path(folder) + "' has neither " + model_file + " nor " + model_index_file,
        {},
        hint_without_safetensors(folder));
  }
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

}  // namespace forge::weights

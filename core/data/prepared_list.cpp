#include "core/data/prepared_list.h"

#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/json_text.h"
#include "core/base/text.h"
#include "core/data/token_file.h"

namespace forge::data {
namespace {

constexpr size_t shown_hash = 8;

/// "text-<32 digits>" with fewer of them.
std::string short_name(const std::string& name) {
  const size_t dash = name.rfind('-');
  if (dash == std::string::npos || name.size() - dash - 1 <= shown_hash) return name;
  return name.substr(0, dash + 1 + shown_hash);
}

std::optional<PreparedTokens> tokens_at(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return std::nullopt;
  try {
    const TokenFile file(path);
    return PreparedTokens{path, file.size(), file.documents()};
  } catch (const Error&) {
    return std::nullopt;  // it will be made anew
  }
}

void add_files(PreparedFolder& prepared) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(prepared.folder, error)) {
    struct stat status {};
    if (::stat(entry.path().c_str(), &status) != 0) continue;
    prepared.bytes += status.st_size;
    prepared.modified = std::max<int64_t>(prepared.modified, status.st_mtime);
    const std::string name = entry.path().filename().string();
    prepared.unfinished = prepared.unfinished || name.find(".partial") != std::string::npos;
  }
}

std::string name_of(const fs::path& folder) {
  return short_name(folder.parent_path().filename().string()) + "/" + folder.filename().string();
}

/// `data` is the folder that the parts' folders are relative to.
void add_parts(const nlohmann::json& words, const fs::path& data, PreparedFolder& prepared) {
  const auto parts = words.find("parts");
  if (parts == words.end() || !parts->is_object()) return;
  for (const auto& [source, json] : parts->items()) {
    if (!json.is_object() || !json.value("folder", nlohmann::json()).is_string()) continue;
    const fs::path folder = data / json["folder"].get<std::string>();
    const nlohmann::json weight = json.value("weight", nlohmann::json(1.0));
    prepared.parts.push_back({source,
                              weight.is_number() ? weight.get<double>() : 1.0,
                              name_of(folder),
                              tokens_at(folder / "train.tokens"),
                              tokens_at(folder / "evaluation.tokens")});
  }
}

void add_words(PreparedFolder& prepared) {
  const fs::path path = prepared.folder / "made_from.json";
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return;
  const nlohmann::json words = try_parse_json(read_file(path));
  const auto text = [&](const char* key) {
    const nlohmann::json value = words.value(nlohmann::json::json_pointer(key), nlohmann::json());
    return value.is_string() ? value.get<std::string>() : "";
  };
  if (!words.is_object()) return;
  prepared.source = text("/data/source");
  prepared.text_path = text("/data/path");
  add_parts(words, prepared.folder.parent_path().parent_path(), prepared);
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_directory(error)) folders.push_back(entry.path());
  }
  return folders;
}

PreparedFolder look_at(const fs::path& folder) {
  PreparedFolder prepared;
  prepared.folder = folder;
  prepared.name = name_of(folder);
  prepared.train = tokens_at(folder / "train.tokens");
  prepared.evaluation = tokens_at(folder / "evaluation.tokens");
  add_files(prepared);
  add_words(prepared);
  return prepared;
}

}  // namespace

std::vector<PreparedFolder> list_prepared(const fs::path& cache_dir) {
  std::vector<PreparedFolder> list;
  for (const fs::path& text : folders_in(cache_dir / "data")) {
    for (const fs::path& folder : folders_in(text)) list.push_back(look_at(folder));
  }
  std::sort(list.begin(), list.end(), [](const PreparedFolder& a, const PreparedFolder& b) {
    return a.modified != b.modified ? a.modified > b.modified : a.name < b.name;
  });
  return list;
}

PreparedFolder find_prepared(const fs::path& cache_dir, const std::string& name) {
  std::error_code ignored;
  if (fs::exists(fs::path(name) / "tokenizer.json", ignored)) {
    return look_at(fs::absolute(name).lexically_normal());
  }
  std::vector<PreparedFolder> found;
  std::vector<std::string> names;
  for (PreparedFolder& prepared : list_prepared(cache_dir)) {
    names.push_back(prepared.name);
    if (starts_with(prepared.name, name)) found.push_back(std::move(prepared));
  }
  if (found.size() == 1) return found[0];
  if (found.empty()) {
    const std::string near = did_you_mean(name, names);
    throw Error("no prepared data is called '" + name + "'",
                {},
                near.empty() ? "'forge data ls' lists it" : near);
  }
  names.clear();
  for (const PreparedFolder& prepared : found) names.push_back(prepared.name);
  throw Error("'" + name + "' is the beginning of several names", {}, join(names, "\n"));
}

}  // namespace forge::data

#include "core/data/rows/token_cache.h"

#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <set>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/json_file.h"
#include "core/base/staging.h"
#include "core/base/text.h"
#include "core/base/waiting.h"
#include "core/data/rows/token_file.h"
#include "core/data/tokenizer/tokenizer_file.h"
#include "core/data/tokenizer/tokenizer_json.h"

namespace forge::data {
namespace {

/// What `make` gives unless it throws an Error: a file in the cache that cannot be used is as good
/// as none.
template <class Make>
auto if_usable(const fs::path& path, Make make) -> std::optional<decltype(make())> {
  if (!path_exists(path)) return std::nullopt;
  try {
    return make();
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Nothing where the file is not as it was written: text would get other ids without a sign.
std::optional<Tokenizer> cached_tokenizer(const fs::path& path, const fs::path& hash_path) {
  const std::optional<std::string> hash =
      if_usable(hash_path, [&] { return read_file(hash_path); });
  return if_usable(path, [&] {
    if (hash_file(path) != hash) throw Error("'" + shown_path(path) + "' was changed");
    return load_tokenizer(path);
  });
}

TokenAmount usable(const fs::path& path, const Tokenizer& tokenizer, bool verify_hashes) {
  const TokenFile file(path);
  if (file.tokenizer_fingerprint() != tokenizer.fingerprint()) {
    throw Error("'" + shown_path(path) + "' is of another tokenizer");
  }
  if (verify_hashes || file.file_bytes() <= always_checked_bytes) file.verify_hash();
  return {file.size(), file.documents()};
}

TokenAmount write_tokens(Split split,
                         TokenAmount amount,
                         const TextSource& source,
                         const Tokenizer& tokenizer,
                         const Progress& progress,
                         const fs::path& path) {
  const bool training = split == Split::training;
  const std::string purpose = std::to_string(preparation_version) + " " + source.fingerprint() +
                              (training ? " training" : " evaluation") +
                              (source.is_endless() ? "" : " " + hash_hex(source.state()));
  TokenFileWriter writer(path, tokenizer.vocab_size(), tokenizer.fingerprint(), purpose);
  const std::string phase = training ? "writing training tokens" : "writing evaluation tokens";
  const Progress named = [&](double fraction, const std::string&) {
    if (progress) progress(fraction, phase);
  };
  source.write(split, amount, tokenizer, named, writer);
  writer.finish();
  return {writer.size(), writer.documents()};
}

/// Only the holder of the lock writes here, so what lies aside was left by one that was killed.
/// Files named .partial are resumed.
void remove_leftovers(const fs::path& folder) {
  std::vector<fs::path> leftovers;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (is_aside_name(entry.path().filename().string())) {
      leftovers.push_back(entry.path());
    }
  }
  if (error) throw system_error("read the folder '" + folder.string() + "'", error.value());
  for (const fs::path& path : leftovers) remove_tree(path);
}

/// Whether this user may only read the folder or its lock, or may not make the folder.
bool is_read_only(const fs::path& folder) {
  const auto is_refused = [](const fs::path& path, int wanted) {
    return ::access(path.c_str(), wanted) != 0 && (errno == EACCES || errno == EROFS);
  };
  return is_refused(existing_ancestor(folder), W_OK | X_OK) ||
         is_refused(folder / "lock", R_OK | W_OK);
}

constexpr const char* file_prefix = "file-";

}  // namespace

std::string tokenizer_folder_name(const config::TokenizerConfig& config) {
  const bool is_trained = config.kind == "byte_level_bpe";
  if (!is_trained && config.kind != "sentencepiece" && config.kind != "tiktoken") {
    throw Error("unknown tokenizer.kind '" + config.kind + "'",
                "byte_level_bpe, sentencepiece or tiktoken");
  }
  if (!is_trained && config.path.empty()) {
    throw Error("tokenizer.kind is " + config.kind + ", but tokenizer.path is empty",
                "forge reads such a tokenizer from a file, and trains byte_level_bpe");
  }
  const std::string version = "-v" + std::to_string(preparation_version);
  if (config.path.empty()) {
    return config.kind + "-" + std::to_string(config.vocab_size) + version;
  }
  if (!fs::exists(config.path)) {
    throw Error(
        "there is no file '" + config.path + "'",
        "tokenizer.path names a tokenizer.json, a SentencePiece model or a rank file of tiktoken");
  }
  return file_prefix + hash_file(config.path) + version;
}

Error tokenizer_changed(const config::TokenizerConfig& config) {
  return Error("the tokenizer '" + shown_path(config.path) + "' was changed while it was read",
               "repeat the command when nobody writes to that file any more",
               ExitCode::failed);
}

std::optional<Tokenizer> known_tokenizer(const fs::path& folder,
                                         const config::TokenizerConfig& config) {
  auto cached = cached_tokenizer(folder / "tokenizer.json", folder / "tokenizer.hash");
  if (cached || config.path.empty()) return cached;
  return read_tokenizer_file(config.path);
}

std::optional<fs::path> find_tokenizer_folder(const fs::path& text_folder,
                                              const std::string& fingerprint) {
  for (const fs::path& entry : folder_entries(text_folder)) {
    if (!starts_with(entry.filename().string(), file_prefix)) continue;
    const auto tokenizer = cached_tokenizer(entry / "tokenizer.json", entry / "tokenizer.hash");
    if (tokenizer && tokenizer->fingerprint() == fingerprint) return entry;
  }
  return std::nullopt;
}

TokenCacheEntry::TokenCacheEntry(fs::path path, const Progress& progress, bool verify_hashes)
    : path_(std::move(path)), progress_(progress), verify_hashes_(verify_hashes) {
  if (is_read_only(path_)) return;
  lock_ = lock_made_folder(path_, [&](const std::string& holder) {
    if (progress) progress(0, "waiting for " + holder + ", which prepares the same data");
  });
  remove_leftovers(path_);
}

void TokenCacheEntry::require_writable(const std::string& missing) const {
  if (is_writable()) return;
  throw Error(
      "'" + shown_path(path_) + "' has no usable " + missing + ", and you may not write there",
      "FORGE_CACHE_DIR names a cache of your own, in a folder where you may write: the data is "
      "prepared anew there; or ask the owner to prepare it here",
      ExitCode::failed);
}

fs::path TokenCacheEntry::tokens_path(Split split) const {
  return path_ / (split == Split::training ? "train.tokens" : "evaluation.tokens");
}

Tokenizer TokenCacheEntry::tokenizer(const config::TokenizerConfig& config,
                                     const std::function<NextDocument()>& sample) const {
  const fs::path hash_path = path_ / "tokenizer.hash";
  if (auto cached = cached_tokenizer(tokenizer_path(), hash_path)) return std::move(*cached);
  require_writable("tokenizer");
  Tokenizer tokenizer = config.path.empty()
                            ? train_byte_level_bpe(sample(), config.vocab_size, progress_)
                            : read_tokenizer_file(config.path);
  if (path_.filename() != tokenizer_folder_name(config)) throw tokenizer_changed(config);
  save_tokenizer(tokenizer, tokenizer_path());
  write_file_atomic(hash_path, hash_file(tokenizer_path()));
  return tokenizer;
}

TokenAmount TokenCacheEntry::tokens(Split split,
                                    TokenAmount wanted,
                                    const TextSource& source,
                                    const Tokenizer& tokenizer) const {
  const fs::path path = tokens_path(split);
  const std::optional<TokenAmount> held =
      if_usable(path, [&] { return usable(path, tokenizer, verify_hashes_); });
  const bool enough = held && held->tokens >= wanted.tokens && held->documents >= wanted.documents;
  if (held && (enough || !source.is_endless())) return *held;
  require_writable(split == Split::training ? "training tokens" : "evaluation tokens");
  return write_tokens(split, wanted, source, tokenizer, progress_, path);
}

void TokenCacheEntry::write_provenance(const nlohmann::json& provenance) const {
  if (is_writable()) write_file_atomic(path_ / "made_from.json", json_text(provenance, 2) + "\n");
}

namespace {

constexpr size_t shown_hash = 8;

/// "text-<32 digits>" with fewer of them.
std::string short_name(const std::string& name) {
  const size_t dash = name.rfind('-');
  if (dash == std::string::npos || name.size() - dash - 1 <= shown_hash) return name;
  return name.substr(0, dash + 1 + shown_hash);
}

std::optional<PreparedTokens> tokens_at(const fs::path& path) {
  return if_usable(path, [&] {
    const TokenFile file(path);
    return PreparedTokens{path, file.size(), file.documents()};
  });
}

/// Whether forge makes files of that name in a folder of prepared data.
bool is_own_file(const std::string& name) {
  static const std::set<std::string> names = {"tokenizer.json",
                                              "tokenizer.hash",
                                              "train.tokens",
                                              "evaluation.tokens",
                                              "evaluation_text.json",
                                              "made_from.json",
                                              "lock"};
  return names.count(name) > 0 || is_aside_name(name) ||
         (starts_with(name, "train.tokens.") || starts_with(name, "evaluation.tokens."));
}

void add_files(PreparedFolder& prepared) {
  for (const fs::path& entry : folder_entries(prepared.folder)) {
    struct stat status {};
    if (::stat(entry.c_str(), &status) != 0) continue;
    if (entry.filename() == "lock") continue;  // whoever uses the data writes to it
    prepared.bytes += status.st_size;
    prepared.modified = std::max<int64_t>(prepared.modified, status.st_mtime);
    const std::string name = entry.filename().string();
    prepared.has_other_files = prepared.has_other_files || !is_own_file(name) || !is_file(entry);
    prepared.unfinished = prepared.unfinished || name.find(".partial") != std::string::npos;
  }
  // What failed before its first file has none.
  struct stat folder {};
  if (prepared.modified == 0 && ::stat(prepared.folder.c_str(), &folder) == 0)
    prepared.modified = folder.st_mtime;
}

std::string name_of(const fs::path& folder) {
  return short_name(folder.parent_path().filename().string()) + "/" + folder.filename().string();
}

/// `data` is the folder that the parts' folders are relative to.
void add_parts(const nlohmann::json& provenance, const fs::path& data, PreparedFolder& prepared) {
  const auto parts = provenance.find("parts");
  if (parts == provenance.end() || !parts->is_object()) return;
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
  if (!path_exists(path)) return;
  nlohmann::json provenance;
  try {
    provenance = read_json_file(path);
  } catch (const Error&) {
    return;  // words alone
  }
  const auto text = [&](const char* key) {
    const nlohmann::json value =
        provenance.value(nlohmann::json::json_pointer(key), nlohmann::json());
    return value.is_string() ? value.get<std::string>() : "";
  };
  if (!provenance.is_object()) return;
  prepared.source = text("/data/source");
  prepared.text_path = text("/data/path");
  add_parts(provenance, prepared.folder.parent_path().parent_path(), prepared);
}

bool ends_in(const std::string& name, size_t digits, const char* known_digits) {
  return name.size() >= digits &&
         name.find_first_not_of(known_digits, name.size() - digits) == std::string::npos;
}

/// Whether forge gives such a name to the folder of a text or of a mixture: "text-<32 digits>".
bool is_text_name(const std::string& name) {
  constexpr size_t digits = 32;
  return name.size() > digits + 1 && name[name.size() - digits - 1] == '-' &&
         ends_in(name, digits, "0123456789abcdef");
}

/// Whether it is one of tokenizer_folder_name, of any version: "byte_level_bpe-2000-v1".
bool is_tokenizer_name(const std::string& name) {
  const size_t version = name.rfind("-v");
  return version != std::string::npos && version > 0 && version + 2 < name.size() &&
         ends_in(name, name.size() - version - 2, "0123456789");
}

/// The folders of prepared data. The cache may lie in a folder that has other things, too.
std::vector<fs::path> prepared_folders(const fs::path& cache_dir) {
  std::vector<fs::path> folders;
  for (const fs::path& text : folder_entries(cache_dir / "data")) {
    if (!is_text_name(text.filename().string()) || !is_folder(text)) continue;
    for (const fs::path& folder : folder_entries(text))
      if (is_tokenizer_name(folder.filename().string()) && is_folder(folder))
        folders.push_back(folder);
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
  for (const fs::path& folder : prepared_folders(cache_dir)) list.push_back(look_at(folder));
  std::sort(list.begin(), list.end(), [](const PreparedFolder& a, const PreparedFolder& b) {
    return a.modified != b.modified ? a.modified > b.modified : a.name < b.name;
  });
  return list;
}

std::vector<Preparation> list_preparations(const fs::path& cache_dir) {
  std::vector<Preparation> list;
  for (const fs::path& folder : prepared_folders(cache_dir)) {
    const fs::path lock = folder / "lock";
    if (!FileLock::is_held(lock)) continue;
    const std::string holder = FileLock::holder(lock);
    list.push_back({name_of(folder), holder.empty() ? "another process" : holder});
  }
  return list;
}

PreparedFolder find_prepared(const fs::path& cache_dir, const std::string& name) {
  if (path_exists(fs::path(name) / "tokenizer.json")) {
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
    throw Error("no prepared data is called '" + name + "'",
                did_you_mean(name, names, "'forge data ls' lists it"));
  }
  throw Error("'" + name + "' is the beginning of several names",
              join(texts_of(found, &PreparedFolder::name), "\n"));
}

}  // namespace forge::data

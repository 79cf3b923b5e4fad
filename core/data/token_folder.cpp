#include "core/data/token_folder.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/base/json_text.h"
#include "core/base/text.h"
#include "core/data/token_file.h"
#include "core/data/token_file_writer.h"
#include "core/data/tokenizer_file.h"
#include "core/data/tokenizer_json.h"

namespace forge::data {
namespace {

/// What `make` gives unless it throws an Error: a file in the cache that cannot be used is as good
/// as none.
template <class Make>
auto if_usable(const fs::path& path, Make make) -> std::optional<decltype(make())> {
  std::error_code unreadable;
  if (!fs::exists(path, unreadable)) return std::nullopt;
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

// A tenth of a second's reading.
constexpr int64_t always_checked_bytes = int64_t{256} << 20;

TokenAmount usable(const fs::path& path, const Tokenizer& tokenizer, bool check_content) {
  const TokenFile file(path);
  if (file.tokenizer_fingerprint() != tokenizer.fingerprint()) {
    throw Error("'" + shown_path(path) + "' is of another tokenizer");
  }
  if (check_content || file.file_bytes() <= always_checked_bytes) file.check_content();
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
                              (training ? " training" : " evaluation");
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
/// What is named .partial is work to go on with.
void remove_leftovers(const fs::path& folder) {
  std::vector<fs::path> leftovers;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename().string().find(".tmp-") != std::string::npos) {
      leftovers.push_back(entry.path());
    }
  }
  if (error) throw system_error("read the folder '" + folder.string() + "'", error.value());
  for (const fs::path& path : leftovers) remove_tree(path);
}

const fs::path& made(const fs::path& folder) {
  make_directories(folder);
  return folder;
}

}  // namespace

std::string tokenizer_folder_name(const config::TokenizerConfig& config) {
  const bool is_trained = config.kind == "byte_level_bpe";
  if (!is_trained && config.kind != "sentencepiece" && config.kind != "tiktoken") {
    throw Error("unknown tokenizer.kind '" + config.kind + "'",
                {},
                "byte_level_bpe, sentencepiece or tiktoken");
  }
  if (!is_trained && config.path.empty()) {
    throw Error("tokenizer.kind is " + config.kind + ", but tokenizer.path is empty",
                {},
                "forge reads such a tokenizer from a file, and trains byte_level_bpe");
  }
  const std::string version = "-v" + std::to_string(preparation_version);
  if (config.path.empty()) {
    return config.kind + "-" + std::to_string(config.vocab_size) + version;
  }
  if (!fs::is_regular_file(config.path)) {
    throw Error(
        "there is no file '" + config.path + "'",
        {},
        "tokenizer.path names a tokenizer.json, a SentencePiece model or a rank file of tiktoken");
  }
  return "file-" + hash_file(config.path) + version;
}

TokenFolder::TokenFolder(fs::path path, const Progress& progress, bool check_content)
    : path_(std::move(path)),
      progress_(progress),
      check_content_(check_content),
      lock_(FileLock::acquire(made(path_) / "lock")) {
  remove_leftovers(path_);
}

fs::path TokenFolder::tokens_path(Split split) const {
  return path_ / (split == Split::training ? "train.tokens" : "evaluation.tokens");
}

Tokenizer TokenFolder::tokenizer(const config::TokenizerConfig& config,
                                 const std::function<NextDocument()>& sample) const {
  const fs::path hash_path = path_ / "tokenizer.hash";
  if (std::optional<Tokenizer> cached = cached_tokenizer(tokenizer_path(), hash_path)) {
    return std::move(*cached);
  }
  Tokenizer tokenizer = config.path.empty()
                            ? train_byte_level_bpe(sample(), config.vocab_size, progress_)
                            : read_tokenizer_file(config.path);
  save_tokenizer(tokenizer, tokenizer_path());
  write_file_atomic(hash_path, hash_file(tokenizer_path()));
  return tokenizer;
}

TokenAmount TokenFolder::tokens(Split split,
                                TokenAmount wanted,
                                const TextSource& source,
                                const Tokenizer& tokenizer) const {
  const fs::path path = tokens_path(split);
  const std::optional<TokenAmount> held =
      if_usable(path, [&] { return usable(path, tokenizer, check_content_); });
  const bool enough = held && held->tokens >= wanted.tokens && held->documents >= wanted.documents;
  if (held && (enough || !source.is_endless())) return *held;
  return write_tokens(split, wanted, source, tokenizer, progress_, path);
}

void TokenFolder::describe(const nlohmann::json& words) const {
  const std::string text = json_text(words, 2);
  write_file_atomic(path_ / "made_from.json", text + "\n");
}

}  // namespace forge::data

#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/config/experiment.h"
#include "core/data/rows/text_source.h"
#include "core/data/tokenizer/tokenizer.h"

namespace forge::data {

/// To be raised when the same text would get another tokenizer or other ids.
constexpr int preparation_version = 1;

/// Name of the folder of a tokenizer's files: how it is made, or the content that it is read from.
std::string tokenizer_folder_name(const config::TokenizerConfig& config);

/// What is thrown where the file at tokenizer.path was exchanged while it was used.
Error tokenizer_changed(const config::TokenizerConfig& config);

/// The tokenizer of a folder of the cache, or the file that the config names, where it need not be
/// trained. Writes nothing.
std::optional<Tokenizer> known_tokenizer(const std::filesystem::path& folder,
                                         const config::TokenizerConfig& config);

/// The folder below that of a text whose tokenizer was read from a file and has that fingerprint.
std::optional<std::filesystem::path> find_tokenizer_folder(const std::filesystem::path& text_folder,
                                                           const std::string& fingerprint);

/// A folder of the cache with a tokenizer and the tokens of one text, held by this process alone.
/// Files appear whole or not at all; a damaged one is rebuilt. Of a folder that this user may only
/// read, which somebody else has prepared, what is there is used without holding it.
class TokenCacheEntry {
 public:
  /// Waits for another process that holds it. `verify_hashes`: of large files too every byte is
  /// read, not only header and size.
  TokenCacheEntry(std::filesystem::path path, const Progress& progress, bool verify_hashes);

  std::filesystem::path tokenizer_path() const { return path_ / "tokenizer.json"; }
  std::filesystem::path tokens_path(Split split) const;

  /// The tokenizer of the folder, read from its file or trained on the sample if it is not there.
  Tokenizer tokenizer(const config::TokenizerConfig& config,
                      const std::function<NextDocument()>& sample) const;

  /// Makes the tokens unless they are there, of endless text at least `wanted`. Returns how many
  /// there are.
  TokenAmount tokens(Split split,
                     TokenAmount wanted,
                     const TextSource& source,
                     const Tokenizer& tokenizer) const;

  /// Records what the files were made from, for people who look at the cache. Of a folder that is
  /// only read its owner has.
  void write_provenance(const nlohmann::json& provenance) const;

  /// Whether this user may write into the folder.
  bool is_writable() const { return lock_.has_value(); }

 private:
  /// Throws Error where the folder is only read, saying what is not there.
  void require_writable(const std::string& missing) const;

  std::filesystem::path path_;
  const Progress& progress_;
  bool verify_hashes_;
  std::optional<FileLock> lock_;  ///< none where the folder is only read
};

/// A token file of the cache.
struct PreparedTokens {
  std::filesystem::path path;
  int64_t tokens = 0;
  int64_t documents = 0;
};

/// One source of a mixture.
struct PreparedPart {
  std::string source;
  double weight = 1;
  std::string name;  ///< of its folder, as of PreparedFolder
  std::optional<PreparedTokens> train, evaluation;
};

/// A folder of prepared data in the cache.
struct PreparedFolder {
  std::string name;  ///< "text-0c6e1f2a/byte_level_bpe-2000-v1": below data/, the hash cut short
  std::filesystem::path folder;
  std::string source;                   ///< data.source, "" where it is not recorded
  std::string text_path;                ///< data.path
  int64_t bytes = 0;                    ///< of all files
  int64_t modified = 0;                 ///< seconds since 1970, of the newest file
  bool unfinished = false;              ///< interrupted work is there
  bool has_other_files = false;         ///< of somebody else, who put them there
  std::optional<PreparedTokens> train;  ///< none: missing, or not whole
  std::optional<PreparedTokens> evaluation;
  std::vector<PreparedPart> parts;  ///< of a mixture, which has no tokens of its own
};

/// All prepared data below cache_dir, the newest first. Folders that forge would not name so are
/// somebody else's.
std::vector<PreparedFolder> list_prepared(const std::filesystem::path& cache_dir);

/// A process that prepares data now: the runs that need it are not queued yet.
struct Preparation {
  std::string name;    ///< of a PreparedFolder
  std::string holder;  ///< "process 4711 on node3"
};
/// Those of prepared data below cache_dir, as its locks tell.
std::vector<Preparation> list_preparations(const std::filesystem::path& cache_dir);

/// The prepared data whose name begins so, or of which a folder of that path is. Throws Error where
/// there is none or are several.
PreparedFolder find_prepared(const std::filesystem::path& cache_dir, const std::string& name);

}  // namespace forge::data

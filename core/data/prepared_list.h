#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace forge::data {

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
  std::string source;                   ///< data.source, "" where nobody left word
  std::string text_path;                ///< data.path
  int64_t bytes = 0;                    ///< of all files
  int64_t modified = 0;                 ///< seconds since 1970, of the newest file
  bool unfinished = false;              ///< work that was broken off lies there
  std::optional<PreparedTokens> train;  ///< none: missing, or not whole
  std::optional<PreparedTokens> evaluation;
  std::vector<PreparedPart> parts;  ///< of a mixture, which has no tokens of its own
};

/// All prepared data below cache_dir, the newest first.
std::vector<PreparedFolder> list_prepared(const std::filesystem::path& cache_dir);

/// The prepared data whose name begins so, or of which a folder of that path is. Throws Error where
/// there is none or are several.
PreparedFolder find_prepared(const std::filesystem::path& cache_dir, const std::string& name);

}  // namespace forge::data

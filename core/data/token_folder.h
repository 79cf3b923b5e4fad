#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "core/base/fs.h"
#include "core/config/experiment.h"
#include "core/data/text_source.h"
#include "core/data/tokenizer.h"

namespace forge::data {

/// Raised by hand when the same text would get another tokenizer or other ids.
constexpr int preparation_version = 1;

/// Name of the folder of a tokenizer's files: how it is made, or the content that it is read from.
std::string tokenizer_folder_name(const config::TokenizerConfig& config);

/// A folder of the cache with a tokenizer and the tokens of one text, held by this process alone.
/// Files appear whole or not at all; one that turns out damaged is made anew.
class TokenFolder {
 public:
  /// Waits for another process that holds it. `check_content`: of large files too every byte is
  /// read, not only header and size.
  TokenFolder(std::filesystem::path path, const Progress& progress, bool check_content);

  std::filesystem::path tokenizer_path() const { return path_ / "tokenizer.json"; }
  std::filesystem::path tokens_path(Split split) const;

  /// The tokenizer of the folder, read from its file or trained on the sample if it is not there.
  Tokenizer tokenizer(const config::TokenizerConfig& config,
                      const std::function<NextDocument()>& sample) const;

  /// Sees to it that the tokens are there, of endless text at least so many; what there is.
  TokenAmount tokens(Split split,
                     TokenAmount wanted,
                     const TextSource& source,
                     const Tokenizer& tokenizer) const;

  /// Leaves word of what the files were made from, for people who look at the cache.
  void describe(const nlohmann::json& words) const;

 private:
  std::filesystem::path path_;
  const Progress& progress_;
  bool check_content_;
  FileLock lock_;
};

}  // namespace forge::data

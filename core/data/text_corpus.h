#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/fs.h"

namespace forge::data {

/// Text of the user's own: a file, or all .txt files of a folder in bytewise order of their names.
/// Each file is a document. The last `held_out_fraction` of all bytes is for evaluation; the cut is
/// made at a blank line where there is one nearby, else at a line's end, else between characters.
class TextCorpus {
 public:
  /// Throws Error where there is no text, or where a file is none (a NUL byte in it).
  TextCorpus(const std::filesystem::path& path, double held_out_fraction);

  /// The documents of each part, none of them empty. They live as long as the corpus.
  const std::vector<std::string_view>& training() const { return training_; }
  const std::vector<std::string_view>& evaluation() const { return evaluation_; }
  int64_t bytes() const;
  /// Hash of the documents and of the place where they are cut.
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  std::vector<MappedFile> files_;
  std::vector<std::string_view> training_;
  std::vector<std::string_view> evaluation_;
  std::string fingerprint_;
};

/// Where to cut a text that is to be cut near `wanted` (0 … text.size()): behind the nearest blank
/// line within `range` bytes, else behind the nearest line's end there, else before a character.
size_t cut_near(std::string_view text, size_t wanted, size_t range);

}  // namespace forge::data

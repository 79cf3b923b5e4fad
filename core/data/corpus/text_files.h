#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/config/experiment.h"

namespace forge::data {

/// What a document is within files of text.
struct DocumentRule {
  config::DocumentKind kind = config::DocumentKind::file;
  std::string separator;  ///< with `separator`: what stands between two documents
  std::string field;      ///< with `record`: the field of a JSON object that holds the text
};

DocumentRule document_rule(const config::DataConfig& config);

/// A place between two bytes of some files' content, decompressed.
struct TextPosition {
  int64_t file = 0;
  int64_t offset = 0;
};
inline bool operator==(TextPosition a, TextPosition b) {
  return a.file == b.file && a.offset == b.offset;
}
inline bool operator!=(TextPosition a, TextPosition b) { return !(a == b); }
inline bool operator<(TextPosition a, TextPosition b) {
  return a.file != b.file ? a.file < b.file : a.offset < b.offset;
}

/// Files that are read one after another.
struct TextFiles {
  std::vector<std::filesystem::path> paths;
  std::vector<int64_t> sizes;  ///< of each in bytes, decompressed
  DocumentRule rule;

  int64_t bytes() const;
  TextPosition begin() const { return {}; }
  TextPosition end() const { return {static_cast<int64_t>(paths.size()), 0}; }
  /// Bytes before a position.
  int64_t bytes_before(TextPosition position) const;
  /// The position with `bytes` bytes before it.
  TextPosition position_at(int64_t bytes) const;
};

/// A part of them.
struct TextRange {
  std::shared_ptr<const TextFiles> files;
  TextPosition begin;
  TextPosition end;

  int64_t bytes() const { return files->bytes_before(end) - files->bytes_before(begin); }
};

/// The file of that path, or those of the folder that hold text (.txt; with documents that are
/// records .jsonl or .ndjson; each with .gz or .zst behind it as well) in bytewise order of their
/// names. Throws Error where there are none, where they are in a format that forge does not read,
/// and for a link with such a name that leads nowhere.
std::vector<std::filesystem::path> list_text_files(const std::filesystem::path& path,
                                                   const DocumentRule& rule);
/// The same with their sizes, for which compressed files are read.
TextFiles find_text_files(const std::filesystem::path& path, const DocumentRule& rule);

}  // namespace forge::data

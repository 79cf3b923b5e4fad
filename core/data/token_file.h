#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/base/fs.h"

namespace forge::data {

/// Ids first … first+count-1 of a token file.
struct TokenSpan {
  int64_t first = 0;
  int64_t count = 0;
};

/// A file of token ids, mapped read-only: a header (magic "forgetok", format version, bytes an id
/// (2 or 4), counts, hash of the content, fingerprint of the tokenizer, hash of the header), the
/// ids, and for each document the number of its first id, all little-endian.
/// Opening checks the header and the size against the file and throws Error saying what is wrong.
class TokenFile {
 public:
  explicit TokenFile(const std::filesystem::path& path);
  int64_t size() const { return count_; }
  /// Copies ids first … first+count-1. Throws when they are not all there.
  void read(int64_t first, int64_t count, int32_t* ids) const;
  /// 0 where the file was written without its documents' places.
  int64_t documents() const { return documents_; }
  /// The ids of a document, up to the next one. Throws where there is none of that number.
  TokenSpan document(int64_t number) const;
  int bytes_per_id() const { return bytes_per_id_; }
  int64_t file_bytes() const { return static_cast<int64_t>(file_.size()); }
  std::string content_hash() const;
  std::string tokenizer_fingerprint() const;
  /// Reads all of the file and throws when its hash is not the header's.
  void check_content() const;
  /// What was read so far no longer counts as this process's memory.
  void forget() const { file_.forget(); }

 private:
  int64_t place(int64_t number) const;

  MappedFile file_;
  std::filesystem::path path_;
  int64_t count_ = 0;
  int64_t documents_ = 0;
  int bytes_per_id_ = 2;
  size_t places_begin_ = 0;
};

}  // namespace forge::data

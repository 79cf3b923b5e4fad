#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/base/fs.h"

namespace forge::data {

/// A file of token ids, mapped read-only: a 64-byte header (magic "forgetok", format version, bytes
/// an id (2 or 4), count, hash of the ids, fingerprint of the tokenizer, hash of the header), then
/// the ids, little-endian.
/// Opening checks the header and the size against the file and throws Error saying what is wrong.
class TokenFile {
 public:
  explicit TokenFile(const std::filesystem::path& path);
  int64_t size() const { return count_; }
  /// Copies ids first … first+count-1. Throws when they are not all there.
  void read(int64_t first, int64_t count, int32_t* ids) const;
  std::string content_hash() const;
  std::string tokenizer_fingerprint() const;
  /// Reads all ids and throws when their hash is not the header's.
  void check_content() const;

 private:
  MappedFile file_;
  std::filesystem::path path_;
  int64_t count_ = 0;
  int bytes_per_id_ = 2;
};

/// Writes a token file aside and gives it its name when finished; until then nothing of it is seen.
class TokenFileWriter {
 public:
  TokenFileWriter(std::filesystem::path path, int vocab_size, std::string tokenizer_fingerprint);
  ~TokenFileWriter();  ///< removes what was not finished
  TokenFileWriter(const TokenFileWriter&) = delete;
  TokenFileWriter& operator=(const TokenFileWriter&) = delete;
  /// Throws for an id that is negative or too large for the vocabulary's bytes an id.
  void append(const int32_t* ids, size_t count);
  int64_t size() const;
  /// Writes the header, syncs, renames.
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace forge::data

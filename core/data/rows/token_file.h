#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/base/files.h"

namespace forge::data {

/// Ids first … first+count-1 of a token file.
struct TokenSpan {
  int64_t first = 0;
  int64_t count = 0;
};

/// Files up to this size are read whole for their hash before they are used: a tenth of a second.
constexpr int64_t always_checked_bytes = int64_t{256} << 20;

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
  /// The ids that a row of seq_len reads, all but the first of them its targets: packed, those from
  /// row * seq_len on and one more; padded, the first seq_len of a document. Fewer at the end.
  TokenSpan row_span(int64_t row, int seq_len, bool padded) const;
  int bytes_per_id() const { return bytes_per_id_; }
  int64_t file_bytes() const { return static_cast<int64_t>(file_.size()); }
  std::string content_hash() const;
  std::string tokenizer_fingerprint() const;
  /// Reads all of the file and throws when its hash is not the header's.
  void verify_hash() const;
  /// Releases the memory of what was read so far.
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

/// Writes a token file aside and gives it its name when finished; until then nothing of it is seen.
class TokenFileWriter {
 public:
  /// What is not finished is removed with the writer.
  TokenFileWriter(std::filesystem::path path, int vocab_size, std::string tokenizer_fingerprint);

  /// A writer that can be resumed, also after kill -9: a later one of the same `purpose` (a text
  /// that says what is written from what) continues after the last save(). Its files are
  /// <path>.partial, .partial.documents and .partial.json; damaged ones are discarded. The caller
  /// ensures that there is one writer of a path at a time.
  TokenFileWriter(std::filesystem::path path,
                  int vocab_size,
                  std::string tokenizer_fingerprint,
                  const std::string& purpose);

  ~TokenFileWriter();
  TokenFileWriter(const TokenFileWriter&) = delete;
  TokenFileWriter& operator=(const TokenFileWriter&) = delete;

  /// `documents` are the places within these ids where a document begins, ascending; a document
  /// may begin behind the last of them. Throws for an id that is negative or too large for the
  /// vocabulary's bytes an id.
  void append(const int32_t* ids, size_t count, const std::vector<int64_t>& documents = {});
  int64_t size() const;
  int64_t documents() const;

  /// Keeps what is written so far, with a note of where to resume.
  void save(const std::string& note);
  /// The note of the last save of an earlier writer; "" where there was none.
  const std::string& resumed_from() const;

  /// Writes documents and header, syncs, renames.
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace forge::data

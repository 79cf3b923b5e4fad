#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/data/corpus/byte_reader.h"
#include "core/data/corpus/text_files.h"

namespace forge::data {

/// A document larger than this is a mistaken rule: it would be held in memory as a whole.
constexpr size_t max_record_bytes = size_t{64} << 20;

/// Divides text files into records by their rule (line, block, separator or record; not file), one
/// after another, in memory that is bounded by the longest record. A record is the document's text
/// as it stands, of JSON lines the line: newlines around a block or at a separator are left out, a
/// record without any text is none. A file's end ends a record.
class RecordReader {
 public:
  RecordReader(const TextFiles& files, TextPosition begin, TextPosition end);
  ~RecordReader();
  RecordReader(const RecordReader&) = delete;
  RecordReader& operator=(const RecordReader&) = delete;

  /// The next record; it stays until the next call. False where there are no more.
  bool next(std::string_view& record);
  /// Where the next record may begin: a reader from there gives what this one would have given.
  TextPosition position() const { return {file_, offset_ + static_cast<int64_t>(used_)}; }

 private:
  bool open_next();
  bool read_more();
  bool next_raw(std::string_view& record);

  const TextFiles& files_;
  TextPosition end_;
  int64_t file_;
  int64_t offset_;       ///< of the buffer in the file
  size_t used_ = 0;      ///< bytes of the buffer that were given out
  bool at_end_ = false;  ///< the file has no more bytes than the buffer holds
  std::string buffer_;
  std::unique_ptr<ByteReader> bytes_;
};

}  // namespace forge::data

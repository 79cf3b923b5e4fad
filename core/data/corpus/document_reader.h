#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

/// About as many bytes of text are read at a time and encoded by one core.
constexpr size_t chunk_bytes = size_t{1} << 20;

/// First place at or after `from` where a text can be cut, text.size() when there is none.
using TextCut = std::function<size_t(std::string_view text, size_t from)>;

/// Some text of a range: whole records, or a part of a document that is a file.
struct TextChunk {
  struct Part {
    size_t begin = 0;  ///< in `text`
    size_t end = 0;
    bool begins_document = true;  ///< false: continues the document of the chunk before
    bool ends_document = true;    ///< false: the next chunk continues it
  };
  std::string text;
  std::vector<Part> parts;
  TextPosition begin;
  TextPosition end;  ///< where the next chunk begins
};

/// Reads a range of text in chunks. Only what it reads next is held in memory. Another
/// reader can continue at the end of any chunk, and gives the same chunks from there on.
class ChunkReader {
 public:
  /// `cut`: where a document that is a file may be divided. `from`: a chunk's end to continue at;
  /// none: the beginning of the range.
  ChunkReader(TextRange range, TextCut cut, std::optional<TextPosition> from = {});

  std::optional<TextChunk> next();

 private:
  std::optional<TextChunk> next_records();
  std::optional<TextChunk> next_part_of_file();
  bool open_file();

  TextRange range_;
  TextCut cut_;
  TextPosition position_;
  std::unique_ptr<RecordReader> records_;
  std::unique_ptr<ByteReader> bytes_;  ///< of the file that is the document
  std::string ahead_;                  ///< read and not given out
};

/// The text of part `index` of a chunk: of JSON lines the text in the field of the rule. Throws
/// Error naming file and line where that line is no JSON object or has no such text.
std::string document_text(const TextFiles& files, const TextChunk& chunk, size_t index);

}  // namespace forge::data

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/corpus/byte_reader.h"
#include "core/data/corpus/record_reader.h"
#include "core/data/corpus/text_files.h"

namespace forge::data {

/// About so much text is read at once and encoded by one core.
constexpr size_t chunk_bytes = size_t{1} << 20;

/// First place at or after `from` where a text can be cut, text.size() when there is none.
using TextCut = std::function<size_t(std::string_view text, size_t from)>;

/// Some text of a range: whole records, or a part of a document that is a file.
struct TextChunk {
  struct Part {
    size_t begin = 0;  ///< in `text`
    size_t end = 0;
    bool begins_document = true;  ///< false: it goes on with the document of the chunk before
    bool ends_document = true;    ///< false: the next chunk goes on with it
  };
  std::string text;
  std::vector<Part> parts;
  TextPosition begin;
  TextPosition end;  ///< where the next chunk begins
};

/// Reads a range of text in chunks. Only what it reads next is held in memory. Each place where a
/// chunk ends is one to go on from: the chunks from there are those that would have followed.
class ChunkReader {
 public:
  /// `cut`: where a document that is a file may be divided. `from`: where to go on, a chunk's end;
  /// none: at the beginning of the range.
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

}  // namespace forge::data

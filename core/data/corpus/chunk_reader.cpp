#include "core/data/corpus/chunk_reader.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/text.h"

namespace forge::data {

ChunkReader::ChunkReader(TextRange range, TextCut cut, std::optional<TextPosition> from)
    : range_(std::move(range)), cut_(std::move(cut)), position_(from.value_or(range_.begin)) {
  if (range_.files->rule.kind == config::DocumentKind::file) return;
  records_ = std::make_unique<RecordReader>(*range_.files, position_, range_.end);
}

std::optional<TextChunk> ChunkReader::next() {
  return records_ ? next_records() : next_part_of_file();
}

std::optional<TextChunk> ChunkReader::next_records() {
  TextChunk chunk;
  chunk.begin = position_;
  std::string_view record;
  while (chunk.text.size() < chunk_bytes && records_->next(record)) {
    const size_t begin = chunk.text.size();
    chunk.text += record;
    chunk.parts.push_back({begin, chunk.text.size(), true, true});
  }
  if (chunk.parts.empty()) return std::nullopt;
  chunk.end = position_ = records_->position();
  return chunk;
}

/// Goes to the next file that has text within the range.
bool ChunkReader::open_file() {
  while (position_ < range_.end) {
    const auto file = static_cast<size_t>(position_.file);
    const int64_t size = range_.files->sizes[file];
    if (position_.offset < size) {
      bytes_ = open_bytes(range_.files->paths[file], position_.offset);
      return true;
    }
    position_ = {position_.file + 1, 0};
  }
  return false;
}

std::optional<TextChunk> ChunkReader::next_part_of_file() {
  if (!bytes_ && !open_file()) return std::nullopt;
  const bool ends_within = position_.file == range_.end.file;
  const int64_t size = range_.files->sizes[static_cast<size_t>(position_.file)];
  const int64_t end = ends_within ? range_.end.offset : size;
  size_t cut = std::string::npos;
  for (size_t wanted = chunk_bytes; cut == std::string::npos; wanted += chunk_bytes) {
    const int64_t left = end - position_.offset - static_cast<int64_t>(ahead_.size());
    const size_t held = ahead_.size();
    const size_t more = wanted > held ? wanted - held : 0;
    ahead_.resize(held + static_cast<size_t>(std::clamp<int64_t>(left, 0, int64_t(more))));
    const size_t got = bytes_->read(ahead_.data() + held, ahead_.size() - held);
    if (held + got < ahead_.size()) {
      throw Error("'" + shown_path(range_.files->paths[static_cast<size_t>(position_.file)]) +
                      "' became shorter while it was read",
                  {},
                  "",
                  ExitCode::failed);
    }
    if (position_.offset + static_cast<int64_t>(ahead_.size()) == end) {
      cut = ahead_.size();
      break;
    }
    // A cut at the very end may be none once more of the text is there.
    const size_t half = ahead_.size() / 2;
    const size_t place = cut_(ahead_, half);
    if (place < ahead_.size()) cut = place;
    if (ahead_.size() > max_record_bytes) {
      throw Error("'" + shown_path(range_.files->paths[static_cast<size_t>(position_.file)]) +
                      "' has " + human_bytes(max_record_bytes) +
                      " without a place where its text can be divided",
                  {},
                  "say what a document is: data.documents line, block or separator");
    }
  }
  TextChunk chunk;
  chunk.begin = position_;
  const bool begins = position_ == range_.begin || position_.offset == 0;
  const bool ends = position_.offset + static_cast<int64_t>(cut) == end;
  chunk.text = ahead_.substr(0, cut);
  chunk.parts.push_back({0, cut, begins, ends});
  ahead_.erase(0, cut);
  position_.offset += static_cast<int64_t>(cut);
  if (position_.offset == size) position_ = {position_.file + 1, 0};
  if (position_.offset == 0 || position_ == range_.end) bytes_.reset();
  chunk.end = position_;
  return chunk;
}

}  // namespace forge::data

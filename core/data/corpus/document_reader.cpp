#include "core/data/corpus/document_reader.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/fields.h"

namespace forge::data {
namespace {

using config::DocumentKind;

constexpr size_t read_bytes = size_t{256} << 10;

/// Where a record ends and where the next one may begin; npos: not within these bytes.
struct Cut {
  size_t end = std::string_view::npos;
  size_t next = std::string_view::npos;
};

Cut cut_at(std::string_view text, size_t from, std::string_view mark) {
  const size_t place = text.find(mark, from);
  if (place == std::string_view::npos) return {};
  return {place, place + mark.size()};
}

/// The first blank line: one of nothing but spaces, tabs and a carriage return.
Cut cut_at_blank_line(std::string_view text, size_t from) {
  size_t newline = text.find('\n', from);
  while (newline != std::string_view::npos) {
    const size_t end = text.find('\n', newline + 1);
    if (end == std::string_view::npos) return {};
    const std::string_view line = text.substr(newline + 1, end - newline - 1);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) return {newline, end + 1};
    newline = end;
  }
  return {};
}

Cut find_cut(const DocumentRule& rule, std::string_view text, size_t searched) {
  switch (rule.kind) {
    case DocumentKind::separator: {
      const size_t overlap = std::min(searched, rule.separator.size() - 1);
      return cut_at(text, searched - overlap, rule.separator);
    }
    // A blank line that ended with the bytes that were there begins within them.
    case DocumentKind::block: {
      const size_t last = searched == 0 ? 0 : text.rfind('\n', searched - 1);
      if (last == std::string_view::npos || last == 0) return cut_at_blank_line(text, 0);
      const size_t before = text.rfind('\n', last - 1);
      return cut_at_blank_line(text, before == std::string_view::npos ? 0 : before);
    }
    default: return cut_at(text, searched, "\n");
  }
}

std::string_view without_newlines_around(std::string_view text) {
  const size_t begin = text.find_first_not_of("\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of("\r\n") - begin + 1);
}

bool has_text(std::string_view record) {
  return record.find_first_not_of(" \t\r\n") != std::string_view::npos;
}

using Json = nlohmann::json;

/// Name and line of the record. It is found by reading again up to it, for only a mistake needs it.
std::string place_of(const TextFiles& files, const TextChunk& chunk, size_t index) {
  RecordReader reader(files, chunk.begin, chunk.end);
  std::string_view record;
  TextPosition position = chunk.begin;
  for (size_t i = 0; i <= index; ++i) {
    reader.next(record);
    position = reader.position();
  }
  // The position lies behind the newline of the record, or at the end of the file.
  const std::filesystem::path& path = files.paths[static_cast<size_t>(position.file)];
  const auto bytes = open_bytes(path);
  std::string buffer(size_t{1} << 20, '\0');
  int64_t left = std::max<int64_t>(0, position.offset - 1);
  int64_t line = 1;
  while (left > 0) {
    const size_t wanted = static_cast<size_t>(std::min<int64_t>(left, int64_t(buffer.size())));
    const size_t got = bytes->read(buffer.data(), wanted);
    if (got == 0) break;
    line += std::count(buffer.data(), buffer.data() + got, '\n');
    left -= static_cast<int64_t>(got);
  }
  return shown_path(path) + ":" + std::to_string(line);
}

std::string beginning_of(std::string_view text) {
  constexpr size_t shown = 60;
  return text.size() <= shown ? std::string(text) : std::string(text.substr(0, shown)) + "…";
}

}  // namespace

RecordReader::RecordReader(const TextFiles& files, TextPosition begin, TextPosition end)
    : files_(files), end_(end), file_(begin.file), offset_(begin.offset) {}

RecordReader::~RecordReader() = default;

/// Opens the file of the position; false where the range is at its end.
bool RecordReader::open_next() {
  if (!(position() < end_)) return false;
  bytes_ = open_bytes(files_.paths[static_cast<size_t>(file_)], offset_);
  at_end_ = false;
  return true;
}

/// Adds bytes to the buffer, up to the range's end; false where there are no more.
bool RecordReader::read_more() {
  if (at_end_) return false;
  buffer_.erase(0, used_);
  offset_ += static_cast<int64_t>(used_);
  used_ = 0;
  const size_t held = buffer_.size();
  size_t wanted = std::max(read_bytes, held);
  if (file_ == end_.file) {
    const int64_t left = end_.offset - offset_ - static_cast<int64_t>(held);
    wanted = static_cast<size_t>(std::clamp<int64_t>(left, 0, static_cast<int64_t>(wanted)));
  }
  buffer_.resize(held + wanted);
  const size_t got = wanted > 0 ? bytes_->read(buffer_.data() + held, wanted) : 0;
  buffer_.resize(held + got);
  at_end_ = got == 0;
  return got > 0;
}

/// What stands up to the next cut, or to the file's end.
bool RecordReader::next_raw(std::string_view& record) {
  size_t searched = 0;
  while (true) {
    const std::string_view rest = std::string_view(buffer_).substr(used_);
    const Cut cut = find_cut(files_.rule, rest, searched);
    if (cut.end != std::string_view::npos) {
      record = rest.substr(0, cut.end);
      used_ += cut.next;
      return true;
    }
    if (rest.size() > max_record_bytes) {
      throw Error("'" + shown_path(files_.paths[static_cast<size_t>(file_)]) +
                      "' has a document of more than " + human_bytes(max_record_bytes) +
                      " at byte " + with_thousands(position().offset),
                  "does data.documents (" + config::name_of(files_.rule.kind) +
                      ") say how its documents are told apart?");
    }
    searched = rest.size();
    if (read_more()) continue;
    record = std::string_view(buffer_).substr(used_);
    used_ = buffer_.size();
    return !record.empty();
  }
}

bool RecordReader::next(std::string_view& record) {
  while (true) {
    if (!bytes_ && !open_next()) return false;
    while (next_raw(record)) {
      record = without_newlines_around(record);
      if (has_text(record)) return true;
    }
    bytes_.reset();
    buffer_.clear();
    used_ = 0;
    if (file_ == end_.file) {
      offset_ = end_.offset;
      return false;
    }
    ++file_;
    offset_ = 0;
  }
}

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

/// Opens the next file that has text within the range.
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

std::string document_text(const TextFiles& files, const TextChunk& chunk, size_t index) {
  const TextChunk::Part& part = chunk.parts[index];
  const std::string_view text =
      std::string_view(chunk.text).substr(part.begin, part.end - part.begin);
  if (files.rule.kind != config::DocumentKind::record) return std::string(text);
  const Json record = try_parse_json(text);
  const std::string& field = files.rule.field;
  if (!record.is_object()) {
    // Not what it says: a run that fails records this where others may read it.
    throw Error(place_of(files, chunk, index) + " is not a JSON object",
                "data.source jsonl reads one JSON object a line");
  }
  const auto found = record.find(field);
  if (found == record.end()) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : record.items()) keys.push_back(key);
    throw Error(place_of(files, chunk, index) + " has no field '" + field + "'",
                did_you_mean(field,
                             keys,
                             "data.field names the one that holds the text; there are: " +
                                 beginning_of(join(keys, ", "))));
  }
  if (!found->is_string()) {
    throw Error(place_of(files, chunk, index) + ": the field '" + field + "' is no text but " +
                    found->type_name(),
                "data.field names the field that holds the text");
  }
  return found->get<std::string>();
}

}  // namespace forge::data

#include "core/data/corpus/record_reader.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/base/fs.h"
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
                  {},
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

}  // namespace forge::data

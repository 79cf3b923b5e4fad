#include "core/data/corpus/sample.h"

#include <algorithm>

#include "core/data/corpus/byte_reader.h"
#include "core/data/corpus/chunk_reader.h"
#include "core/data/corpus/document_text.h"
#include "core/data/pretokenizer.h"

namespace forge::data {
namespace {

// Changing it changes every trained tokenizer.
constexpr int64_t slice_bytes = int64_t{64} << 10;

// So much is read to find a slice in. The windows of two slices of a text that has more bytes than
// all windows do not overlap, so that a compressed file is read once from its beginning to its end.
constexpr int64_t window_bytes = 4 * slice_bytes;

/// How a text is sampled: all of it where it is no longer than the sample.
struct Plan {
  int64_t total;   ///< bytes of the text
  int64_t slices;  ///< at least one
  bool all;

  Plan(int64_t text_bytes, int64_t sample_bytes)
      : total(text_bytes),
        slices(std::max<int64_t>(1, (sample_bytes + slice_bytes / 2) / slice_bytes)),
        all(text_bytes <= sample_bytes) {}

  int64_t place(int64_t slice) const { return total / slices * slice; }
  bool is_small() const { return total <= slices * window_bytes; }
};

/// Parts of files, the later ones further behind.
class Windows {
 public:
  explicit Windows(const TextFiles& files) : files_(files) {}

  std::string read(int64_t file, int64_t offset, int64_t size) {
    const std::filesystem::path& path = files_.paths[static_cast<size_t>(file)];
    const bool goes_on =
        bytes_ && file == file_ && offset >= offset_ && compression_of(path) != Compression::none;
    if (goes_on) {
      bytes_->skip(offset - offset_);
    } else {
      bytes_ = open_bytes(path, offset);
    }
    std::string text(static_cast<size_t>(size), '\0');
    text.resize(bytes_->read(text.data(), text.size()));
    file_ = file;
    offset_ = offset + static_cast<int64_t>(text.size());
    return text;
  }

 private:
  const TextFiles& files_;
  std::unique_ptr<ByteReader> bytes_;
  int64_t file_ = 0;
  int64_t offset_ = 0;
};

/// What a range has of a file: [first, last).
struct Piece {
  int64_t file;
  int64_t first;
  int64_t last;
};

std::vector<Piece> pieces_of(const TextRange& range) {
  std::vector<Piece> pieces;
  for (int64_t file = range.begin.file; file < static_cast<int64_t>(range.files->sizes.size());
       ++file) {
    const int64_t first = file == range.begin.file ? range.begin.offset : 0;
    const bool is_last = file == range.end.file;
    const int64_t last = is_last ? range.end.offset : range.files->sizes[static_cast<size_t>(file)];
    if (file > range.end.file) break;
    if (first < last) pieces.push_back({file, first, last});
  }
  return pieces;
}

size_t cut(std::string_view text, size_t from) {
  return next_safe_cut(TextSplit::gpt2, text, from);
}

/// The slice of a document that begins at or soon after a place, which lies at `from` in a part of
/// the document.
std::string slice_of(const std::string& text, size_t from) {
  const size_t begin = from == 0 ? 0 : cut(text, from);
  const size_t end = cut(text, std::min(begin + static_cast<size_t>(slice_bytes), text.size()));
  if (begin >= end) return {};
  return text.substr(begin, std::min(end - begin, 2 * static_cast<size_t>(slice_bytes)));
}

std::vector<std::string> slices_of_files(const TextRange& range, const Plan& plan) {
  Windows windows(*range.files);
  const std::vector<Piece> pieces = pieces_of(range);
  std::vector<std::string> found;
  int64_t before = 0;
  int64_t k = 0;
  for (const Piece& piece : pieces) {
    const int64_t size = piece.last - piece.first;
    if (plan.all) found.push_back(windows.read(piece.file, piece.first, size));
    for (; !plan.all && k < plan.slices && plan.place(k) < before + size; ++k) {
      const int64_t place = plan.place(k) - before;
      // With the character before the place: whether a cut may be made there depends on it.
      const int64_t first = std::max<int64_t>(0, place - 4);
      const int64_t wanted = plan.is_small() ? size : window_bytes;
      const std::string text =
          windows.read(piece.file, piece.first + first, std::min(wanted, size - first));
      found.push_back(slice_of(text, static_cast<size_t>(place - first)));
    }
    before += size;
  }
  found.erase(std::remove(found.begin(), found.end(), ""), found.end());
  return found;
}

std::vector<std::string> slices_of_records(const TextRange& range, const Plan& plan) {
  const int64_t start = range.files->bytes_before(range.begin);
  std::vector<std::string> found;
  ChunkReader reader(range, cut);
  int64_t k = 0;
  while (const std::optional<TextChunk> chunk = reader.next()) {
    const int64_t end = range.files->bytes_before(chunk->end) - start;
    int64_t wanted = plan.all ? plan.total + 1 : 0;
    for (; k < plan.slices && plan.place(k) < end; ++k) wanted += slice_bytes;
    for (size_t i = 0; i < chunk->parts.size() && wanted > 0; ++i) {
      found.push_back(document_text(*range.files, *chunk, i));
      wanted -= static_cast<int64_t>(found.back().size());
    }
  }
  return found;
}

}  // namespace

NextDocument sample_of(const TextRange& range, int64_t bytes) {
  const bool files = range.files->rule.kind == config::DocumentKind::file;
  const Plan plan(range.bytes(), bytes);
  auto found = files ? slices_of_files(range, plan) : slices_of_records(range, plan);
  return [found = std::move(found), index = size_t{0}](std::string& document) mutable {
    if (index == found.size()) return false;
    document = found[index++];
    return true;
  };
}

}  // namespace forge::data

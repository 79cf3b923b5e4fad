#include "core/data/corpus/corpus.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/config/fields.h"
#include "core/data/corpus/byte_reader.h"
#include "core/data/corpus/corpus_index.h"
#include "core/data/corpus/document_reader.h"
#include "core/data/tokenizer/pretokenizer.h"

namespace forge::data {
namespace {

using config::DocumentKind;

// Changing it changes every trained tokenizer.
constexpr int64_t slice_bytes = int64_t{64} << 10;

// Bytes that are read to find a slice in. The windows of two slices of a text that has more bytes
// than all windows do not overlap, so that a compressed file is read once from its beginning to its
// end.
constexpr int64_t window_bytes = 4 * slice_bytes;

/// How a text is sampled: all of it where it is no longer than the sample.
struct SamplingPlan {
  int64_t total;   ///< bytes of the text
  int64_t slices;  ///< at least one
  bool all;

  SamplingPlan(int64_t text_bytes, int64_t sample_bytes)
      : total(text_bytes),
        slices(std::max<int64_t>(1, (sample_bytes + slice_bytes / 2) / slice_bytes)),
        all(text_bytes <= sample_bytes) {}

  int64_t place(int64_t slice) const { return total / slices * slice; }
  bool is_small() const { return total <= slices * window_bytes; }
};

/// Parts of files, the later ones further behind.
class WindowReader {
 public:
  explicit WindowReader(const TextFiles& files) : files_(files) {}

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
  const std::vector<int64_t>& sizes = range.files->sizes;
  const auto files = static_cast<int64_t>(sizes.size());
  for (int64_t file = range.begin.file; file <= range.end.file && file < files; ++file) {
    const int64_t first = file == range.begin.file ? range.begin.offset : 0;
    const bool is_last = file == range.end.file;
    const int64_t last = is_last ? range.end.offset : sizes[static_cast<size_t>(file)];
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

std::vector<std::string> slices_of_files(const TextRange& range, const SamplingPlan& plan) {
  WindowReader windows(*range.files);
  std::vector<std::string> found;
  int64_t before = 0;
  int64_t k = 0;
  for (const Piece& piece : pieces_of(range)) {
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

std::vector<std::string> slices_of_records(const TextRange& range, const SamplingPlan& plan) {
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

constexpr int64_t max_search_range = 64 << 10;

/// The place nearest to `wanted` that follows `mark`, if there is one in range.
size_t nearest_after(std::string_view text, size_t wanted, size_t range, std::string_view mark) {
  const size_t low = wanted > range ? wanted - range : 0;
  const size_t high = std::min(text.size(), wanted + range);
  const std::string_view searched = text.substr(low, high - low);
  const size_t middle = wanted - low;
  const size_t after = searched.find(mark, middle > mark.size() ? middle - mark.size() : 0);
  const size_t before = searched.rfind(mark, middle);
  size_t best = std::string_view::npos;
  for (const size_t place : {before, after}) {
    if (place == std::string_view::npos) continue;
    const size_t cut = low + place + mark.size();
    if (cut >= text.size()) continue;
    const auto distance = [&](size_t at) { return at > wanted ? at - wanted : wanted - at; };
    if (best == std::string_view::npos || distance(cut) < distance(best)) best = cut;
  }
  return best;
}

std::string read_part(const fs::path& path, int64_t offset, int64_t size) {
  std::string text(static_cast<size_t>(size), '\0');
  text.resize(open_bytes(path, offset)->read(text.data(), text.size()));
  return text;
}

/// Where files that are documents are divided, `held_out` bytes from their end.
TextPosition cut_of(const TextFiles& files, int64_t held_out) {
  const TextPosition wanted = files.position_at(files.bytes() - held_out);
  if (held_out == 0 || wanted.offset == 0) return wanted;
  const auto file = static_cast<size_t>(wanted.file);
  const int64_t range = std::min(max_search_range, held_out / 4);
  // More bytes on each side than are searched distinguish the window's ends from the file's.
  const int64_t first = std::max<int64_t>(0, wanted.offset - range - 4);
  const int64_t last = std::min(files.sizes[file], wanted.offset + range + 4);
  const std::string window = read_part(files.paths[file], first, last - first);
  const size_t cut =
      cut_near(window, static_cast<size_t>(wanted.offset - first), static_cast<size_t>(range));
  const int64_t offset = first + static_cast<int64_t>(cut);
  return offset == files.sizes[file] ? TextPosition{wanted.file + 1, 0}
                                     : TextPosition{wanted.file, offset};
}

std::string description(const DocumentRule& rule) {
  std::string text = "documents " + config::name_of(rule.kind) + "\n";
  if (rule.kind == DocumentKind::separator) text += rule.separator + "\n";
  if (rule.kind == DocumentKind::record) text += rule.field + "\n";
  return text;
}

std::shared_ptr<const TextFiles> open_files(const fs::path& path, const DocumentRule& rule) {
  auto files = std::make_shared<TextFiles>(find_text_files(path, rule));
  if (files->bytes() > 0) return files;
  throw Error("'" + shown_path(path) + "' is empty",
              "data.path names a file or a folder of files with text in them");
}

}  // namespace

size_t cut_near(std::string_view text, size_t wanted, size_t range) {
  for (const std::string_view mark : {"\n\n", "\r\n\r\n", "\n"}) {
    const size_t cut = nearest_after(text, wanted, range, mark);
    if (cut != std::string_view::npos) return cut;
  }
  // Bytes 10xxxxxx continue a character; more than three of them are no UTF-8.
  size_t cut = wanted;
  const auto continues = [&](size_t at) {
    return at < text.size() && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80;
  };
  for (int i = 0; i < 3 && cut > 0 && continues(cut); ++i) --cut;
  return cut;
}

TextRange all_text(const fs::path& path, const DocumentRule& rule) {
  const auto files = open_files(path, rule);
  return {files, files->begin(), files->end()};
}

void Corpus::require_unchanged() const {
  if (state_of(config_) == state_) return;
  throw Error("a file of '" + shown_path(config_.path) + "' was changed while it was read",
              "repeat the command when nobody writes to the text any more",
              ExitCode::failed);
}

Corpus::Corpus(const config::DataConfig& config, const Progress& progress, const IndexFolder& index)
    : config_(config), state_(state_of(config)) {
  const CorpusIndexCache cache(index.path, config);
  if (const std::optional<CorpusIndex> found = cache.load()) {
    const DocumentRule rule = document_rule(config);
    const auto files_of = [&](const std::string& path, const std::vector<int64_t>& sizes) {
      return std::make_shared<TextFiles>(TextFiles{list_text_files(path, rule), sizes, rule});
    };
    training_.files = files_of(config.path, found->training_sizes);
    evaluation_.files = config.evaluation_path.empty()
                            ? training_.files
                            : files_of(config.evaluation_path, found->evaluation_sizes);
    training_.end = found->training_end;
    evaluation_.begin = found->evaluation_begin;
    evaluation_.end = evaluation_.files->end();
    training_documents_ = found->training_documents;
    fingerprint_ = found->fingerprint;
    warnings_ = texts_of(found->invalid, describe);
    return;
  }
  const InvalidTexts invalid = build_index(config, progress);
  warnings_ = texts_of(invalid, describe);
  if (index.writes)
    cache.store({training_.files->sizes,
                 evaluation_.files->sizes,
                 training_.end,
                 evaluation_.begin,
                 training_documents_,
                 fingerprint_,
                 invalid});
}

std::vector<InvalidText> Corpus::build_index(const config::DataConfig& config,
                                             const Progress& progress) {
  const DocumentRule rule = document_rule(config);
  training_.files = open_files(config.path, rule);
  evaluation_.files =
      config.evaluation_path.empty() ? training_.files : open_files(config.evaluation_path, rule);
  evaluation_.end = evaluation_.files->end();
  return rule.kind == DocumentKind::file ? divide_files(config, progress)
                                         : divide_records(config, progress);
}

std::vector<InvalidText> Corpus::divide_files(const config::DataConfig& config,
                                              const Progress& progress) {
  const TextFiles& files = *training_.files;
  const bool divided = config.evaluation_path.empty();
  const double fraction = divided ? config.held_out_fraction : 0;
  const auto held_out = static_cast<int64_t>(static_cast<double>(files.bytes()) * fraction);
  training_.end = cut_of(files, held_out);
  Hasher hasher;
  InvalidTexts invalid = hash_files(files, training_.end, hasher, progress);
  if (divided) {
    evaluation_.begin = training_.end;
  } else {
    hasher.update("evaluation\n");
    for (InvalidText& text : hash_files(*evaluation_.files, {}, hasher, progress))
      invalid.push_back(std::move(text));
  }
  fingerprint_ = hasher.hex();
  return invalid;
}

std::vector<InvalidText> Corpus::divide_records(const config::DataConfig& config,
                                                const Progress& progress) {
  const TextFiles& files = *training_.files;
  Hasher hasher;
  hasher.update(description(files.rule));
  InvalidTexts invalid = hash_files(files, files.end(), hasher, progress);
  const RecordIndex index = index_records(files, progress);
  int64_t training = index.records;
  if (config.evaluation_path.empty()) {
    const auto held_out = static_cast<double>(index.records) * config.held_out_fraction;
    training -= std::max<int64_t>(1, std::llround(held_out));
    evaluation_.begin = index.position_of(training, files);
    hasher.update("evaluation from " + std::to_string(training) + "\n");
  } else {
    hasher.update("evaluation\n");
    for (InvalidText& text : hash_files(*evaluation_.files, {}, hasher, progress))
      invalid.push_back(std::move(text));
  }
  // Rounded to the nearest, as Hugging Face's datasets does with "train[:10%]".
  training = std::llround(static_cast<double>(training) * config.training_fraction);
  if (training < 1) {
    throw Error("'" + shown_path(config.path) + "' has " + with_thousands(index.records) +
                    " document(s), none of which is left for training",
                "give more text, or say with data.documents what a document is");
  }
  training_.end = index.position_of(training, files);
  training_documents_ = training;
  hasher.update("training " + std::to_string(training) + " of " + std::to_string(index.records));
  fingerprint_ = hasher.hex();
  return invalid;
}

NextDocument Corpus::sample(int64_t bytes) const {
  const bool files = training_.files->rule.kind == DocumentKind::file;
  const SamplingPlan plan(training_.bytes(), bytes);
  auto found = files ? slices_of_files(training_, plan) : slices_of_records(training_, plan);
  return [found = std::move(found), index = size_t{0}](std::string& document) mutable {
    if (index == found.size()) return false;
    document = found[index++];
    return true;
  };
}

}  // namespace forge::data

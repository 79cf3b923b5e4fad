#include "core/data/text_corpus.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/base/text.h"

namespace forge::data {
namespace {

constexpr int64_t max_search_range = 64 << 10;

std::vector<fs::path> files_of(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    throw Error("there is no file or folder '" + shown_path(path) + "'",
                {},
                "data.path names a text file or a folder of .txt files");
  }
  if (fs::is_regular_file(status)) return {path};
  if (!fs::is_directory(status)) {
    throw Error("'" + shown_path(path) + "' is neither a file nor a folder");
  }
  std::vector<fs::path> files;
  fs::directory_iterator entries(path, error);
  if (error) throw system_error("read the folder '" + shown_path(path) + "'", error.value());
  for (const fs::directory_entry& entry : entries) {
    if (entry.path().extension() == ".txt" && entry.is_regular_file(error)) {
      files.push_back(entry.path());
    }
  }
  if (files.empty()) {
    throw Error("the folder '" + shown_path(path) + "' holds no .txt files",
                {},
                "data.path names a text file or a folder of .txt files");
  }
  std::sort(files.begin(), files.end(), [](const fs::path& a, const fs::path& b) {
    return a.native() < b.native();
  });
  return files;
}

void require_text(const fs::path& path, std::string_view text) {
  const size_t place = text.find('\0');
  if (place == std::string_view::npos) return;
  throw Error("'" + shown_path(path) + "' is no text: byte " + with_thousands(place) + " is NUL",
              {},
              "text is read as UTF-8; convert other encodings first, e.g. with iconv");
}

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

TextCorpus::TextCorpus(const fs::path& path, double held_out_fraction) {
  std::vector<std::string_view> documents;
  int64_t total = 0;
  for (const fs::path& file : files_of(path)) {
    files_.emplace_back(file);
    const std::string_view text(reinterpret_cast<const char*>(files_.back().data()),
                                files_.back().size());
    require_text(file, text);
    if (!text.empty()) documents.push_back(text);
    total += static_cast<int64_t>(text.size());
  }
  if (total == 0) {
    throw Error("'" + shown_path(path) + "' is empty",
                {},
                "data.path names a text file or a folder of .txt files with text in them");
  }
  const int64_t held_out = static_cast<int64_t>(static_cast<double>(total) * held_out_fraction);
  const size_t range = static_cast<size_t>(std::min(max_search_range, held_out / 4));
  int64_t remaining = total - held_out;
  Hasher hasher;
  for (const std::string_view document : documents) {
    const int64_t size = static_cast<int64_t>(document.size());
    size_t cut = document.size();
    if (remaining < size) {
      cut = remaining > 0 ? cut_near(document, static_cast<size_t>(remaining), range) : 0;
    }
    remaining -= size;
    if (cut > 0) training_.push_back(document.substr(0, cut));
    if (cut < document.size()) evaluation_.push_back(document.substr(cut));
    hasher.update(std::to_string(cut) + " of " + std::to_string(size) + "\n");
    hasher.update(document);
  }
  fingerprint_ = hasher.hex();
}

int64_t TextCorpus::bytes() const {
  int64_t sum = 0;
  for (const auto* part : {&training_, &evaluation_}) {
    for (const std::string_view document : *part) sum += static_cast<int64_t>(document.size());
  }
  return sum;
}

}  // namespace forge::data

#include "core/data/corpus/survey.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/data/corpus/byte_reader.h"
#include "core/data/corpus/record_reader.h"

namespace forge::data {
namespace {

constexpr size_t survey_read_bytes = size_t{1} << 20;
constexpr int64_t records_between_places = 4096;
constexpr const char* phase = "reading the text";

void require_text(const fs::path& path, std::string_view bytes, int64_t offset) {
  const size_t place = bytes.find('\0');
  if (place == std::string_view::npos) return;
  throw Error("'" + shown_path(path) + "' is no text: byte " +
                  with_thousands(offset + static_cast<int64_t>(place)) + " is NUL",
              {},
              "text is read as UTF-8; convert other encodings first, e.g. with iconv");
}

}  // namespace

void hash_files(const TextFiles& files,
                TextPosition cut,
                Hasher& hasher,
                const Progress& progress) {
  std::string buffer(survey_read_bytes, '\0');
  const auto total = static_cast<double>(std::max<int64_t>(1, files.bytes()));
  int64_t done = 0;
  for (size_t i = 0; i < files.paths.size(); ++i) {
    const int64_t size = files.sizes[i];
    if (size == 0) continue;
    const auto file = static_cast<int64_t>(i);
    const int64_t before = file < cut.file ? size : (file > cut.file ? 0 : cut.offset);
    hasher.update(std::to_string(before) + " of " + std::to_string(size) + "\n");
    const auto reader = open_bytes(files.paths[i]);
    int64_t offset = 0;
    while (const size_t got = reader->read(buffer.data(), buffer.size())) {
      require_text(files.paths[i], {buffer.data(), got}, offset);
      hasher.update(buffer.data(), got);
      offset += static_cast<int64_t>(got);
      if (progress) progress(static_cast<double>(done + offset) / total, phase);
    }
    done += size;
  }
}

RecordIndex index_records(const TextFiles& files, const Progress& progress) {
  RecordReader reader(files, files.begin(), files.end());
  RecordIndex index;
  const auto total = static_cast<double>(std::max<int64_t>(1, files.bytes()));
  TextPosition before = reader.position();
  for (std::string_view record; reader.next(record); before = reader.position()) {
    if (index.records++ % records_between_places != 0) continue;
    index.places.push_back(before);
    if (progress)
      progress(static_cast<double>(files.bytes_before(before)) / total, "counting documents");
  }
  return index;
}

TextPosition RecordIndex::position_of(int64_t number, const TextFiles& files) const {
  if (number >= records) return files.end();
  RecordReader reader(
      files, places[static_cast<size_t>(number / records_between_places)], files.end());
  std::string_view record;
  for (int64_t i = number % records_between_places; i > 0; --i) reader.next(record);
  return reader.position();
}

}  // namespace forge::data

#include "core/data/corpus/corpus_index.h"

#include <sys/stat.h>
#include <algorithm>
#include <limits>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/json_file.h"
#include "core/base/text.h"
#include "core/config/fields.h"
#include "core/data/corpus/byte_reader.h"
#include "core/data/corpus/document_reader.h"
#include "core/python/unicode.h"

namespace forge::data {
namespace {

constexpr size_t bytes_per_read = size_t{1} << 20;
constexpr int64_t records_between_places = 4096;
constexpr const char* hashing_phase = "hashing text";

void require_text(const fs::path& path, std::string_view bytes, int64_t offset) {
  const size_t place = bytes.find('\0');
  if (place == std::string_view::npos) return;
  throw Error("'" + shown_path(path) + "' is no text: byte " +
                  with_thousands(offset + static_cast<int64_t>(place)) + " is NUL",
              "text is read as UTF-8; convert other encodings first, e.g. with iconv");
}

/// Finds the bytes that are no UTF-8 in a text that comes in parts.
class InvalidBytes {
 public:
  void add(std::string_view part) {
    std::string joined;
    if (!rest_.empty()) part = joined = rest_ + std::string(part);
    rest_.clear();
    for (size_t at = 0; (at = next(part, at)) != std::string_view::npos; ++at) {
      if (part.size() - at < longest_character) {  // it may be whole with the next part
        rest_ = part.substr(at);
        break;
      }
      count(offset_ + static_cast<int64_t>(at));
    }
    offset_ += static_cast<int64_t>(part.size() - rest_.size());
  }
  /// Nothing follows the last part.
  void finish() {
    for (size_t at = 0; (at = next(rest_, at)) != std::string_view::npos; ++at)
      count(offset_ + static_cast<int64_t>(at));
  }
  int64_t first() const { return first_; }
  int64_t count() const { return count_; }

 private:
  static constexpr size_t longest_character = 4;

  static size_t next(std::string_view text, size_t from) {
    const size_t at = python::find_invalid_utf8(text.substr(from));
    return at == std::string_view::npos ? at : from + at;
  }
  void count(int64_t offset) {
    if (count_++ == 0) first_ = offset;
  }

  std::string rest_;
  int64_t offset_ = 0;  ///< of `rest_` in the text
  int64_t first_ = 0;
  int64_t count_ = 0;
};

using Json = nlohmann::json;

constexpr int index_version = 1;  // raised where the same files would get another index

/// Longer than the steps in which any file system counts its times.
constexpr double settled_seconds = 3;

int64_t nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// What tells that a file is another one or has changed; null where that cannot be told yet.
Json state_of(const fs::path& path, double now) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return nullptr;
  const int64_t changed = nanoseconds(status.st_ctim);
  if (now - static_cast<double>(changed) * 1e-9 < settled_seconds) return nullptr;
  return {fs::absolute(path).string(),
          status.st_size,
          status.st_dev,
          status.st_ino,
          nanoseconds(status.st_mtim),
          changed};
}

/// "" where the state of a file cannot be told.
std::string state_of(const config::DataConfig& config, double now) {
  const DocumentRule rule = document_rule(config);
  Json state = {index_version,
                config::name_of(rule.kind),
                rule.separator,
                rule.field,
                config.held_out_fraction,
                config.training_fraction};
  for (const std::string& path : {config.path, config.evaluation_path}) {
    Json files = Json::array();
    if (!path.empty()) {
      for (const fs::path& file : list_text_files(path, rule)) files.push_back(state_of(file, now));
    }
    for (const Json& file : files) {
      if (file.is_null()) return "";
    }
    state.push_back(std::move(files));
  }
  // Names need not be UTF-8.
  return json_text(state);
}

/// Whether the index can be of these files, whatever somebody wrote.
bool fits(const CorpusIndex& index, const config::DataConfig& config) {
  const auto files = [rule = document_rule(config)](const std::string& path) {
    return list_text_files(path, rule).size();
  };
  const bool divided = config.evaluation_path.empty();
  const size_t training = files(config.path);
  const size_t evaluation = divided ? training : files(config.evaluation_path);
  const auto lies_in = [](const TextPosition& position, const std::vector<int64_t>& sizes) {
    const auto end = static_cast<int64_t>(sizes.size());
    if (position.file == end) return position.offset == 0;
    return position.file >= 0 && position.file < end && position.offset >= 0 &&
           position.offset <= sizes[static_cast<size_t>(position.file)];  // behind its last one
  };
  return index.training_sizes.size() == training && index.evaluation_sizes.size() == evaluation &&
         lies_in(index.training_end, index.training_sizes) &&
         (lies_in(index.evaluation_begin, index.evaluation_sizes) ||
          index.evaluation_begin == TextPosition{});
}

Json to_json(const TextPosition& position) { return {position.file, position.offset}; }
TextPosition position_from(const Json& json) {
  return {json.at(0).get<int64_t>(), json.at(1).get<int64_t>()};
}

}  // namespace

std::string state_of(const config::DataConfig& config) {
  return state_of(config, std::numeric_limits<double>::infinity());
}

std::string describe(const InvalidText& text) {
  return "'" + shown_path(text.file) + "' has " + with_thousands(text.count) +
         (text.count == 1 ? " byte that is" : " bytes that are") +
         " not UTF-8, the first at byte " + with_thousands(text.first) +
         "; the model is trained on them as they are. If that is not intended, convert the file, "
         "for example with iconv -f LATIN1 -t UTF-8";
}

std::vector<InvalidText> hash_files(const TextFiles& files,
                                    TextPosition cut,
                                    Hasher& hasher,
                                    const Progress& progress) {
  std::vector<InvalidText> invalid;
  std::string buffer(bytes_per_read, '\0');
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
    InvalidBytes invalid_bytes;
    while (const size_t got = reader->read(buffer.data(), buffer.size())) {
      require_text(files.paths[i], {buffer.data(), got}, offset);
      invalid_bytes.add({buffer.data(), got});
      hasher.update(buffer.data(), got);
      offset += static_cast<int64_t>(got);
      if (progress) progress(static_cast<double>(done + offset) / total, hashing_phase);
    }
    done += size;
    invalid_bytes.finish();
    if (invalid_bytes.count() > 0)
      invalid.push_back({files.paths[i].string(), invalid_bytes.first(), invalid_bytes.count()});
  }
  return invalid;
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

CorpusIndexCache::CorpusIndexCache(const fs::path& folder,
                                   const config::DataConfig& config,
                                   double now)
    : config_(config), now_(now) {
  if (folder.empty()) return;
  state_ = state_of(config, now);
  if (!state_.empty()) file_ = folder / (hash_hex(state_) + ".json");
}

/// It has a number for each file and group of documents of a corpus.
constexpr uintmax_t largest_index = uintmax_t{256} << 20;

std::optional<CorpusIndex> CorpusIndexCache::load() const {
  if (file_.empty()) return std::nullopt;
  try {
    const Json json = read_json_file(file_, largest_index);
    CorpusIndex index;
    json.at("training_sizes").get_to(index.training_sizes);
    json.at("evaluation_sizes").get_to(index.evaluation_sizes);
    index.training_end = position_from(json.at("training_end"));
    index.evaluation_begin = position_from(json.at("evaluation_begin"));
    json.at("training_documents").get_to(index.training_documents);
    json.at("fingerprint").get_to(index.fingerprint);
    for (const Json& text : json.at("not_utf8"))
      index.invalid.push_back({text.at(0), text.at(1), text.at(2)});
    return fits(index, config_) ? std::optional(std::move(index)) : std::nullopt;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

void CorpusIndexCache::store(const CorpusIndex& index) const {
  if (file_.empty()) return;
  try {
    if (state_of(config_, now_) != state_) return;
    make_directories(file_.parent_path());
    Json invalid = Json::array();
    for (const InvalidText& text : index.invalid)
      invalid.push_back({text.file, text.first, text.count});
    const Json json = {{"training_sizes", index.training_sizes},
                       {"evaluation_sizes", index.evaluation_sizes},
                       {"training_end", to_json(index.training_end)},
                       {"evaluation_begin", to_json(index.evaluation_begin)},
                       {"training_documents", index.training_documents},
                       {"fingerprint", index.fingerprint},
                       {"not_utf8", invalid}};
    write_file_atomic(file_, json_text(json) + "\n");
  } catch (const Error&) {
    // The next run reads the text again.
  }
}

}  // namespace forge::data

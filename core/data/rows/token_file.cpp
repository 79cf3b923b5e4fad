#include "core/data/rows/token_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/json_file.h"
#include "core/base/text.h"

namespace forge::data {

/// The first 72 bytes of a token file. All numbers are little-endian, as on every machine that
/// forge runs on. Behind them lie the ids, then, at a multiple of eight bytes, the documents'
/// places.
struct TokenFileHeader {
  char magic[8] = {'f', 'o', 'r', 'g', 'e', 't', 'o', 'k'};
  uint32_t version = 2;
  uint32_t bytes_per_id = 2;
  uint64_t count = 0;
  uint64_t documents = 0;
  uint8_t content_hash[16] = {};  ///< of ids and places
  uint8_t tokenizer_fingerprint[16] = {};
  uint8_t header_hash[8] = {};  ///< of all before it

  size_t ids_end() const { return sizeof(TokenFileHeader) + count * bytes_per_id; }
  size_t places_begin() const { return (ids_end() + 7) / 8 * 8; }
  size_t file_bytes() const { return places_begin() + 8 * documents; }
};
static_assert(sizeof(TokenFileHeader) == 72, "the header has no padding");

namespace {

constexpr uint64_t max_count = uint64_t{1} << 48;
constexpr size_t checked_at_once = size_t{16} << 20;  // bytes

TokenFileHeader header_of(const MappedFile& file) {
  TokenFileHeader header;
  std::memcpy(&header, file.data(), sizeof header);
  return header;
}

[[noreturn]] void refuse_file(const fs::path& path, const std::string& reason) {
  throw Error(
      "'" + shown_path(path) + "' is not a whole token file: " + reason,
      "remove it: 'forge run' and 'forge data prepare' make the files of forge's cache anew",
      ExitCode::failed);
}

/// `text` has two hexadecimal digits a byte.
void from_hex(const std::string& text, uint8_t* bytes, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<uint8_t>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  }
}

/// Sets header_hash.
void seal(TokenFileHeader& header) {
  const std::string hash =
      hash_hex({reinterpret_cast<const char*>(&header), offsetof(TokenFileHeader, header_hash)});
  from_hex(hash, header.header_hash, sizeof header.header_hash);
}

}  // namespace

TokenFile::TokenFile(const fs::path& path) : file_(path), path_(path) {
  if (file_.size() < sizeof(TokenFileHeader)) refuse_file(path, "it ends within its header");
  const TokenFileHeader header = header_of(file_);
  if (std::memcmp(header.magic, TokenFileHeader().magic, sizeof header.magic) != 0) {
    refuse_file(path, "it does not begin with \"forgetok\"");
  }
  if (header.version != TokenFileHeader().version) {
    refuse_file(path, "its format has version " + std::to_string(header.version));
  }
  TokenFileHeader sealed = header;
  seal(sealed);
  const bool sound = std::memcmp(&sealed, &header, sizeof header) == 0 &&
                     header.count <= max_count && header.documents <= max_count &&
                     (header.bytes_per_id == 2 || header.bytes_per_id == 4);
  if (!sound) refuse_file(path, "its header is damaged");
  count_ = static_cast<int64_t>(header.count);
  documents_ = static_cast<int64_t>(header.documents);
  bytes_per_id_ = static_cast<int>(header.bytes_per_id);
  places_begin_ = header.places_begin();
  if (file_.size() != header.file_bytes()) {
    refuse_file(path,
                "it has " + std::to_string(file_.size()) + " bytes, its header says " +
                    std::to_string(header.file_bytes()));
  }
}

void TokenFile::read(int64_t first, int64_t count, int32_t* ids) const {
  if (first < 0 || count < 0 || first > count_ || count > count_ - first) {
    throw Error("'" + shown_path(path_) + "' holds " + std::to_string(count_) + " ids, not " +
                std::to_string(count) + " from id " + std::to_string(first) + " on");
  }
  const std::byte* bytes = file_.data() + sizeof(TokenFileHeader) + first * bytes_per_id_;
  if (bytes_per_id_ == 4) {
    std::memcpy(ids, bytes, static_cast<size_t>(count) * 4);
    return;
  }
  const uint16_t* narrow = reinterpret_cast<const uint16_t*>(bytes);
  for (int64_t i = 0; i < count; ++i) ids[i] = narrow[i];
}

int64_t TokenFile::place(int64_t number) const {
  if (number == documents_) return count_;
  uint64_t place = 0;
  std::memcpy(&place, file_.data() + places_begin_ + 8 * number, sizeof place);
  return static_cast<int64_t>(place);
}

TokenSpan TokenFile::document(int64_t number) const {
  if (number < 0 || number >= documents_) {
    throw Error("'" + shown_path(path_) + "' holds " + with_thousands(documents_) +
                " documents, not one of number " + std::to_string(number));
  }
  const int64_t first = place(number);
  const int64_t end = place(number + 1);
  if (first < 0 || first > end || end > count_) {
    refuse_file(path_, "document " + std::to_string(number) + " is not where its ids are");
  }
  return {first, end - first};
}

TokenSpan TokenFile::row_span(int64_t row, int seq_len, bool padded) const {
  if (padded) {
    const TokenSpan span = document(row);
    return {span.first, std::min<int64_t>(seq_len, span.count)};
  }
  const int64_t first = row * seq_len;
  return {first, std::min<int64_t>(int64_t{seq_len} + 1, count_ - first)};
}

std::string TokenFile::content_hash() const {
  const TokenFileHeader header = header_of(file_);
  return to_hex(header.content_hash, sizeof header.content_hash);
}

std::string TokenFile::tokenizer_fingerprint() const {
  const TokenFileHeader header = header_of(file_);
  return to_hex(header.tokenizer_fingerprint, sizeof header.tokenizer_fingerprint);
}

void TokenFile::verify_hash() const {
  const TokenFileHeader header = header_of(file_);
  Hasher hasher;
  const auto add = [&](size_t begin, size_t end) {
    for (size_t at = begin; at < end; at += checked_at_once) {
      hasher.update(file_.data() + at, std::min(checked_at_once, end - at));
      forget();
    }
  };
  add(sizeof header, header.ids_end());
  add(places_begin_, file_.size());
  if (hasher.hex() != content_hash()) {
    refuse_file(path_, "its content does not have the hash in its header");
  }
}

namespace {

constexpr size_t copy_bytes = size_t{1} << 20;

/// A file that is written from its beginning to its end and read again.
class WorkFile {
 public:
  WorkFile(fs::path path, bool keep_content) : path_(std::move(path)) {
    const int begin = keep_content ? 0 : O_TRUNC;
    file_ = FileDescriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | begin, 0666));
    if (!file_) fail();
  }

  const fs::path& path() const { return path_; }
  int get() const { return file_.get(); }

  void write(const void* data, size_t size) {
    write_all(file_.get(), {static_cast<const char*>(data), size}, path_);
  }

  /// Writes over what the file begins with; what is written next comes after that.
  void write_at_beginning(const void* data, size_t size) {
    if (::lseek(file_.get(), 0, SEEK_SET) != 0) fail();
    write(data, size);
  }

  /// Tells `take` the bytes from `first` to `end`; false where the file ends before.
  template <class Take>
  bool read(size_t first, size_t end, Take take) const {
    std::vector<char> buffer(copy_bytes);
    while (first < end) {
      const size_t wanted = std::min(buffer.size(), end - first);
      const ssize_t got = ::pread(file_.get(), buffer.data(), wanted, static_cast<off_t>(first));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail();
      if (got == 0) return false;
      take(buffer.data(), static_cast<size_t>(got));
      first += static_cast<size_t>(got);
    }
    return true;
  }

  /// Cuts the file; what is written next comes there.
  void cut(size_t size) {
    if (::ftruncate(file_.get(), static_cast<off_t>(size)) != 0) fail();
    if (::lseek(file_.get(), static_cast<off_t>(size), SEEK_SET) < 0) fail();
  }

 private:
  [[noreturn]] void fail() const { throw system_error("write '" + path_.string() + "'", errno); }

  fs::path path_;
  FileDescriptor file_;
};

/// What save() stores beside the files.
struct ResumeState {
  uint64_t count = 0;
  uint64_t documents = 0;
  std::string hash;  ///< of the ids, then of the places
  std::string note;
};

std::optional<ResumeState> read_resume_state(const fs::path& path, const std::string& purpose) {
  if (!path_exists(path)) return std::nullopt;
  try {
    const nlohmann::json json = read_json_file(path);
    if (!json.is_object() || json.value("purpose", "") != purpose) return std::nullopt;
    return ResumeState{json.at("ids").get<uint64_t>(),
                       json.at("documents").get<uint64_t>(),
                       json.at("hash").get<std::string>(),
                       json.at("note").get<std::string>()};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

struct TokenFileWriter::Impl {
  Impl(const fs::path& target, const std::string& aside, bool keep)
      : path(target),
        ids(target.string() + aside, keep),
        places(target.string() + aside + ".documents", keep),
        journal(target.string() + aside + ".json"),
        kept(keep) {}

  fs::path path;
  WorkFile ids;
  WorkFile places;
  fs::path journal;
  bool kept;
  std::string purpose;
  std::string resumed_from;
  TokenFileHeader header;
  Hasher hasher;
  Hasher places_hasher;
  std::vector<char> buffer;
  bool finished = false;

  void set_tokenizer(int vocab_size, const std::string& fingerprint) {
    header.bytes_per_id = vocab_size <= 0x10000 ? 2 : 4;
    if (fingerprint.size() != 2 * sizeof header.tokenizer_fingerprint ||
        fingerprint.find_first_not_of("0123456789abcdef") != std::string::npos) {
      throw Error("'" + fingerprint + "' is not a tokenizer's fingerprint");
    }
    from_hex(fingerprint, header.tokenizer_fingerprint, sizeof header.tokenizer_fingerprint);
  }

  void begin() {
    ids.cut(0);
    places.cut(0);
    const TokenFileHeader unsealed;  // what a killed writer leaves is no token file
    ids.write(&unsealed, sizeof unsealed);
  }

  std::string hash_so_far() const { return hasher.hex() + places_hasher.hex(); }

  /// Goes on where the journal says, if what lies there is what was saved.
  bool resume() {
    const std::optional<ResumeState> saved = read_resume_state(journal, purpose);
    if (!saved) return false;
    header.count = saved->count;
    header.documents = saved->documents;
    const bool there = ids.read(sizeof header, header.ids_end(), [&](auto* b, size_t n) {
      hasher.update(b, n);
    }) && places.read(0, 8 * header.documents, [&](auto* b, size_t n) {
      places_hasher.update(b, n);
    });
    if (!there || hash_so_far() != saved->hash) return false;
    ids.cut(header.ids_end());
    places.cut(8 * header.documents);
    resumed_from = saved->note;
    return true;
  }

  void remove() const {
    ::unlink(places.path().c_str());
    ::unlink(journal.c_str());
  }
};

TokenFileWriter::TokenFileWriter(fs::path path, int vocab_size, std::string tokenizer_fingerprint)
    : impl_(std::make_unique<Impl>(path, ".tmp-" + process_digits(), false)) {
  impl_->set_tokenizer(vocab_size, tokenizer_fingerprint);
  impl_->begin();
}

TokenFileWriter::TokenFileWriter(fs::path path,
                                 int vocab_size,
                                 std::string tokenizer_fingerprint,
                                 const std::string& purpose)
    : impl_(std::make_unique<Impl>(path, ".partial", true)) {
  impl_->set_tokenizer(vocab_size, tokenizer_fingerprint);
  impl_->purpose = purpose + " " + tokenizer_fingerprint;
  if (impl_->resume()) return;
  impl_ = std::make_unique<Impl>(path, ".partial", true);
  impl_->set_tokenizer(vocab_size, tokenizer_fingerprint);
  impl_->purpose = purpose + " " + tokenizer_fingerprint;
  impl_->begin();
}

TokenFileWriter::~TokenFileWriter() {
  if (impl_->finished || impl_->kept) return;
  ::unlink(impl_->ids.path().c_str());
  impl_->remove();
}

void TokenFileWriter::append(const int32_t* ids,
                             size_t count,
                             const std::vector<int64_t>& documents) {
  TokenFileHeader& header = impl_->header;
  const int64_t limit = header.bytes_per_id == 2 ? 0xffff : 0x7fffffff;
  impl_->buffer.resize(count * header.bytes_per_id);
  char* out = impl_->buffer.data();
  for (size_t i = 0; i < count; ++i) {
    if (ids[i] < 0 || ids[i] > limit) {
      throw Error("the id " + std::to_string(ids[i]) + " does not fit into the token file");
    }
    std::memcpy(out, &ids[i], header.bytes_per_id);  // the low bytes come first
    out += header.bytes_per_id;
  }
  std::vector<uint64_t> places;
  places.reserve(documents.size());
  for (const int64_t place : documents) {
    places.push_back(header.count + static_cast<uint64_t>(place));
  }
  impl_->ids.write(impl_->buffer.data(), impl_->buffer.size());
  impl_->hasher.update(impl_->buffer.data(), impl_->buffer.size());
  impl_->places.write(places.data(), 8 * places.size());
  impl_->places_hasher.update(places.data(), 8 * places.size());
  header.count += count;
  header.documents += places.size();
}

int64_t TokenFileWriter::size() const { return static_cast<int64_t>(impl_->header.count); }
int64_t TokenFileWriter::documents() const { return static_cast<int64_t>(impl_->header.documents); }
const std::string& TokenFileWriter::resumed_from() const { return impl_->resumed_from; }

void TokenFileWriter::save(const std::string& note) {
  if (!impl_->kept) return;
  const nlohmann::json journal = {{"purpose", impl_->purpose},
                                  {"ids", impl_->header.count},
                                  {"documents", impl_->header.documents},
                                  {"hash", impl_->hash_so_far()},
                                  {"note", note}};
  write_file_atomic(impl_->journal, json_text(journal, 2) + "\n");
}

void TokenFileWriter::finish() {
  TokenFileHeader& header = impl_->header;
  const char padding[8] = {};
  impl_->ids.write(padding, header.places_begin() - header.ids_end());
  impl_->places.read(0, 8 * header.documents, [&](const char* bytes, size_t size) {
    impl_->ids.write(bytes, size);
    impl_->hasher.update(bytes, size);
  });
  from_hex(impl_->hasher.hex(), header.content_hash, sizeof header.content_hash);
  seal(header);
  const fs::path& aside = impl_->ids.path();
  impl_->ids.write_at_beginning(&header, sizeof header);
  if (::fsync(impl_->ids.get()) != 0) throw system_error("sync '" + aside.string() + "'", errno);
  rename_path(aside, impl_->path);
  impl_->finished = true;
  impl_->remove();
  sync_path(impl_->path.has_parent_path() ? impl_->path.parent_path() : fs::path("."));
}

}  // namespace forge::data

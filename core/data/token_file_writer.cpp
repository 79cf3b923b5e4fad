#include "core/data/token_file_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/hash.h"
#include "core/base/json_text.h"
#include "core/data/token_file_format.h"

namespace forge::data {
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
    const char* bytes = static_cast<const char*>(data);
    while (size > 0) {
      const ssize_t written = ::write(file_.get(), bytes, size);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail();
      bytes += written;
      size -= static_cast<size_t>(written);
    }
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

  /// Forgets what lies behind and goes on there.
  void cut(size_t size) {
    if (::ftruncate(file_.get(), static_cast<off_t>(size)) != 0) fail();
    if (::lseek(file_.get(), static_cast<off_t>(size), SEEK_SET) < 0) fail();
  }

 private:
  [[noreturn]] void fail() const { throw system_error("write '" + path_.string() + "'", errno); }

  fs::path path_;
  FileDescriptor file_;
};

/// What a save wrote down.
struct Journal {
  uint64_t count = 0;
  uint64_t documents = 0;
  std::string hash;  ///< of ids and places, each for itself
  std::string note;
};

std::optional<Journal> read_journal(const fs::path& path, const std::string& purpose) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::nullopt;
  const nlohmann::json json = try_parse_json(read_file(path));
  if (!json.is_object() || json.value("purpose", "") != purpose) return std::nullopt;
  try {
    return Journal{json.at("ids").get<uint64_t>(),
                   json.at("documents").get<uint64_t>(),
                   json.at("hash").get<std::string>(),
                   json.at("note").get<std::string>()};
  } catch (const nlohmann::json::exception&) {
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
    const std::optional<Journal> saved = read_journal(journal, purpose);
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
    : impl_(std::make_unique<Impl>(path, ".tmp-" + std::to_string(::getpid()), false)) {
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

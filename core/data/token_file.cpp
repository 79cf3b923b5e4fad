#include "core/data/token_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/base/hash.h"

namespace forge::data {
namespace {

/// The first 64 bytes of a token file. All numbers are little-endian, as on every machine that
/// forge runs on.
struct Header {
  char magic[8] = {'f', 'o', 'r', 'g', 'e', 't', 'o', 'k'};
  uint32_t version = 1;
  uint32_t bytes_per_id = 2;
  uint64_t count = 0;
  uint8_t content_hash[16] = {};
  uint8_t tokenizer_fingerprint[16] = {};
  uint8_t header_hash[8] = {};  ///< of all before it
};
static_assert(sizeof(Header) == 64, "the header has no padding");

constexpr int64_t max_count = int64_t{1} << 48;

std::string to_hex(const uint8_t* bytes, size_t size) {
  static const char digits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < size; ++i) {
    text += digits[bytes[i] >> 4];
    text += digits[bytes[i] & 15];
  }
  return text;
}

void from_hex(const std::string& text, uint8_t* bytes, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<uint8_t>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  }
}

void seal(Header& header) {
  const std::string hash =
      hash_hex({reinterpret_cast<const char*>(&header), offsetof(Header, header_hash)});
  from_hex(hash, header.header_hash, sizeof header.header_hash);
}

Header header_of(const MappedFile& file) {
  Header header;
  std::memcpy(&header, file.data(), sizeof header);
  return header;
}

[[noreturn]] void refuse(const fs::path& path, const std::string& reason) {
  throw Error("'" + shown_path(path) + "' is not a whole token file: " + reason,
              {},
              "it is made anew when it lies in forge's cache and is removed",
              ExitCode::failed);
}

}  // namespace

TokenFile::TokenFile(const fs::path& path) : file_(path), path_(path) {
  if (file_.size() < sizeof(Header)) refuse(path, "it ends within its header");
  const Header header = header_of(file_);
  if (std::memcmp(header.magic, Header().magic, sizeof header.magic) != 0) {
    refuse(path, "it does not begin with \"forgetok\"");
  }
  if (header.version != Header().version) {
    refuse(path, "its format has version " + std::to_string(header.version));
  }
  Header sealed = header;
  seal(sealed);
  const bool sound = std::memcmp(&sealed, &header, sizeof header) == 0 &&
                     header.count <= max_count &&
                     (header.bytes_per_id == 2 || header.bytes_per_id == 4);
  if (!sound) refuse(path, "its header is damaged");
  count_ = static_cast<int64_t>(header.count);
  bytes_per_id_ = static_cast<int>(header.bytes_per_id);
  const uint64_t expected = sizeof(Header) + header.count * header.bytes_per_id;
  if (file_.size() != expected) {
    refuse(path,
           "it has " + std::to_string(file_.size()) + " bytes, its header says " +
               std::to_string(expected));
  }
}

void TokenFile::read(int64_t first, int64_t count, int32_t* ids) const {
  if (first < 0 || count < 0 || first > count_ || count > count_ - first) {
    throw Error("'" + shown_path(path_) + "' holds " + std::to_string(count_) + " ids, not " +
                std::to_string(count) + " from id " + std::to_string(first) + " on");
  }
  const std::byte* bytes = file_.data() + sizeof(Header) + first * bytes_per_id_;
  if (bytes_per_id_ == 4) {
    std::memcpy(ids, bytes, static_cast<size_t>(count) * 4);
    return;
  }
  const uint16_t* narrow = reinterpret_cast<const uint16_t*>(bytes);
  for (int64_t i = 0; i < count; ++i) ids[i] = narrow[i];
}

std::string TokenFile::content_hash() const {
  const Header header = header_of(file_);
  return to_hex(header.content_hash, sizeof header.content_hash);
}

std::string TokenFile::tokenizer_fingerprint() const {
  const Header header = header_of(file_);
  return to_hex(header.tokenizer_fingerprint, sizeof header.tokenizer_fingerprint);
}

void TokenFile::check_content() const {
  Hasher hasher;
  hasher.update(file_.data() + sizeof(Header), file_.size() - sizeof(Header));
  if (hasher.hex() != content_hash()) refuse(path_, "its ids do not have the hash in its header");
}

struct TokenFileWriter::Impl {
  fs::path path;
  fs::path aside;
  FileDescriptor file;
  Header header;
  Hasher hasher;
  std::vector<char> buffer;
  bool finished = false;

  void write(const void* data, size_t size) {
    const char* bytes = static_cast<const char*>(data);
    while (size > 0) {
      const ssize_t written = ::write(file.get(), bytes, size);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) {
        throw system_error("write '" + aside.string() + "'", written < 0 ? errno : EIO);
      }
      bytes += written;
      size -= static_cast<size_t>(written);
    }
  }
};

TokenFileWriter::TokenFileWriter(fs::path path, int vocab_size, std::string tokenizer_fingerprint)
    : impl_(std::make_unique<Impl>()) {
  impl_->path = std::move(path);
  impl_->aside = impl_->path.string() + ".tmp-" + std::to_string(::getpid());
  impl_->header.bytes_per_id = vocab_size <= 0x10000 ? 2 : 4;
  if (tokenizer_fingerprint.size() != 2 * sizeof(Header::tokenizer_fingerprint) ||
      tokenizer_fingerprint.find_first_not_of("0123456789abcdef") != std::string::npos) {
    throw Error("'" + tokenizer_fingerprint + "' is not a tokenizer's fingerprint");
  }
  from_hex(tokenizer_fingerprint,
           impl_->header.tokenizer_fingerprint,
           sizeof impl_->header.tokenizer_fingerprint);
  impl_->file =
      FileDescriptor(::open(impl_->aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!impl_->file) throw system_error("write '" + impl_->aside.string() + "'", errno);
  const Header unsealed;  // what a killed writer leaves is no token file
  impl_->write(&unsealed, sizeof unsealed);
}

TokenFileWriter::~TokenFileWriter() {
  if (!impl_->finished && impl_->file) ::unlink(impl_->aside.c_str());
}

void TokenFileWriter::append(const int32_t* ids, size_t count) {
  const int64_t limit = impl_->header.bytes_per_id == 2 ? 0xffff : 0x7fffffff;
  impl_->buffer.resize(count * impl_->header.bytes_per_id);
  char* out = impl_->buffer.data();
  for (size_t i = 0; i < count; ++i) {
    if (ids[i] < 0 || ids[i] > limit) {
      throw Error("the id " + std::to_string(ids[i]) + " does not fit into the token file");
    }
    std::memcpy(out, &ids[i], impl_->header.bytes_per_id);  // the low bytes come first
    out += impl_->header.bytes_per_id;
  }
  impl_->write(impl_->buffer.data(), impl_->buffer.size());
  impl_->hasher.update(impl_->buffer.data(), impl_->buffer.size());
  impl_->header.count += count;
}

int64_t TokenFileWriter::size() const { return static_cast<int64_t>(impl_->header.count); }

void TokenFileWriter::finish() {
  Header& header = impl_->header;
  from_hex(impl_->hasher.hex(), header.content_hash, sizeof header.content_hash);
  seal(header);
  if (::pwrite(impl_->file.get(), &header, sizeof header, 0) != sizeof header) {
    throw system_error("write '" + impl_->aside.string() + "'", errno);
  }
  if (::fsync(impl_->file.get()) != 0)
    throw system_error("sync '" + impl_->aside.string() + "'", errno);
  if (::rename(impl_->aside.c_str(), impl_->path.c_str()) != 0) {
    throw system_error("rename '" + impl_->aside.string() + "'", errno);
  }
  impl_->finished = true;
  sync_path(impl_->path.has_parent_path() ? impl_->path.parent_path() : fs::path("."));
}

}  // namespace forge::data

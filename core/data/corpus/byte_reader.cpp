#include "core/data/corpus/byte_reader.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <new>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"

namespace forge::data {
namespace {

constexpr size_t buffer_bytes = size_t{256} << 10;

[[noreturn]] void refuse_as_damaged(const fs::path& path, const std::string& reason) {
  throw Error("'" + shown_path(path) + "' cannot be decompressed: " + reason,
              "it is damaged or not all there: get it again",
              ExitCode::failed);
}

class PlainReader : public ByteReader {
 public:
  PlainReader(const fs::path& path, int64_t offset)
      : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (!file_ || ::lseek(file_.get(), offset, SEEK_SET) < 0) {
      throw system_error("read '" + shown_path(path) + "'", errno);
    }
  }

  size_t read(char* to, size_t size) override {
    size_t filled = 0;
    while (filled < size) {
      const ssize_t got = ::read(file_.get(), to + filled, size - filled);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw system_error("read '" + shown_path(path_) + "'", errno);
      if (got == 0) break;
      filled += static_cast<size_t>(got);
    }
    return filled;
  }

 private:
  fs::path path_;
  FileDescriptor file_;
};

/// The parts (members) of a file one after another. zlib's own reader of files passes over all that
/// follows a part and does not begin another one, as garbage and a damaged part do.
class GzipReader : public ByteReader {
 public:
  explicit GzipReader(const fs::path& path) : path_(path), bytes_(path, 0), buffer_(buffer_bytes) {
    constexpr int gzip_window = 15 + 16;
    if (::inflateInit2(&stream_, gzip_window) != Z_OK) throw std::bad_alloc();
  }
  ~GzipReader() override { ::inflateEnd(&stream_); }
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  size_t read(char* to, size_t size) override {
    size_t filled = 0;
    while (filled < size && (in_part_ || begins_part())) {
      if (!refill()) refuse_as_damaged(path_, "it ends too early");
      const auto wanted = static_cast<unsigned>(std::min(size - filled, size_t{1} << 30));
      stream_.next_out = reinterpret_cast<Bytef*>(to + filled);
      stream_.avail_out = wanted;
      const int code = ::inflate(&stream_, Z_NO_FLUSH);
      filled += wanted - stream_.avail_out;
      if (code == Z_STREAM_END) {
        in_part_ = false;
      } else if (code != Z_OK && code != Z_BUF_ERROR) {
        refuse(code);
      }
    }
    return filled;
  }

 private:
  /// Whether another part follows. Zeros behind the last one are padding, as for gzip itself.
  bool begins_part() {
    while (refill()) {
      if (parts_ == 0 || *stream_.next_in != 0) {
        part_start_ = bytes_read_ - stream_.avail_in;
        ::inflateReset(&stream_);
        ++parts_;
        return in_part_ = true;
      }
      ++stream_.next_in;
      --stream_.avail_in;
    }
    return false;
  }

  /// Whether there are bytes to decompress.
  bool refill() {
    if (stream_.avail_in > 0) return true;
    const size_t got = bytes_.read(buffer_.data(), buffer_.size());
    stream_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
    stream_.avail_in = static_cast<unsigned>(got);
    bytes_read_ += static_cast<int64_t>(got);
    return got > 0;
  }

  [[noreturn]] void refuse(int code) const {
    if (code == Z_MEM_ERROR) throw std::bad_alloc();
    const bool is_header = stream_.total_out == 0 && stream_.msg &&
                           std::string_view(stream_.msg) == "incorrect header check";
    if (!is_header) refuse_as_damaged(path_, stream_.msg ? stream_.msg : "its data is damaged");
    refuse_as_damaged(path_,
                      parts_ == 1 ? "it is not in gzip's format"
                                  : "what follows its byte " + with_thousands(part_start_) +
                                        " is not in gzip's format");
  }

  fs::path path_;
  PlainReader bytes_;
  std::vector<char> buffer_;
  z_stream stream_{};
  bool in_part_ = false;
  int64_t parts_ = 0;       ///< that have begun
  int64_t part_start_ = 0;  ///< byte of the file at which the last one begins
  int64_t bytes_read_ = 0;  ///< of the file, into the buffer
};

class ZstdReader : public ByteReader {
 public:
  explicit ZstdReader(const fs::path& path)
      : path_(path), bytes_(path, 0), stream_(::ZSTD_createDStream()), buffer_(buffer_bytes) {}
  ~ZstdReader() override { ::ZSTD_freeDStream(stream_); }
  ZstdReader(const ZstdReader&) = delete;
  ZstdReader& operator=(const ZstdReader&) = delete;

  size_t read(char* to, size_t size) override {
    ZSTD_outBuffer out = {to, size, 0};
    while (out.pos < out.size) {
      const bool had_input = refill();
      const size_t before = out.pos;
      const size_t result = ::ZSTD_decompressStream(stream_, &out, &in_);
      if (::ZSTD_isError(result)) refuse_as_damaged(path_, ::ZSTD_getErrorName(result));
      if (!had_input && out.pos == before) {
        if (in_frame_) refuse_as_damaged(path_, "it ends too early");
        break;
      }
      in_frame_ = result != 0;
    }
    return out.pos;
  }

 private:
  /// Whether there are bytes to decompress.
  bool refill() {
    if (in_.pos < in_.size) return true;
    in_ = {buffer_.data(), bytes_.read(buffer_.data(), buffer_.size()), 0};
    return in_.size > 0;
  }

  fs::path path_;
  PlainReader bytes_;
  ZSTD_DStream* stream_;
  std::vector<char> buffer_;
  ZSTD_inBuffer in_ = {nullptr, 0, 0};
  bool in_frame_ = false;
};

}  // namespace

int64_t ByteReader::skip(int64_t bytes) {
  std::vector<char> ignored(buffer_bytes);
  int64_t left = bytes;
  while (left > 0) {
    const auto wanted = static_cast<size_t>(std::min<int64_t>(left, buffer_bytes));
    const size_t got = read(ignored.data(), wanted);
    if (got == 0) break;
    left -= static_cast<int64_t>(got);
  }
  return bytes - left;
}

Compression compression_of(const fs::path& path) {
  if (path.extension() == ".gz") return Compression::gzip;
  if (path.extension() == ".zst") return Compression::zstd;
  return Compression::none;
}

fs::path uncompressed_name(const fs::path& path) {
  return compression_of(path) == Compression::none ? path : path.parent_path() / path.stem();
}

std::unique_ptr<ByteReader> open_bytes(const fs::path& path, int64_t offset) {
  std::unique_ptr<ByteReader> reader;
  switch (compression_of(path)) {
    case Compression::none: return std::make_unique<PlainReader>(path, offset);
    case Compression::gzip: reader = std::make_unique<GzipReader>(path); break;
    case Compression::zstd: reader = std::make_unique<ZstdReader>(path); break;
  }
  reader->skip(offset);
  return reader;
}

std::unique_ptr<ByteReader> open_raw_bytes(const fs::path& path) {
  return std::make_unique<PlainReader>(path, 0);
}

int64_t size_of_content(const fs::path& path) {
  if (compression_of(path) == Compression::none) {
    return static_cast<int64_t>(fs::file_size(path));
  }
  return open_bytes(path)->skip(std::numeric_limits<int64_t>::max());
}

}  // namespace forge::data

#include "core/upkeep/archive.h"

#include <fcntl.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/text.h"

namespace forge::upkeep {
namespace {

constexpr size_t block = 512;
constexpr size_t piece = size_t{1} << 17;
constexpr int level = 3;
constexpr size_t most_of_name = 255;

/// Fields of a ustar header: where each begins and how long it is.
struct Field {
  size_t begin, size;
};
constexpr Field name_field{0, 100}, mode_field{100, 8}, owner_field{108, 8}, group_field{116, 8},
    size_field{124, 12}, time_field{136, 12}, sum_field{148, 8}, type_field{156, 1},
    magic_field{257, 8}, prefix_field{345, 155};

using Header = std::array<char, block>;

void put(Header& header, Field field, std::string_view text) {
  std::memcpy(header.data() + field.begin, text.data(), std::min(text.size(), field.size));
}

std::string octal(uint64_t number, size_t digits) {
  std::string text(digits, '0');
  for (size_t i = digits; i-- > 0; number >>= 3) text[i] = static_cast<char>('0' + (number & 7));
  return text;
}

/// Numbers of 8 GiB and more in base 256, as GNU tar and pax have them.
void put_size(Header& header, uint64_t bytes) {
  if (bytes < uint64_t{1} << 33) return put(header, size_field, octal(bytes, 11));
  header[size_field.begin] = static_cast<char>(0x80);
  for (size_t i = 0; i < 8; ++i, bytes >>= 8)
    header[size_field.begin + size_field.size - 1 - i] = static_cast<char>(bytes & 0xff);
}

unsigned sum_of(Header header) {
  std::fill_n(header.begin() + sum_field.begin, sum_field.size, ' ');
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  return sum;
}

/// Where a name is split into prefix and name; npos where it need not be. Throws where it cannot.
size_t split_of(const std::string& name) {
  if (name.size() <= name_field.size) return std::string::npos;
  for (size_t slash = name.find('/'); slash != std::string::npos;
       slash = name.find('/', slash + 1)) {
    if (slash <= prefix_field.size && name.size() - slash - 1 <= name_field.size) return slash;
  }
  throw Error("the name '" + name + "' is too long for an archive");
}

std::string_view text_of(const Header& header, Field field) {
  const std::string_view whole(header.data() + field.begin, field.size);
  return whole.substr(0, whole.find('\0'));
}

uint64_t number_of(const Header& header, Field field) {
  uint64_t number = 0;
  if (static_cast<unsigned char>(header[field.begin]) == 0x80) {
    for (size_t i = 1; i < field.size; ++i) {
      if (number >> 54) throw Error("it lists a file larger than any");
      number = number << 8 | static_cast<unsigned char>(header[field.begin + i]);
    }
    return number;
  }
  for (const char c : trim(text_of(header, field))) {
    if (c < '0' || c > '7') throw Error("it has a header that is none");
    number = number << 3 | static_cast<uint64_t>(c - '0');
  }
  return number;
}

/// Bytes of a zstd stream, decompressed piece by piece.
class ZstdReader {
 public:
  explicit ZstdReader(const fs::path& file)
      : path_(file), file_(::open(file.c_str(), O_RDONLY | O_CLOEXEC)), in_(piece) {
    if (!file_) throw system_error("read '" + file.string() + "'", errno);
    if (!stream_) throw std::bad_alloc();
    // A window larger than this needs more memory than a stranger's file should cost.
    ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, 27);
  }

  /// Fills all of it, or returns false at the very end of the stream.
  bool read(char* bytes, size_t size) {
    ZSTD_outBuffer out{bytes, size, 0};
    while (out.pos < size) {
      if (input_.pos == input_.size) {
        const ssize_t got = ::read(file_.get(), in_.data(), in_.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) throw system_error("read '" + path_.string() + "'", errno);
        if (got == 0 && left_ == 0 && out.pos == 0) return false;
        if (got == 0 && !drained_) {
          drained_ = true;  // what the decoder still holds
        } else if (got == 0) {
          throw Error("it ends in the middle");
        }
        input_ = {in_.data(), static_cast<size_t>(got), 0};
      }
      left_ = ZSTD_decompressStream(stream_.get(), &out, &input_);
      if (ZSTD_isError(left_))
        throw Error(std::string("its compressed data is damaged: ") + ZSTD_getErrorName(left_));
    }
    return true;
  }

 private:
  struct Free {
    void operator()(ZSTD_DCtx* stream) const { ZSTD_freeDCtx(stream); }
  };
  const fs::path& path_;
  FileDescriptor file_;
  std::vector<char> in_;
  ZSTD_inBuffer input_{nullptr, 0, 0};
  std::unique_ptr<ZSTD_DCtx, Free> stream_{ZSTD_createDCtx()};
  size_t left_ = 0;
  bool drained_ = false;
};

void write_all(int fd, const char* bytes, size_t size, const fs::path& path) {
  while (size > 0) {
    const ssize_t written = ::write(fd, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw system_error("write '" + path.string() + "'", errno);
    bytes += written;
    size -= static_cast<size_t>(written);
  }
}

/// Copies a file of the archive to the disk.
void extract_file(ZstdReader& reader, const fs::path& target, uint64_t bytes) {
  make_directories(target.parent_path());
  // O_EXCL and O_NOFOLLOW: nothing that is there already is written to, and no link followed.
  const FileDescriptor file(
      ::open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file && errno == EEXIST)
    throw Error("it has the file '" + target.filename().string() + "' twice");
  if (!file) throw system_error("write '" + target.string() + "'", errno);
  std::vector<char> buffer(piece);
  for (uint64_t left = bytes; left > 0;) {
    const size_t part = static_cast<size_t>(std::min<uint64_t>(left, buffer.size()));
    if (!reader.read(buffer.data(), part)) throw Error("it ends in the middle");
    write_all(file.get(), buffer.data(), part, target);
    left -= part;
  }
  if (::fsync(file.get()) != 0) throw system_error("sync '" + target.string() + "'", errno);
  char padding[block];
  const size_t rest = static_cast<size_t>((block - bytes % block) % block);
  if (rest > 0 && !reader.read(padding, rest)) throw Error("it ends in the middle");
}

bool is_zero(const Header& header) {
  return std::all_of(header.begin(), header.end(), [](char c) { return c == 0; });
}

/// Up to the end of the stream, which has a hash of all that came before.
void read_end(ZstdReader& reader) {
  Header header{};
  while (reader.read(header.data(), block)) {
    if (!is_zero(header)) throw Error("it goes on behind its end");
  }
}

void extract_all(const fs::path& file, const fs::path& folder, const ExtractLimits& limits) {
  ZstdReader reader(file);
  Header header{};
  int64_t files = 0;
  uint64_t bytes = 0;
  while (reader.read(header.data(), block)) {
    if (is_zero(header)) return read_end(reader);
    if (number_of(header, sum_field) != sum_of(header)) throw Error("it has a header that is none");
    std::string name(text_of(header, name_field));
    const std::string prefix(text_of(header, prefix_field));
    if (!prefix.empty()) name = prefix + "/" + name;
    const char type = header[type_field.begin];
    const uint64_t size = number_of(header, size_field);
    if (type == '5') {  // a folder: made when a file of it comes
      if (size != 0) throw Error("it has a folder with content");
      continue;
    }
    if (type != '0' && type != '\0')
      throw Error("'" + name.substr(0, most_of_name) + "' in it is no plain file");
    require_inner_path(name);
    bytes += size;
    if (++files > limits.files || size > static_cast<uint64_t>(limits.bytes) ||
        bytes > static_cast<uint64_t>(limits.bytes))
      throw Error("it holds more than " + std::to_string(limits.files) + " files or " +
                  human_bytes(double(limits.bytes)));
    extract_file(reader, folder / name, size);
  }
  throw Error("it has no end");
}

}  // namespace

struct ArchiveWriter::Stream {
  struct Free {
    void operator()(ZSTD_CCtx* stream) const { ZSTD_freeCCtx(stream); }
  };
  FileDescriptor file;
  std::unique_ptr<ZSTD_CCtx, Free> zstd{ZSTD_createCCtx()};
  std::vector<char> out = std::vector<char>(ZSTD_CStreamOutSize());

  void compress(std::string_view bytes, ZSTD_EndDirective mode, const fs::path& path) {
    ZSTD_inBuffer input{bytes.data(), bytes.size(), 0};
    while (true) {
      ZSTD_outBuffer output{out.data(), out.size(), 0};
      const size_t left = ZSTD_compressStream2(zstd.get(), &output, &input, mode);
      if (ZSTD_isError(left))
        throw Error(std::string("cannot compress: ") + ZSTD_getErrorName(left));
      write_all(file.get(), out.data(), output.pos, path);
      if (mode == ZSTD_e_continue ? input.pos == input.size : left == 0) return;
    }
  }
};

ArchiveWriter::ArchiveWriter(fs::path file)
    : file_(std::move(file)),
      aside_(file_.string() + ".tmp-" + std::to_string(::getpid())),
      stream_(std::make_unique<Stream>()) {
  stream_->file =
      FileDescriptor(::open(aside_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!stream_->file) throw system_error("write '" + aside_.string() + "'", errno);
  ZSTD_CCtx_setParameter(stream_->zstd.get(), ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(stream_->zstd.get(), ZSTD_c_checksumFlag, 1);
}

ArchiveWriter::~ArchiveWriter() {
  if (stream_) ::unlink(aside_.c_str());
}

void ArchiveWriter::write(std::string_view bytes) {
  stream_->compress(bytes, ZSTD_e_continue, aside_);
}

void ArchiveWriter::begin_entry(const std::string& name, int64_t bytes) {
  require_inner_path(name);
  Header header{};
  const size_t slash = split_of(name);
  put(header, name_field, slash == std::string::npos ? name : name.substr(slash + 1));
  if (slash != std::string::npos) put(header, prefix_field, name.substr(0, slash));
  put(header, mode_field, "0000644");
  put(header, owner_field, octal(0, 7));
  put(header, group_field, octal(0, 7));
  put_size(header, static_cast<uint64_t>(bytes));
  put(header, time_field, octal(0, 11));
  put(header, type_field, "0");
  put(header,
      magic_field,
      std::string_view("ustar\0"
                       "00",
                       8));
  put(header, sum_field, octal(sum_of(header), 6) + std::string("\0 ", 2));
  write({header.data(), header.size()});
}

void ArchiveWriter::end_entry(int64_t bytes) {
  const std::string padding((block - static_cast<size_t>(bytes) % block) % block, '\0');
  write(padding);
}

void ArchiveWriter::add_text(const std::string& name, std::string_view text) {
  begin_entry(name, static_cast<int64_t>(text.size()));
  write(text);
  end_entry(static_cast<int64_t>(text.size()));
}

void ArchiveWriter::add_file(const std::string& name, const fs::path& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file) throw system_error("read '" + path.string() + "'", errno);
  const int64_t bytes = static_cast<int64_t>(::lseek(file.get(), 0, SEEK_END));
  ::lseek(file.get(), 0, SEEK_SET);
  begin_entry(name, bytes);
  std::vector<char> buffer(piece);
  for (int64_t left = bytes; left > 0;) {
    const ssize_t got = ::read(
        file.get(), buffer.data(), static_cast<size_t>(std::min<int64_t>(left, ssize_t(piece))));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw system_error("read '" + path.string() + "'", errno);
    if (got == 0) throw Error("'" + path.string() + "' became shorter while it was read");
    write({buffer.data(), static_cast<size_t>(got)});
    left -= got;
  }
  end_entry(bytes);
}

void ArchiveWriter::finish() {
  const std::string end(2 * block, '\0');
  stream_->compress(end, ZSTD_e_end, aside_);
  if (::fsync(stream_->file.get()) != 0)
    throw system_error("sync '" + aside_.string() + "'", errno);
  rename_path(aside_, file_);
  stream_.reset();
  sync_path(file_.has_parent_path() ? file_.parent_path() : fs::path("."));
}

bool is_archive(const fs::path& file) {
  const FileDescriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  unsigned char bytes[4] = {};
  return opened && ::read(opened.get(), bytes, 4) == 4 && bytes[0] == 0x28 && bytes[1] == 0xb5 &&
         bytes[2] == 0x2f && bytes[3] == 0xfd;
}

void extract_archive(const fs::path& file, const fs::path& folder, const ExtractLimits& limits) {
  try {
    extract_all(file, folder, limits);
  } catch (const Error& problem) {
    throw Error("'" + shown_path(file) + "' cannot be unpacked: " + problem.message(),
                {},
                problem.hint(),
                problem.exit_code() == ExitCode::storage ? ExitCode::storage : ExitCode::failed);
  }
}

void require_inner_path(const std::string& name) {
  bool good = !name.empty() && name.size() <= most_of_name;
  for (const std::string& part : split(name, '/')) {
    good = good && !part.empty() && part != "." && part != ".." &&
           std::none_of(part.begin(), part.end(), [](char c) {
             const auto byte = static_cast<unsigned char>(c);
             return byte < 0x20 || byte == 0x7f || c == '\\';
           });
  }
  if (!good) throw Error("'" + name.substr(0, most_of_name) + "' is no path within a folder");
}

}  // namespace forge::upkeep

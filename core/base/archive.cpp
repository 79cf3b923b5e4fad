#include "core/base/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <functional>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/base/text.h"

namespace forge {

/// Outside of the namespace without a name, because a member class of ArchiveWriter holds it.
struct ArchiveDeleter {
  void operator()(archive* handle) const { archive_free(handle); }
  void operator()(archive_entry* entry) const { archive_entry_free(entry); }
  void operator()(ZSTD_CCtx* stream) const { ZSTD_freeCCtx(stream); }
};

namespace {

constexpr size_t buffer_bytes = size_t{1} << 17;
constexpr int zstd_level = 3;
constexpr size_t longest_name = 255;

void require_ok(archive* archive, la_ssize_t result) {
  if (result >= ARCHIVE_OK) return;
  const char* reason = archive_error_string(archive);
  throw Error(reason ? reason : "it is damaged");
}

enum class Format { tar_zstd, zip };

class ArchiveReader {
 public:
  ArchiveReader(const fs::path& path, Format format, std::function<void()> on_read = {})
      : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), on_read_(std::move(on_read)) {
    if (!file_) throw system_error("read '" + path.string() + "'", errno);
    archive* reader = reader_.get();
    if (format == Format::zip) {
      require_ok(reader, archive_read_support_format_zip_seekable(reader));
      require_ok(reader, archive_read_open_fd(reader, file_.get(), buffer_bytes));
    } else {
      require_ok(reader, archive_read_support_filter_zstd(reader));
      require_ok(reader, archive_read_support_format_tar(reader));
      // zstd's checksum comes after the end of the tar, so the stream is read to its own end.
      require_ok(reader,
                 archive_read_set_format_option(reader, "tar", "read_concatenated_archives", "1"));
      require(archive_read_open(reader, this, nullptr, read_piece, nullptr));
    }
  }
  ArchiveReader(const ArchiveReader&) = delete;
  ArchiveReader& operator=(const ArchiveReader&) = delete;

  /// So many more bytes are expected of a tar, decompressed, than before.
  void expect(int64_t bytes) { expected_ += bytes; }

  /// The next entry; nullptr after the last one.
  archive_entry* next() {
    archive_entry* entry = nullptr;
    const int result = archive_read_next_header(reader_.get(), &entry);
    if (result == ARCHIVE_EOF) return nullptr;
    // A warning is about names and attributes: the caller checks the name, and nothing else is
    // used.
    if (result != ARCHIVE_WARN) require(result);
    return entry;
  }

  /// Calls `take` with the content of the current entry, piece by piece.
  template <class Take>
  void read_content(const Take& take) {
    const void* bytes = nullptr;
    size_t size = 0;
    int64_t offset = 0;
    int64_t expected = 0;
    while (true) {
      const int result = archive_read_data_block(reader_.get(), &bytes, &size, &offset);
      if (result == ARCHIVE_EOF) return;
      require(result);
      if (offset != expected) throw Error("it has a file with holes");
      expected += static_cast<int64_t>(size);
      take(std::string_view(static_cast<const char*>(bytes), size));
    }
  }

 private:
  void require(la_ssize_t result) {
    if (problem_) std::rethrow_exception(std::exchange(problem_, nullptr));
    require_ok(reader_.get(), result);
  }

  /// The next piece of the compressed file. Zeros are compressed thirty thousand to one, so a
  /// small one may become half a gigabyte before the next is asked for.
  static la_ssize_t read_piece(archive* reader, void* self, const void** piece) {
    auto& own = *static_cast<ArchiveReader*>(self);
    try {
      if (own.on_read_) own.on_read_();
      if (archive_filter_bytes(reader, 0) > own.expected_)
        throw Error("much goes on behind its last file");
      *piece = own.buffer_.data();
      ssize_t bytes = 0;
      do {
        bytes = ::read(own.file_.get(), own.buffer_.data(), own.buffer_.size());
      } while (bytes < 0 && errno == EINTR);
      if (bytes < 0) throw system_error("read it", errno);
      return bytes;
    } catch (...) {
      own.problem_ = std::current_exception();  // through libarchive, which is C
      return ARCHIVE_FATAL;
    }
  }

  FileDescriptor file_;
  std::function<void()> on_read_;
  std::exception_ptr problem_;
  int64_t expected_ = int64_t{16} << 20;
  std::vector<char> buffer_ = std::vector<char>(size_t{1} << 14);
  std::unique_ptr<archive, ArchiveDeleter> reader_{archive_read_new()};
};

std::string name_of(archive_entry* entry) {
  const char* name = archive_entry_pathname(entry);
  return name ? name : "";
}

bool is_plain_file(archive_entry* entry) {
  return archive_entry_filetype(entry) == AE_IFREG && !archive_entry_hardlink(entry) &&
         archive_entry_sparse_count(entry) == 0 && archive_entry_size_is_set(entry);
}

void extract_file(ArchiveReader& reader, const fs::path& target, const ExtractLimits& limits) {
  make_directories(target.parent_path());
  // O_EXCL and O_NOFOLLOW: no existing file is written to, and no link is followed.
  const FileDescriptor file(
      ::open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file && errno == EEXIST)
    throw Error("it has the file '" + target.filename().string() + "' twice");
  if (!file) throw system_error("write '" + target.string() + "'", errno);
  reader.read_content([&](std::string_view bytes) {
    write_all(file.get(), bytes, target);
    if (limits.on_bytes) limits.on_bytes(static_cast<int64_t>(bytes.size()));
  });
}

/// Calls take(reader, name) for each file, once its header is found good.
template <class Take>
void for_each_file(const fs::path& file, const ExtractLimits& limits, const Take& take) {
  ArchiveReader reader(file, Format::tar_zstd, [&limits] {
    if (limits.on_bytes) limits.on_bytes(0);
  });
  int64_t files = 0;
  int64_t bytes = 0;
  while (archive_entry* entry = reader.next()) {
    const std::string name = name_of(entry);
    // A folder is made when one of its files comes.
    if (archive_entry_filetype(entry) == AE_IFDIR) continue;
    if (!is_plain_file(entry))
      throw Error("'" + name.substr(0, longest_name) + "' in it is no plain file");
    require_inner_path(name);
    const int64_t size = archive_entry_size(entry);
    if (++files > limits.files || size < 0 || size > limits.bytes - bytes) {
      throw Error("it holds more than " + std::to_string(limits.files) + " files or " +
                  human_bytes(double(limits.bytes)));
    }
    if (limits.on_bytes) limits.on_bytes(0);
    if (limits.check) limits.check(name, size);
    bytes += size;
    constexpr int64_t header_bytes = 8192;  // at most, of a file with a long name
    reader.expect(size + header_bytes);
    take(reader, name);
  }
}

void extract_all(const fs::path& file, const fs::path& folder, const ExtractLimits& limits) {
  // All headers come first: what is refused has cost nothing but reading.
  for_each_file(file, limits, [](ArchiveReader&, const std::string&) {});
  for_each_file(file, limits, [&](ArchiveReader& reader, const std::string& name) {
    extract_file(reader, folder / name, limits);
  });
}

}  // namespace

std::string read_first_file(const fs::path& archive, const std::string& name, int64_t max_bytes) {
  try {
    ArchiveReader reader(archive, Format::tar_zstd);
    archive_entry* entry = reader.next();
    if (!entry || !is_plain_file(entry) || name_of(entry) != name) return "";
    if (archive_entry_size(entry) > max_bytes)
      throw Error(name + " has more than " + human_bytes(double(max_bytes)));
    reader.expect(max_bytes);
    std::string content;
    reader.read_content([&](std::string_view bytes) { content += bytes; });
    return content;
  } catch (const Error& problem) {
    throw Error("cannot unpack '" + archive.string() + "': " + problem.message(),
                problem.hint(),
                ExitCode::failed);
  }
}

// libarchive writes the tar and this compresses it: libarchive's own zstd has no checksum.
struct ArchiveWriter::Stream {
  OutputFile file;
  std::unique_ptr<ZSTD_CCtx, ArchiveDeleter> zstd{ZSTD_createCCtx()};
  std::vector<char> out = std::vector<char>(ZSTD_CStreamOutSize());
  std::exception_ptr failure;  ///< thrown while libarchive called, which it must not pass through
  std::unique_ptr<archive, ArchiveDeleter> writer{archive_write_new()};

  explicit Stream(const fs::path& path) : file(path, false) {}

  void compress(std::string_view bytes, ZSTD_EndDirective mode) {
    ZSTD_inBuffer input{bytes.data(), bytes.size(), 0};
    while (true) {
      ZSTD_outBuffer output{out.data(), out.size(), 0};
      const size_t left = ZSTD_compressStream2(zstd.get(), &output, &input, mode);
      if (ZSTD_isError(left))
        throw Error(std::string("cannot compress: ") + ZSTD_getErrorName(left));
      file.write({out.data(), output.pos});
      if (mode == ZSTD_e_continue ? input.pos == input.size : left == 0) return;
    }
  }

  static la_ssize_t on_bytes(archive*, void* user, const void* bytes, size_t size) {
    auto& stream = *static_cast<Stream*>(user);
    try {
      stream.compress({static_cast<const char*>(bytes), size}, ZSTD_e_continue);
      return static_cast<la_ssize_t>(size);
    } catch (...) {
      stream.failure = std::current_exception();
      return -1;
    }
  }

  void require(la_ssize_t result) const {
    if (failure) std::rethrow_exception(failure);
    require_ok(writer.get(), result);
  }
};

ArchiveWriter::ArchiveWriter(const fs::path& file) : stream_(std::make_unique<Stream>(file)) {
  ZSTD_CCtx_setParameter(stream_->zstd.get(), ZSTD_c_compressionLevel, zstd_level);
  ZSTD_CCtx_setParameter(stream_->zstd.get(), ZSTD_c_checksumFlag, 1);
  archive* writer = stream_->writer.get();
  // GNU's tar knows names and sizes of any length without a character set.
  stream_->require(archive_write_set_format_gnutar(writer));
  stream_->require(archive_write_set_bytes_per_block(writer, 0));
  stream_->require(archive_write_open(writer, stream_.get(), nullptr, &Stream::on_bytes, nullptr));
}

ArchiveWriter::~ArchiveWriter() = default;

void ArchiveWriter::write(std::string_view bytes) {
  stream_->require(archive_write_data(stream_->writer.get(), bytes.data(), bytes.size()));
}

void ArchiveWriter::begin_entry(const std::string& name, int64_t bytes) {
  require_inner_path(name);
  const std::unique_ptr<archive_entry, ArchiveDeleter> entry(archive_entry_new());
  archive_entry_set_pathname(entry.get(), name.c_str());
  archive_entry_set_size(entry.get(), bytes);
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_perm(entry.get(), 0644);
  archive_entry_set_mtime(entry.get(), 0, 0);
  stream_->require(archive_write_header(stream_->writer.get(), entry.get()));
}

void ArchiveWriter::add_text(const std::string& name, std::string_view text) {
  begin_entry(name, static_cast<int64_t>(text.size()));
  write(text);
}

void refuse_link(const fs::path& file) {
  std::error_code missing;
  if (fs::is_symlink(fs::symlink_status(file, missing)))
    throw Error("cannot pack '" + file.string() + "': it is a link, which may lead anywhere",
                "put a copy of the file in its place");
}

std::string ArchiveWriter::add_file(const std::string& name,
                                    const fs::path& path,
                                    const std::function<void(int64_t)>& on_bytes) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  const int cause = errno;
  if (!file && cause == ELOOP) refuse_link(path);
  if (!file) throw system_error("read '" + path.string() + "'", cause);
  const int64_t bytes = ::lseek(file.get(), 0, SEEK_END);
  ::lseek(file.get(), 0, SEEK_SET);
  begin_entry(name, bytes);
  Hasher hasher;
  std::vector<char> buffer(buffer_bytes);
  for (int64_t left = bytes; left > 0;) {
    const auto wanted = static_cast<size_t>(std::min<int64_t>(left, buffer_bytes));
    const ssize_t got = ::read(file.get(), buffer.data(), wanted);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw system_error("read '" + path.string() + "'", errno);
    if (got == 0) throw Error("'" + path.string() + "' became shorter while it was read");
    hasher.update(buffer.data(), static_cast<size_t>(got));
    write({buffer.data(), static_cast<size_t>(got)});
    left -= got;
    if (on_bytes) on_bytes(got);
  }
  return hasher.hex();
}

void ArchiveWriter::finish() {
  stream_->require(archive_write_close(stream_->writer.get()));
  stream_->compress({}, ZSTD_e_end);
  stream_->file.finish();
}

bool is_archive(const fs::path& file) {
  const FileDescriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  char bytes[4] = {};
  return opened && ::read(opened.get(), bytes, 4) == 4 &&
         std::string_view(bytes, 4) == "\x28\xb5\x2f\xfd";
}

void extract_archive(const fs::path& file, const fs::path& folder, const ExtractLimits& limits) {
  try {
    extract_all(file, folder, limits);
  } catch (const Error& problem) {
    throw Error("'" + shown_path(file) + "' cannot be unpacked: " + problem.message(),
                problem.hint(),
                problem.exit_code() == ExitCode::storage ? ExitCode::storage : ExitCode::failed);
  }
}

void extract_zip_member(const fs::path& path, const std::string& member, const fs::path& target) {
  OutputFile out(target);
  try {
    ArchiveReader reader(path, Format::zip);
    while (archive_entry* entry = reader.next()) {
      if (name_of(entry) != member) continue;
      reader.read_content([&](std::string_view bytes) { out.write(bytes); });
      return out.finish();
    }
  } catch (const Error& problem) {
    if (problem.exit_code() != ExitCode::usage) throw;  // of the disk, not of the archive
    throw Error("'" + shown_path(path) + "' is not a whole zip archive: " + problem.message(),
                "remove it and get it again",
                ExitCode::failed);
  }
  throw Error("'" + shown_path(path) + "' holds no file '" + member + "'", ExitCode::failed);
}

void require_inner_path(const std::string& name) {
  bool good = !name.empty() && name.size() <= longest_name;
  for (const std::string& part : split(name, '/')) {
    good = good && !part.empty() && part != "." && part != ".." &&
           std::none_of(part.begin(), part.end(), [](char c) {
             const auto byte = static_cast<unsigned char>(c);
             return byte < 0x20 || byte == 0x7f || c == '\\';
           });
  }
  if (!good) throw Error("'" + name.substr(0, longest_name) + "' is no path within a folder");
}

}  // namespace forge

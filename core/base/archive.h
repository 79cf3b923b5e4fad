#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace forge {

/// A tar file compressed with zstd, which `tar --zstd` reads. Written aside and renamed by
/// finish(); without that nothing is left behind. The same files give the same bytes: owner, time
/// and mode are not kept.
class ArchiveWriter {
 public:
  explicit ArchiveWriter(const std::filesystem::path& file);
  ~ArchiveWriter();
  ArchiveWriter(const ArchiveWriter&) = delete;
  ArchiveWriter& operator=(const ArchiveWriter&) = delete;

  /// `name` is a path as require_inner_path wants it. Returns the hash of what was written, as
  /// hash_file makes it: the file may have changed since that was called.
  /// Calls `on_bytes`, if given, with the size of each piece; what it throws ends the writing.
  std::string add_file(const std::string& name,
                       const std::filesystem::path& file,
                       const std::function<void(int64_t)>& on_bytes = {});
  void add_text(const std::string& name, std::string_view text);
  void finish();

 private:
  struct Stream;
  void begin_entry(const std::string& name, int64_t bytes);
  void write(std::string_view bytes);

  std::unique_ptr<Stream> stream_;
};

/// Throws Error where a link stands: what it leads to is not packed.
void refuse_link(const std::filesystem::path& file);

struct ExtractLimits {
  int64_t files = 100'000;
  int64_t bytes = int64_t{1} << 42;
  /// Throws for a file that must not be there, by its name and length in bytes.
  std::function<void(const std::string& name, int64_t bytes)> check = {};
  /// Called with 0 for each piece that is read and each file that is looked at, then with the size
  /// of each piece that was written. What it throws ends the work.
  std::function<void(int64_t)> on_bytes = {};
};

/// The content of the first file of a tar file compressed with zstd; "" where it has another name.
/// Throws Error where it is longer than `max_bytes`.
std::string read_first_file(const std::filesystem::path& archive,
                            const std::string& name,
                            int64_t max_bytes);

/// Whether the file begins as a zstd stream does.
bool is_archive(const std::filesystem::path& file);

/// Writes the files of a tar file compressed with zstd below `folder`, which must be empty; does
/// not wait until they are on the disk. The archive is not trusted: throws Error for a name that
/// leads out of the folder, for anything but plain files and folders, and for an archive that is
/// larger than the limits or goes on far behind its last file, before anything is written, and for
/// one that is damaged or has a file twice.
void extract_archive(const std::filesystem::path& file,
                     const std::filesystem::path& folder,
                     const ExtractLimits& limits = {});

/// Writes the file `member` of a zip archive to `target`, aside and then renamed. Throws Error if
/// the archive is damaged or has no such file.
void extract_zip_member(const std::filesystem::path& archive,
                        const std::string& member,
                        const std::filesystem::path& target);

/// Throws Error unless the name is a relative path without "..", "." or empty parts, of printable
/// bytes, that is at most 255 bytes long.
void require_inner_path(const std::string& name);

}  // namespace forge

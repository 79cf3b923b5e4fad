#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

namespace forge::data {

enum class Compression { none, gzip, zstd };

/// By the end of the name: .gz, .zst, or anything else.
Compression compression_of(const std::filesystem::path& path);
/// The name without .gz or .zst.
std::filesystem::path uncompressed_name(const std::filesystem::path& path);

/// The bytes of a file one after another, decompressed as they are read.
class ByteReader {
 public:
  virtual ~ByteReader() = default;
  /// Bytes read; fewer than `size` only at the end. Throws Error where the file cannot be read or
  /// is not whole.
  virtual size_t read(char* to, size_t size) = 0;
  /// Skips `bytes` bytes, or those up to the end. Returns how many.
  int64_t skip(int64_t bytes);
};

/// A reader of the file's decompressed bytes from byte `offset` on. A compressed file is read up to
/// there; an uncompressed one is not.
std::unique_ptr<ByteReader> open_bytes(const std::filesystem::path& path, int64_t offset = 0);

/// A reader of the file's own bytes, compressed or not.
std::unique_ptr<ByteReader> open_raw_bytes(const std::filesystem::path& path);

/// Decompressed size. A compressed file is read for it.
int64_t size_of_content(const std::filesystem::path& path);

}  // namespace forge::data

#pragma once

#include <cstdio>
#include <filesystem>
#include <string>

#include "tests/support/catch.h"

/// Damage to files, without the syncs of a careful writer: tests do it thousands of times.
namespace forge::tests {

inline void overwrite(const std::filesystem::path& path, const std::string& content) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  REQUIRE(file);
  REQUIRE(std::fwrite(content.data(), 1, content.size(), file) == content.size());
  REQUIRE(std::fclose(file) == 0);
}

/// In place, because file systems sync a file that is truncated and written anew.
inline void flip_bit(const std::filesystem::path& path, size_t bit) {
  std::FILE* file = std::fopen(path.c_str(), "r+b");
  REQUIRE(file);
  const auto at = static_cast<long>(bit / 8);
  std::fseek(file, at, SEEK_SET);
  const int byte = std::fgetc(file);
  REQUIRE(byte != EOF);
  std::fseek(file, at, SEEK_SET);
  std::fputc(byte ^ (1 << (bit % 8)), file);
  REQUIRE(std::fclose(file) == 0);
}

}  // namespace forge::tests

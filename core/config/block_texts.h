#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <string>

namespace forge::config {

/// The texts of blocks' files (own_blocks.h), each read once, so that all runs which a command
/// makes have one text, though somebody saves the file meanwhile. Several threads may ask.
class BlockTexts {
 public:
  /// Throws Error for a file that cannot be read, or is too long for a program.
  std::string read(const std::filesystem::path& file);

 private:
  std::mutex mutex_;
  std::map<std::filesystem::path, std::string> texts_;
};

}  // namespace forge::config

#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace forge::tests {

/// A fresh folder that is removed at the end of its scope.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  /// Writes a file below the folder, with the folders above it.
  std::filesystem::path write(const std::string& name, const std::string& content) const;

 private:
  std::filesystem::path path_;
};

/// tests/ of the source tree: golden files and vectors lie below it.
std::filesystem::path tests_dir();

/// The message that calling `action` throws as forge::Error (all of it, as a user sees it), or ""
/// when nothing was thrown.
std::string error_of(const std::function<void()>& action);

}  // namespace forge::tests

#include "tests/support/support.h"

#include <cstdlib>

#include "core/base/error.h"
#include "core/base/files.h"

namespace forge::tests {

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "forge-test-XXXXXX").string();
  if (!::mkdtemp(pattern.data())) throw system_error("create a temporary folder", errno);
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  remove_tree(path_, ignored);
}

std::filesystem::path TemporaryFolder::write(const std::string& name,
                                             const std::string& content) const {
  const std::filesystem::path file = path_ / name;
  make_directories(file.parent_path());
  write_file_atomic(file, content);
  return file;
}

std::filesystem::path tests_dir() { return FORGE_TESTS_DIR; }

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return describe(error);
  }
  return "";
}

}  // namespace forge::tests

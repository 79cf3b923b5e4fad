#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/project/project.h"
#include "core/project/workspace.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::tests {
namespace {

namespace fs = std::filesystem;

constexpr const char* update_hint =
    "a shipped config renders to another text than tests/golden/projects holds; if that is meant, "
    "run FORGE_UPDATE_GOLDEN=1 build/release/forge_tests \"every shipped config*\" and read the "
    "difference with git diff";

templating::Surroundings pinned_surroundings() {
  templating::Surroundings surroundings;
  surroundings.unix_time = 1700000000;  // 2023-11-14T22:13:20 UTC
  surroundings.working_directory = "/work";
  surroundings.home_directory = "/home/ada";
  surroundings.host_name = "lab";
  return surroundings;
}

/// The text with the workspace's folder, which differs from checkout to checkout, under one name.
std::string without_folder(std::string text, const fs::path& root) {
  const std::string folder = root.string();
  for (size_t at = text.find(folder); at != std::string::npos; at = text.find(folder, at))
    text.replace(at, folder.size(), "/workspace");
  return text;
}

void compare(const fs::path& golden, const std::string& text) {
  INFO(golden.string());
  if (std::getenv("FORGE_UPDATE_GOLDEN")) {
    fs::create_directories(golden.parent_path());
    write_file_atomic(golden, text);
  }
  INFO(update_hint);
  REQUIRE(fs::exists(golden));
  CHECK(read_file(golden) == text);
}

std::set<fs::path> files_below(const fs::path& folder) {
  std::set<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.insert(entry.path());
  }
  return files;
}

TEST_CASE("every shipped config renders to its golden text") {
  const fs::path root = tests_dir().parent_path(), goldens = tests_dir() / "golden" / "projects";
  const project::Workspace workspace = *project::find_workspace(root);
  std::set<fs::path> expected;
  for (const project::ProjectFolder& folder : project::projects_of(workspace)) {
    const project::Project project =
        project::load_project(workspace, folder.folder, pinned_surroundings());
    if (!starts_with(project.path, "projects/")) continue;
    for (const project::Config& config : project.configs) {
      const std::string text = project::render_config(project, config, pinned_surroundings()).text;
      const fs::path golden =
          goldens / project.path.substr(std::string("projects/").size()) / (config.name + ".yaml");
      compare(golden, without_folder(text, root));
      expected.insert(golden);
    }
  }
  CHECK(expected.size() >= 10);
  INFO("a golden text of a config that is no more: remove it");
  CHECK(files_below(goldens) == expected);
}

}  // namespace
}  // namespace forge::tests

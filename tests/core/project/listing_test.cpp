#include "core/project/listing.h"

#include <string>
#include <vector>

#include "core/project/names.h"
#include "tests/core/project/fixture.h"
#include "tests/support/catch.h"

namespace forge::project {
namespace {

using tests::fixed_surroundings;
using tests::TemporaryWorkspace;

TEST_CASE("a listing keeps the order of projects and configs, whoever is ready first") {
  const TemporaryWorkspace files;
  for (int project = 0; project < 6; ++project) {
    const std::string name = "p" + std::to_string(project);
    files.add_project(name, "name: Project " + name + "\n");
    for (int config = 0; config < 5; ++config) {
      const std::string text = "name: " + name + "c" + std::to_string(config) + "\nlr: 1\n";
      files.add_config(name, "c" + std::to_string(config), text);
    }
  }
  const ProjectList list = load_projects(files.workspace(), fixed_surroundings());
  REQUIRE(list.projects.size() == 6);
  const auto listing = list_configs(list.projects, fixed_surroundings());
  REQUIRE(listing.size() == 6);
  for (size_t project = 0; project < 6; ++project) {
    const std::string name = "p" + std::to_string(project);
    CHECK(listing[project].project.name == "Project " + name);
    REQUIRE(listing[project].configs.size() == 5);
    for (size_t config = 0; config < 5; ++config) {
      CHECK(listing[project].configs[config].summary.name == name + "c" + std::to_string(config));
    }
  }
}

TEST_CASE("what is wrong with a config or project stays with it") {
  const TemporaryWorkspace files;
  files.add_project("bad", "name: [\n");
  files.add_project("good");
  files.add_config(
      "good", "a", "-- include 'part'\n\n#--- part ---\nname: A\ndescription: first\n");
  files.add_config("good", "b", "-- include 'part'\n");  // of the config before, not of this one
  files.add_config("good", "c", "name: C\nlist: [1, 2\nlr: 1\n");
  files.add_config("good", "d", "lr: 1\n");
  files.add_config("good", "e", "name: E\nlr: 2\n");
  const ProjectList list = load_projects(files.workspace(), fixed_surroundings());
  REQUIRE(list.problems.size() == 1);
  CHECK(describe(list.problems[0]).find("bad/meta.yaml:") != std::string::npos);
  const auto listing = list_configs(list.projects, fixed_surroundings());
  REQUIRE(listing.size() == 1);
  const std::vector<ListedConfig>& configs = listing[0].configs;
  REQUIRE(configs.size() == 5);
  CHECK(configs[0].summary.description == "first");
  REQUIRE(configs[1].problem);
  CHECK(describe(*configs[1].problem).find("b.yaml:1:4: error: no template 'part'") !=
        std::string::npos);
  REQUIRE(configs[2].problem);
  CHECK(describe(*configs[2].problem).find("c.yaml:3:") != std::string::npos);
  CHECK(configs[3].summary.name == "d");  // its file's
  CHECK(!configs[3].problem);
  CHECK(configs[4].summary.name == "E");
}

}  // namespace
}  // namespace forge::project

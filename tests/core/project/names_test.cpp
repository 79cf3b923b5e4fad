#include <string>
#include <vector>

#include "core/base/files.h"
#include "core/project/names.h"
#include "tests/core/project/fixture.h"
#include "tests/support/catch.h"

namespace forge::project {
namespace {

using tests::error_of;
using tests::fixed_surroundings;
using tests::TemporaryWorkspace;

/// Three projects: one and two both have `both`; two takes one's templates as well.
struct Fixture {
  Fixture() {
    files.add_project("one", "name: The first\n");
    files.add_project("two", "searchdir: [templates, ../shared/templates]\n");
    files.add_project("shared");
    files.add_config("one", "both");
    files.add_config("one", "train_one");
    files.add_config("two", "both");
    files.add_config("two", "deep/er");
    files.add_config("shared", "owned");
  }
  /// "projects/one:train_one" for what the name means from a folder of the workspace.
  std::string meaning(const std::string& name, const std::string& from = ".") const {
    const NamedConfig found =
        find_config(files.workspace(), name, files.folder / from, fixed_surroundings());
    return found.project.path + ":" + found.config.name;
  }
  std::string error(const std::string& name, const std::string& from = ".") const {
    return error_of([&] { meaning(name, from); });
  }
  TemporaryWorkspace files;
};

TEST_CASE("a config's name is found in the whole workspace from any folder") {
  const Fixture fixture;
  for (const char* from : {".", "projects", "projects/two", "projects/one/templates"}) {
    REQUIRE(fixture.meaning("train_one", from) == "projects/one:train_one");
    REQUIRE(fixture.meaning("train_one.yaml", from) == "projects/one:train_one");
    REQUIRE(fixture.meaning("deep/er", from) == "projects/two:deep/er");
  }
}

TEST_CASE("a name is qualified by a project's name or the end of its path") {
  const Fixture fixture;
  for (const char* name : {"one/both",
                           "one:both.yaml",
                           "projects/one/both",
                           "projects/one:both",
                           "The first:both",
                           "one/:both"}) {
    INFO(name);
    REQUIRE(fixture.meaning(name) == "projects/one:both");
    REQUIRE(fixture.meaning(name, "projects/two") == "projects/one:both");
  }
  REQUIRE(fixture.meaning("two/deep/er") == "projects/two:deep/er");
  REQUIRE(fixture.error("ne/both").find("no config 'ne/both'") != std::string::npos);
}

TEST_CASE("the whole path of a project is not the end of another one's") {
  TemporaryWorkspace files;
  for (const char* project : {"two", "nested/projects/two"}) {
    files.add_project(project);
    files.add_config(project, "both");
  }
  const auto meaning = [&](const std::string& name) {
    const NamedConfig found =
        find_config(files.workspace(), name, files.folder.path(), fixed_surroundings());
    return found.project.path + ":" + found.config.name;
  };
  const std::string inner = "projects/nested/projects/two";
  for (const char* separator : {":", "/"}) {
    CHECK(meaning(std::string("projects/two") + separator + "both") == "projects/two:both");
    CHECK(meaning(inner + separator + "both") == inner + ":both");
  }
}

TEST_CASE("the enclosing project wins over others") {
  const Fixture fixture;
  REQUIRE(fixture.meaning("both", "projects/one/templates/configs") == "projects/one:both");
  REQUIRE(fixture.meaning("both", "projects/two") == "projects/two:both");
}

TEST_CASE("an ambiguous name lists its candidates") {
  const Fixture fixture;
  const std::string error = fixture.error("both");
  REQUIRE(error.find("projects/one:both, projects/two:both") != std::string::npos);
  REQUIRE(error.find("-p PROJECT") != std::string::npos);
}

TEST_CASE("a file that two projects list belongs to the one that holds it") {
  const Fixture fixture;
  REQUIRE(fixture.files.project("two").find("owned") != nullptr);
  REQUIRE(fixture.meaning("owned") == "projects/shared:owned");
  REQUIRE(fixture.meaning("owned", "projects/two") == "projects/two:owned");
}

TEST_CASE("an unknown name gets near misses or the reason why a project is missing") {
  const Fixture fixture;
  REQUIRE(fixture.error("train_onne").find("did you mean 'train_one'?") != std::string::npos);
  REQUIRE(fixture.error("onee/both").find("did you mean 'one/both'") != std::string::npos);
  REQUIRE(fixture.error("zzzzzz").find("forge ls -r") != std::string::npos);
  fixture.files.add_project("broken", "searchdir: x\n");
  REQUIRE(fixture.error("zzzzzz").find("could not be read") != std::string::npos);
  REQUIRE(fixture.meaning("train_one") == "projects/one:train_one");
}

TEST_CASE("a project is named by a folder or a path or its display name") {
  const Fixture fixture;
  fixture.files.folder.write("elsewhere/one/meta.yaml", "");
  const auto path = [&](const std::string& name, const std::string& from = ".") {
    return find_project(
               fixture.files.workspace(), name, fixture.files.folder / from, fixed_surroundings())
        .path;
  };
  REQUIRE(path("two") == "projects/two");
  REQUIRE(path("projects/one") == "projects/one");
  REQUIRE(path("The first") == "projects/one");
  REQUIRE(path("one/", "projects") == "projects/one");
  REQUIRE(path(".", "projects/two") == "projects/two");
  REQUIRE(path((fixture.files.folder / "elsewhere/one").string()) == "elsewhere/one");
  REQUIRE(error_of([&] { path("one"); }).find("elsewhere/one, projects/one") != std::string::npos);
  REQUIRE(error_of([&] { path("twoo"); }).find("did you mean 'two'") != std::string::npos);
}

TEST_CASE("a project without a workspace is a problem of its own among those below a folder") {
  const Fixture fixture;
  const tests::TemporaryFolder loose;
  loose.write("p/meta.yaml", "");
  const ProjectList inside =
      load_projects(projects_below(fixture.files.folder.path()), fixed_surroundings());
  REQUIRE(inside.projects.size() == 3);
  REQUIRE(inside.problems.empty());
  const ProjectList outside = load_projects(projects_below(loose.path()), fixed_surroundings());
  REQUIRE(outside.projects.empty());
  REQUIRE(outside.problems.size() == 1);
  REQUIRE(outside.problems[0].message().find("no workspace around") == 0);
}

TEST_CASE("an empty name is the project's default config") {
  const Fixture fixture;
  const Project project = fixture.files.project("one");
  REQUIRE(config_of(project, "").name == "both");
  REQUIRE(config_of(project, "train_one.yaml").name == "train_one");
  REQUIRE(error_of([&] { config_of(project, "trainone"); }).find("did you mean 'train_one'") !=
          std::string::npos);
  REQUIRE(error_of([&] { config_of(Project{}, ""); }).find("has no configs") != std::string::npos);
}

TEST_CASE("the beginning of just one config's name is enough") {
  const tests::TemporaryWorkspace files;
  files.add_project("one");
  files.add_config("one", "train");
  files.add_config("one", "train_long");
  files.add_config("one", "train_wide");
  files.add_project("two");
  files.add_config("two", "eval_long");
  const auto found = [&](const std::string& name) {
    const NamedConfig named =
        find_config(files.workspace(), name, files.folder / "projects/one", fixed_surroundings());
    return named.project.path + ":" + named.config.name;
  };
  REQUIRE(found("train") == "projects/one:train");
  REQUIRE(found("train_l") == "projects/one:train_long");
  files.add_config("two", "train_l");  // the enclosing project's own comes first
  REQUIRE(found("train_l") == "projects/one:train_long");
  files.add_config("two", "train_");  // a whole name before several beginnings
  REQUIRE(found("train_") == "projects/two:train_");
  std::filesystem::remove(files.folder / "projects/two/templates/configs/train_.yaml");
  REQUIRE(found("ev") == "projects/two:eval_long");
  REQUIRE(found("two/ev") == "projects/two:eval_long");
  REQUIRE(config_of(files.project("one"), "train_w").name == "train_wide");
  REQUIRE(error_of([&] {
            found("train_");
          }).find("may mean several configs: projects/one:train_long, projects/one:train_wide") !=
          std::string::npos);
}

TEST_CASE("every config of the shipped workspace is found by its bare name") {
  const Workspace workspace = tests::shipped_workspace();
  const ProjectList list = load_projects(projects_of(workspace), fixed_surroundings());
  REQUIRE(list.problems.empty());
  for (const char* name :
       {"train_llama", "train_canon_ac", "4M", "nope_4M", "baseline", "canon_a_nope"}) {
    INFO(name);
    REQUIRE_NOTHROW(find_config(workspace, name, workspace.root, fixed_surroundings()));
  }
}

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
  const ProjectList list = load_projects(projects_of(files.workspace()), fixed_surroundings());
  REQUIRE(list.projects.size() == 6);
  size_t told = 0;
  const auto listing =
      list_configs(list.projects, fixed_surroundings(), [&](size_t done, size_t all) {
        CHECK(done == ++told);
        CHECK(all == 30);
      });
  REQUIRE(told == 30);
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
  const ProjectList list = load_projects(projects_of(files.workspace()), fixed_surroundings());
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

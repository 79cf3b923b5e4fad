#include "core/project/project.h"

#include "core/base/fs.h"
#include "tests/core/project/fixture.h"
#include "tests/support/catch.h"

namespace forge::project {
namespace {

using tests::error_of;
using tests::fixed_surroundings;
using tests::TemporaryWorkspace;

std::vector<std::string> names(const Project& project) {
  std::vector<std::string> list;
  for (const Config& config : project.configs) list.push_back(config.name);
  return list;
}

TEST_CASE("an empty meta.yaml gives a project with the defaults") {
  TemporaryWorkspace workspace;
  workspace.add_project("small");
  workspace.add_config("small", "b");
  workspace.add_config("small", "a");
  const Project project = workspace.project("small");
  REQUIRE(project.name == "small");
  REQUIRE(project.path == "projects/small");
  REQUIRE(project.search_path == std::vector<fs::path>{project.folder / "templates"});
  REQUIRE(names(project) == std::vector<std::string>{"a", "b"});
  REQUIRE(project.default_config == "a");
}

TEST_CASE("meta.yaml is a template that sees the workspace's settings folder") {
  TemporaryWorkspace workspace;
  workspace.folder.write("forge_workspace/defaults.yaml",
                         "-- block name\nname: none\n-- endblock\n"
                         "description: in {{ basename(workspace_root) }}\n"
                         "searchdir:\n- {{ joinpath(project_dir, 'own') }}\n- ../shared\n"
                         "config_prefix: experiments\ndefault_config: run.yaml\nowner: me\n");
  workspace.add_project("p", "-- extends 'defaults.yaml'\n[name]\nname: A title\n");
  workspace.folder.write("projects/p/own/experiments/run.yaml", "name: own\n");
  workspace.folder.write("projects/shared/experiments/run.yaml", "name: shared\n");
  workspace.folder.write("projects/shared/experiments/deep/er.yaml", "name: deep\n");
  workspace.folder.write("projects/shared/experiments/.hidden/no.yaml", "");
  workspace.folder.write("projects/shared/experiments/notes.txt", "");
  const Project project = workspace.project("p");
  REQUIRE(project.name == "A title");
  REQUIRE(project.description == "in " + workspace.folder.path().filename().string());
  REQUIRE(project.search_path[1] == workspace.folder / "projects/shared");
  REQUIRE(names(project) == std::vector<std::string>{"deep/er", "run"});
  REQUIRE(project.default_config == "run");
  REQUIRE(project.find("run")->file == workspace.folder / "projects/p/own/experiments/run.yaml");
  REQUIRE(project.find("deep/er.yaml")->template_name == "experiments/deep/er.yaml");
  REQUIRE(project.find("er") == nullptr);
  REQUIRE(project.unknown_keys.size() == 1);
  REQUIRE(project.unknown_keys[0].key == "owner");
  REQUIRE(project.unknown_keys[0].origin.line == 10);
}

TEST_CASE("a wrong meta.yaml is refused at its place in the template") {
  TemporaryWorkspace workspace;
  const auto error_for = [&](const std::string& meta) {
    workspace.add_project("p", meta);
    return error_of([&] { workspace.project("p"); });
  };
  REQUIRE(error_for("\nsearchdir: templates\n")
              .find("meta.yaml:2:12: error: 'searchdir' is the "
                    "string 'templates'") != std::string::npos);
  REQUIRE(error_for("searchdir: [1]\n").find("is the number 1") != std::string::npos);
  REQUIRE(error_for("name: {a: b}\n").find("'name' is a mapping") != std::string::npos);
  REQUIRE(error_for("- a\n").find("meta.yaml is a sequence") != std::string::npos);
}

TEST_CASE("a linked config is listed and a linked folder is not entered") {
  TemporaryWorkspace workspace;
  workspace.add_project("p");
  workspace.add_config("p", "a");
  const fs::path configs = workspace.folder / "projects/p/templates/configs";
  fs::create_symlink(configs / "a.yaml", configs / "b.yaml");
  fs::create_directory_symlink(configs, configs / "again");
  REQUIRE(names(workspace.project("p")) == std::vector<std::string>{"a", "b"});
}

TEST_CASE("a summary is the config's name and description and whether it trains") {
  TemporaryWorkspace workspace;
  workspace.add_project("p");
  workspace.add_config("p", "own", "-- set x = 'A'\nname: {{ x }}\ndescription: what\ntrain: {}\n");
  workspace.add_config("p", "foreign", "meta: {config_name: N, config_description: D}\nname: no\n");
  workspace.add_config("p", "bare", "[1, 2]\n");
  const Project project = workspace.project("p");
  const auto summary = [&](const char* name) {
    return summarize(project, *project.find(name), fixed_surroundings());
  };
  REQUIRE(summary("own").name == "A");
  REQUIRE(summary("own").description == "what");
  REQUIRE(summary("own").trains);
  REQUIRE(summary("foreign").name == "N");
  REQUIRE(summary("foreign").description == "D");
  REQUIRE_FALSE(summary("foreign").trains);
  REQUIRE(summary("bare").name.empty());
}

}  // namespace
}  // namespace forge::project

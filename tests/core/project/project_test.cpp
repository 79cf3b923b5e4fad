#include "core/project/project.h"

#include <unistd.h>

#include <cstdlib>

#include "core/base/files.h"
#include "core/project/workspace.h"
#include "tests/core/project/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/other_user.h"

namespace forge::project {
namespace {

using tests::error_of;
using tests::TemporaryFolder;

TEST_CASE("the nearest folder upwards with a settings folder is the workspace") {
  TemporaryFolder folder;
  folder.write("forge_workspace/x", "");
  folder.write("inner/forgather_workspace/x", "");
  folder.write("inner/deep/er/x", "");
  folder.write("other/x", "");
  REQUIRE(find_workspace(folder / "inner/deep/er")->root == folder / "inner");
  REQUIRE(find_workspace(folder / "inner/deep/er")->settings ==
          folder / "inner/forgather_workspace");
  REQUIRE(find_workspace(folder / "other/")->root == folder.path());
}

TEST_CASE("another user's workspace is none for a folder of one's own below it", "[hostile]") {
  if (::geteuid() != 0) return;  // only root can be two users
  TemporaryFolder folder;
  folder.write("scratch/forge_workspace/x", "");
  folder.write("scratch/mine/x", "");
  folder.write("scratch/theirs/x", "");
  const fs::path scratch = folder / "scratch";
  constexpr uid_t stranger = 65534;
  for (const fs::path& theirs : {scratch / "forge_workspace", scratch / "theirs"})
    REQUIRE(::chown(theirs.c_str(), stranger, stranger) == 0);
  const auto refused = [&](const char* from) {
    return error_of([&] { find_workspace(scratch / from); });
  };
  for (const char* from : {"mine", "mine/not there", "."}) {
    CAPTURE(from);
    CHECK(tests::contains(refused(from), "/scratch' belongs to "));
    CHECK(tests::contains(refused(from), "'forge init' makes this folder a workspace"));
  }
  CHECK(refused("theirs").empty());  // where one goes into it
  ::setenv("FORGE_TRUSTED_WORKSPACES", ("/nowhere:" + scratch.string()).c_str(), 1);
  CHECK(refused("mine").empty());
  ::unsetenv("FORGE_TRUSTED_WORKSPACES");
  REQUIRE(::chown(scratch.c_str(), stranger, stranger) == 0);  // all of it
  CHECK(refused(".").empty());
  CHECK_FALSE(refused("mine").empty());
  // A program's own tree is its, whoever built it there.
  const fs::path program = folder.write("scratch/mine/build/forge", "");
  CHECK(locate_workspace("/", program).root == scratch);
  folder.write("scratch/mine/forge_workspace/x", "");
  CHECK(find_workspace(scratch / "mine")->root == scratch / "mine");
}

TEST_CASE("configs that this user may not read are no empty project", "[closed]") {
  const tests::TemporaryWorkspace place;
  place.add_project("a");
  place.add_config("a", "x");
  const fs::path configs = place.folder / "projects/a/templates/configs";
  fs::permissions(place.folder.path(), fs::perms::all);
  fs::permissions(configs, fs::perms::none);
  const std::string said = tests::words_of_other_user(
      [&] { return std::to_string(place.project("a").configs.size()) + " configs"; });
  fs::permissions(configs, fs::perms::owner_all);
  CHECK(tests::contains(said, "cannot read the folder '"));
  CHECK(tests::contains(said, "templates/configs': Permission denied"));
}

TEST_CASE("folders whose path would break lines and commands are no workspaces and projects",
          "[hostile]") {
  TemporaryFolder folder;
  folder.write("a\nb/forge_workspace/x", "");
  REQUIRE(tests::contains(error_of([&] { find_workspace(folder / "a\nb"); }),
                          "the path of the workspace"));
  folder.write("forge_workspace/x", "");
  folder.write("c\nd/meta.yaml", "name: x\n");
  REQUIRE(tests::contains(
      error_of([&] { load_project(*find_workspace(folder.path()), folder / "c\nd", {}, nullptr); }),
      "the path of the project"));
}

TEST_CASE("projects are found sorted and not in outputs or builds or inner workspaces") {
  TemporaryFolder folder;
  folder.write("forge_workspace/x", "");
  for (const char* place : {"b",
                            "a",
                            "a/inner",
                            "a-b",
                            ".hidden",
                            "build",
                            "build-debug",
                            "runs",
                            "a/output_models",
                            "nested",
                            "nested/p"}) {
    folder.write(std::string(place) + "/meta.yaml", "");
  }
  folder.write("nested/forge_workspace/x", "");
  fs::create_directory_symlink(folder / "b", folder / "link");
  std::vector<std::string> found;
  const Workspace workspace = *find_workspace(folder.path());
  for (const ProjectFolder& project : projects_of(workspace)) {
    found.push_back(project.folder.lexically_relative(workspace.root).generic_string());
  }
  REQUIRE(found == std::vector<std::string>{"a", "a-b", "a/inner", "b"});
}

TEST_CASE("projects below a folder have the workspace nearest above them or none") {
  TemporaryFolder folder;
  for (const char* place : {"loose", "one/p", "one/inner/q"}) {
    folder.write(std::string(place) + "/meta.yaml", "");
  }
  folder.write("one/forge_workspace/x", "");
  folder.write("one/inner/forgather_workspace/x", "");
  const std::vector<ProjectFolder> found = projects_below(folder.path());
  REQUIRE(found.size() == 3);
  REQUIRE_FALSE(found[0].workspace);
  REQUIRE(found[1].folder == absolute_folder(folder / "one/inner/q"));
  REQUIRE(found[1].workspace->root == absolute_folder(folder / "one/inner"));
  REQUIRE(found[2].workspace->root == absolute_folder(folder / "one"));
  REQUIRE(projects_below(folder / "one/inner").size() == 1);
}

TEST_CASE("the enclosing project is the nearest one within the workspace") {
  TemporaryFolder folder;
  folder.write("meta.yaml", "");
  folder.write("ws/forge_workspace/x", "");
  folder.write("ws/p/meta.yaml", "");
  folder.write("ws/p/templates/configs/x", "");
  folder.write("ws/other/x", "");
  const Workspace workspace = *find_workspace(folder / "ws");
  REQUIRE(enclosing_project_folder(workspace, folder / "ws/p/templates/configs") ==
          folder / "ws/p");
  REQUIRE_FALSE(enclosing_project_folder(workspace, folder / "ws/other"));
  REQUIRE_FALSE(enclosing_project_folder(workspace, folder.path()));
}

TEST_CASE("an installed program brings a read-only workspace for those who have none") {
  TemporaryFolder folder;
  folder.write("prefix/share/forge/forge_workspace/x", "");
  folder.write("prefix/bin/forge", "");
  folder.write("mine/forge_workspace/x", "");
  folder.write("empty/x", "");
  const fs::path program = folder / "prefix/bin/forge";
  const Workspace shipped = locate_workspace(folder / "empty", program);
  REQUIRE(shipped.root == folder / "prefix/share/forge");
  REQUIRE(shipped.shipped);
  REQUIRE(locate_workspace(folder / "prefix/share/forge", program).shipped);
  const Workspace mine = locate_workspace(folder / "mine", program);
  REQUIRE(mine.root == folder / "mine");
  REQUIRE_FALSE(mine.shipped);
}

TEST_CASE("a program that was only built finds the source tree around it") {
  TemporaryFolder folder;
  folder.write("tree/forge_workspace/x", "");
  folder.write("tree/build/release/forge", "");
  folder.write("empty/x", "");
  const Workspace found = locate_workspace(folder / "empty", folder / "tree/build/release/forge");
  REQUIRE(found.root == folder / "tree");
  REQUIRE(found.shipped);  // called from elsewhere: nothing is written there
  REQUIRE_FALSE(locate_workspace(folder / "tree", folder / "tree/build/release/forge").shipped);
}

TEST_CASE("without any workspace the error says what one is") {
  TemporaryFolder folder;
  folder.write("bin/forge", "");
  const std::string error =
      error_of([&] { locate_workspace(folder.path(), folder / "bin/forge"); });
  REQUIRE(error.find("holds forge_workspace/") != std::string::npos);
}

TEST_CASE("a workspace names its default project in workspace.yaml") {
  TemporaryFolder folder;
  folder.write("forge_workspace/workspace.yaml", "default_project: projects/p  # the one\n");
  folder.write("projects/p/meta.yaml", "");
  REQUIRE(find_workspace(folder.path())->default_project == "projects/p");
  REQUIRE(tests::shipped_workspace().default_project == "projects/canon");
}

TEST_CASE("a wrong workspace.yaml is refused at its place") {
  TemporaryFolder folder;
  const auto error_for = [&](const std::string& text) {
    folder.write("forge_workspace/workspace.yaml", text);
    return error_of([&] { find_workspace(folder.path()); });
  };
  REQUIRE(error_for("default_projekt: x\n")
              .find("workspace.yaml:1:1: error: unknown key "
                    "'default_projekt'") != std::string::npos);
  REQUIRE(error_for("default_project: x\n").find("workspace.yaml:1:18: error: no project 'x'") !=
          std::string::npos);
  REQUIRE(error_for("default_project: [x]\n").find("is a sequence") != std::string::npos);
  REQUIRE(error_for("- x\n").find("are a mapping") != std::string::npos);
}

using tests::error_of;
using tests::fixed_surroundings;
using tests::TemporaryWorkspace;

std::vector<std::string> names(const Project& project) {
  std::vector<std::string> list;
  for (const Config& config : project.configs) list.push_back(config.name);
  return list;
}

TEST_CASE("copies of a project share its configs") {
  TemporaryWorkspace workspace;
  workspace.add_project("small");
  for (const char* name : {"c", "a", "b"}) workspace.add_config("small", name);
  const Project project = workspace.project("small");
  const Project copy = project;
  REQUIRE(&copy.configs[0] == &project.configs[0]);
  for (const char* name : {"a", "b", "c"}) {
    REQUIRE(project.find(name));
    CHECK(project.find(name)->name == name);
  }
  CHECK(project.find("b.yaml") == project.find("b"));
  CHECK(project.find("") == nullptr);
  CHECK(project.find("bb") == nullptr);
  CHECK(project.find("d") == nullptr);
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

TEST_CASE("files with names that commands cannot take are no configs, and one warning names them") {
  TemporaryWorkspace workspace;
  workspace.add_project("p");
  for (const char* name : {"fine", "*", "-rf", "new\nline", "deep/a b"})
    workspace.add_config("p", name);
  const Project project = workspace.project("p");
  REQUIRE(names(project) == std::vector<std::string>{"fine"});
  const std::vector<std::string> warnings = misnamed_warnings(project);
  REQUIRE(warnings.size() == 1);
  INFO(warnings[0]);
  CHECK(warnings[0].find("4 files of the project 'projects/p'") != std::string::npos);
  CHECK(warnings[0].find("configs/*.yaml'") != std::string::npos);
  CHECK(warnings[0].find('\n') == std::string::npos);
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

#include "core/project/new_files.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/config/resolve.h"
#include "core/project/names.h"
#include "tests/core/project/fixture.h"
#include "tests/support/catch.h"

namespace forge::project {
namespace {

using tests::error_of;

jinja::HostEnvironment with_library() {
  jinja::HostEnvironment host_environment = tests::fixed_surroundings();
  host_environment.library_dir = (tests::tests_dir().parent_path() / "templates").string();
  return host_environment;
}

NewProject request_in(const tests::TemporaryFolder& folder, const std::string& name) {
  NewProject request;
  request.parent = folder.path();
  request.name = name;
  return request;
}

/// A new workspace in a temporary folder.
struct Lab {
  Lab() {
    NewWorkspace request;
    request.folder = folder.path();
    files = create_workspace(request);
  }
  CreatedProject add(const std::string& name) const {
    return create_project(request_in(folder, name), with_library());
  }
  Project load(const CreatedProject& created) const {
    return load_project(*find_workspace(folder.path()), created.folder, with_library());
  }
  tests::TemporaryFolder folder;
  std::vector<fs::path> files;
};

TEST_CASE("a new workspace is one and is not made twice") {
  const Lab lab;
  REQUIRE(lab.files.size() == 5);
  for (const fs::path& file : lab.files) REQUIRE(fs::exists(file));
  REQUIRE(find_workspace(lab.folder.path())->root == absolute_folder(lab.folder.path()));
  CHECK(read_file(lab.folder / ".gitignore") == "/runs/\n");
  NewWorkspace again;
  again.folder = lab.folder.path();
  REQUIRE(error_of([&] { create_workspace(again); }).find("is a workspace already") !=
          std::string::npos);
}

TEST_CASE("a new workspace's own libraries are searched before forge's and move with it") {
  const tests::TemporaryFolder folder;
  folder.write("shared/mine.yaml", "x\n");
  NewWorkspace request;
  request.folder = folder.path();
  request.libraries = {folder / "shared"};
  create_workspace(request);
  const std::string defaults = read_file(folder / "forge_workspace/meta_defaults.yaml");
  REQUIRE(defaults.find("joinpath(workspace_root, \"shared\")") != std::string::npos);
  const CreatedProject created = create_project(request_in(folder, "P"), with_library());
  const Project project =
      load_project(*find_workspace(folder.path()), created.folder, with_library());
  REQUIRE(project.search_path.at(1) == absolute_folder(folder / "shared"));
  REQUIRE(project.search_path.back() == fs::path(with_library().library_dir));
}

TEST_CASE("a new project resolves as it is and its variant differs from its baseline") {
  const Lab lab;
  const CreatedProject created = lab.add("Wider Kernels!");
  REQUIRE(created.folder.filename() == "wider_kernels");
  REQUIRE(created.trains);
  for (const fs::path& file : created.files) REQUIRE(fs::exists(file));
  const Project project = lab.load(created);
  REQUIRE(project.name == "Wider Kernels!");
  REQUIRE(project.default_config == "train_baseline");
  config::ResolveOptions options;
  options.host_environment = with_library();
  const auto baseline = config::resolve(project, "train_baseline", options);
  const auto variant = config::resolve(project, "train_variant", options);
  REQUIRE(baseline.trains);
  REQUIRE(baseline.experiment.model.canon.set.empty());
  REQUIRE(variant.experiment.model.canon.set == "AC");
}

TEST_CASE("without forge's library a new project has one plain config") {
  const tests::TemporaryFolder folder;
  folder.write("forgather_workspace/meta_defaults.yaml",
               "[metadata]\nname: x\n[configs]\nconfig_prefix: configs\n");
  const CreatedProject created = create_project(request_in(folder, "Plain"), with_library());
  REQUIRE_FALSE(created.trains);
  const Project project =
      load_project(*find_workspace(folder.path()), created.folder, with_library());
  REQUIRE(summarize(project, config_of(project, ""), with_library()).name == "Default");
}

TEST_CASE("a new project never touches what is there") {
  const Lab lab;
  lab.add("One");
  REQUIRE(error_of([&] { lab.add("one"); }).find("exists already") != std::string::npos);
  const tests::TemporaryFolder outside;
  const auto make = [&] { create_project(request_in(outside, "x"), with_library()); };
  REQUIRE(error_of(make).find("no workspace around") != std::string::npos);
  REQUIRE(fs::is_empty(outside.path()));
}

TEST_CASE("names that lead elsewhere or hold template code are refused") {
  const Lab lab;
  REQUIRE(error_of([&] { lab.add("a {{ b }}"); }).find("means something in a template") !=
          std::string::npos);
  NewProject request = request_in(lab.folder, "x");
  for (const char* name : {"../x", "/x", "a/../../b"}) {
    request.folder_name = name;
    INFO(name);
    REQUIRE(error_of([&] { create_project(request, with_library()); }).find("cannot name") !=
            std::string::npos);
  }
}

TEST_CASE("a name that commands would read as an option, a pattern or a path is refused") {
  const Lab lab;
  const CreatedProject created = lab.add("One");
  NewConfig request;
  request.project = created.folder;
  for (const char* name : {"-rf", "*", ".hid", "new\nline", "deep/-x", "a//b", "a b", "../x", ""}) {
    INFO(name);
    request.name = name;
    const std::string error = error_of([&] { create_config(request, with_library()); });
    CHECK(error.find("cannot name a config") != std::string::npos);
    CHECK(error.find("begin with a letter") != std::string::npos);
  }
  CHECK(error_of([&] { lab.add("*"); }).find("'*' cannot name the project's folder") !=
        std::string::npos);
  CHECK(error_of([&] { lab.add("../x"); }).find("forge project create x --in ..") !=
        std::string::npos);
  CHECK_FALSE(fs::exists(lab.folder / "_x"));
}

TEST_CASE("a new config extends the default one and can be resolved at once") {
  const Lab lab;
  const CreatedProject created = lab.add("One");
  NewConfig request;
  request.project = created.folder;
  request.name = "deep/train_wide.yaml";
  request.description = "A \"wide\" one";
  const fs::path file = create_config(request, with_library());
  REQUIRE(file == created.folder / "templates/configs/deep/train_wide.yaml");
  const Project project = lab.load(created);
  const ConfigSummary summary =
      summarize(project, config_of(project, "deep/train_wide"), with_library());
  REQUIRE(summary.name == "deep/train_wide");
  REQUIRE(summary.description == "A \"wide\" one");
  REQUIRE(summary.trains);
  REQUIRE(error_of([&] { create_config(request, with_library()); }).find("exists already") !=
          std::string::npos);
}

TEST_CASE("a new template goes where its type says") {
  const Lab lab;
  const CreatedProject created = lab.add("One");
  NewConfig request;
  request.project = created.folder;
  request.name = "shared";
  request.kind = TemplateKind::project;
  REQUIRE(create_config(request, with_library()) == created.folder / "templates/shared.yaml");
  request.kind = TemplateKind::workspace;
  REQUIRE(create_config(request, with_library()) ==
          absolute_folder(lab.folder.path()) / "forge_workspace/shared.yaml");
  request.kind = TemplateKind::config;
  request.name = "copy";
  request.copied_file = created.folder / "templates/configs/train_variant.yaml";
  REQUIRE(read_file(create_config(request, with_library())) == read_file(request.copied_file));
}

TEST_CASE("a project's folder is called after its name") {
  REQUIRE(folder_name_of("My Idea 2") == "my_idea_2");
  REQUIRE(folder_name_of("  ..a//b  ") == "a_b");
  REQUIRE(folder_name_of("v1.2-x") == "v1.2-x");
  REQUIRE(folder_name_of("!!").empty());
}

}  // namespace
}  // namespace forge::project

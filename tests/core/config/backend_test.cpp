#include "core/config/backend.h"

#include <nlohmann/json.hpp>

#include "core/config/experiment.h"
#include "core/config/resolve.h"
#include "core/project/names.h"
#include "core/run/identity.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::config {
namespace {

using namespace tests;
namespace fs = std::filesystem;

const std::string model =
    "model:\n  vocab_size: 300\n  hidden_size: 16\n  num_layers: 1\n"
    "  attention: {num_heads: 2}\n  mlp: {intermediate_size: 32}\ntokenizer: {vocab_size: "
    "300}\ntrain: {max_steps: 4}\n";

/// A workspace with one project of one config.
struct Place {
  explicit Place(const std::string& text) {
    folder.write("forge_workspace/base_directories.yaml", "");
    folder.write("p/meta.yaml",
                 "name: P\nsearchdir: [" + (folder / "p/templates").string() + "]\n");
    folder.write("p/templates/configs/c.yaml", text + model);
  }
  ResolvedConfig resolved(const std::vector<std::string>& overrides = {}) const {
    ResolveOptions options;
    options.overrides = overrides;
    options.host_environment.working_directory = folder.path().string();
    const auto workspace = project::find_workspace(folder.path());
    return resolve(
        project::load_project(*workspace, folder / "p", options.host_environment), "c", options);
  }
  TemporaryFolder folder;
};

TEST_CASE("an external backend has its command in the config", "[backend]") {
  const Place place(
      "backend: external\n"
      "external: {command: [awk, -f, a b.awk], environment: [A=1, B=x=y]}\n");
  const ExternalConfig external = place.resolved().experiment.external;
  CHECK(external.command == std::vector<std::string>{"awk", "-f", "a b.awk"});
  CHECK(external.environment == std::vector<std::string>{"A=1", "B=x=y"});
  CHECK(external.working_directory == (place.folder / "p").string());
}

TEST_CASE("a declared backend is chosen by its name, the project's before the workspace's",
          "[backend]") {
  const Place place("");
  place.folder.write("backends/fake/backend.yaml", "command: [far]\n");
  place.folder.write("p/backends/fake/backend.yaml",
                     "description: near\ncommand: [./near, --fast]\nenvironment: [A=1]\n");
  const ResolvedConfig resolved = place.resolved({"backend=fake"});
  const ExternalConfig& external = resolved.experiment.external;
  CHECK(external.command == std::vector<std::string>{"./near", "--fast"});
  CHECK(external.environment == std::vector<std::string>{"A=1"});
  CHECK(external.working_directory == (place.folder / "p/backends/fake").string());
  const Setting& who = resolved.origins.at("external.command").set_by;
  CHECK(who.layer == "backend fake");
  CHECK(contains(who.origin.describe(), "p/backends/fake/backend.yaml:2"));
  CHECK(experiment_from_json(resolved.json).external.command == external.command);
}

TEST_CASE("the command line may change what a declaration says", "[backend]") {
  const Place place("");
  place.folder.write("backends/fake/backend.yaml", "command: [a]\nworking_directory: work\n");
  fs::create_directories(place.folder / "backends/fake/work");
  const auto external =
      place.resolved({"backend=fake", "external.command=[b, c]"}).experiment.external;
  CHECK(external.command == std::vector<std::string>{"b", "c"});
  CHECK(external.working_directory == (place.folder / "backends/fake/work").string());
}

TEST_CASE("a command in the config gives way to the backend that the command line names",
          "[backend]") {
  const Place place("backend: external\nexternal: {command: [old]}\n");
  place.folder.write("backends/fake/backend.yaml", "command: [new]\n");
  CHECK(place.resolved({"backend=fake"}).experiment.external.command ==
        std::vector<std::string>{"new"});
  CHECK(place.resolved({"backend=libtorch"}).experiment.external.command.empty());
}

TEST_CASE("what is wrong with a backend is said at the key", "[backend]") {
  const auto error = [](const std::string& text, const std::vector<std::string>& overrides = {}) {
    const Place place(text);
    place.folder.write("backends/bad/backend.yaml", "comand: [a]\n");
    place.folder.write("backends/fake/backend.yaml", "command: [a]\n");
    return error_of([&] { place.resolved(overrides); });
  };
  const std::string unknown = error("backend: fakr\n");
  CHECK(contains(unknown, "unknown backend 'fakr'"));
  CHECK(contains(unknown, "c.yaml:1:10"));
  CHECK(contains(unknown, "did you mean 'fake'"));
  CHECK(contains(error("", {"backend=../fake"}), "unknown backend"));
  CHECK(contains(error("backend: external\n"), "external.command names no program"));
  CHECK(contains(error("external: {command: [a]}\n"), "has no meaning where backend is libtorch"));
  CHECK(contains(error("backend: external\nexternal: {command: [a], environment: [A]}\n"),
                 "'A' is not NAME=VALUE"));
  CHECK(contains(error("backend: external\nexternal: {command: [a], working_directory: nowhere}\n"),
                 "no folder"));
  CHECK(contains(error("backend: bad\n"), "backends/bad/backend.yaml:1"));
}

TEST_CASE("command and environment belong to a run's identity and the folder does not",
          "[backend]") {
  Experiment experiment;
  const nlohmann::json own = run::identity_config(to_json(experiment));
  CHECK_FALSE(own.contains("external"));
  experiment.backend = "external";
  experiment.external = {{"a", "--x"}, "/here", {"A=1"}};
  const nlohmann::json here = run::identity_config(to_json(experiment));
  experiment.external.working_directory = "/there";
  CHECK(run::identity_config(to_json(experiment)) == here);
  experiment.external.command[1] = "--y";
  CHECK(run::identity_config(to_json(experiment)) != here);
}

TEST_CASE("all declared backends are listed by name", "[backend]") {
  const TemporaryFolder folder;
  folder.write("near/backends/b/backend.yaml", "description: one\ncommand: [x]\n");
  folder.write("far/backends/b/backend.yaml", "command: [y]\n");
  folder.write("far/backends/a/backend.yaml", "command: [z]\n");
  folder.write("far/backends/no_backend/readme", "");
  const auto listed =
      declared_backends(backend_folders(folder / "near", folder / "far", folder / "far/templates"));
  REQUIRE(listed.size() == 2);
  CHECK(listed[0].name == "a");
  CHECK(listed[1].description == "one");
  folder.write("near/backends/libtorch/backend.yaml", "command: [x]\n");
  const auto with_a_wrong_one = declared_backends({folder / "near/backends"});
  REQUIRE(with_a_wrong_one.size() == 2);
  CHECK(with_a_wrong_one[0].problem.empty());
  CHECK(with_a_wrong_one[1].name == "libtorch");
  CHECK(contains(with_a_wrong_one[1].problem, "cannot be called 'libtorch'"));
}

}  // namespace
}  // namespace forge::config

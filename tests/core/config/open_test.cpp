#include "core/config/open.h"

#include "core/config/kind.h"
#include "core/yaml/parse.h"
#include "tests/core/config/fixture.h"
#include "tests/support/catch.h"

namespace forge::config {
namespace {

bool is_experiment(const std::string& text) {
  return config::is_experiment(*yaml::parse(text, [](int, int) { return SourceSpan{}; }));
}

TEST_CASE("a config of forge is told from a graph of calls by its keys and tags") {
  CHECK(is_experiment("model: {num_layers: 1}\n"));
  CHECK(is_experiment("train: {}\nmistake: 1\n"));
  CHECK(is_experiment("model.canon.set: AC\n"));
  CHECK(is_experiment("model: !call:forge:from_project {}\n"));
  CHECK_FALSE(is_experiment("main: !call:f:g\nname: x\n"));
  CHECK_FALSE(is_experiment("meta: {config_name: x}\nname: x\n"));
  CHECK_FALSE(is_experiment("optimizer: !partial:torch:AdamW {lr: 1}\n"));
  CHECK_FALSE(is_experiment("[1, 2]\n"));
  CHECK_FALSE(is_experiment("other: 1\n"));
}

TEST_CASE("overrides are for configs of forge alone") {
  const tests::ConfigFixture fixture;
  fixture.files.add_config("p", "graph", "main: !call:f:g {lr: 1}\n");
  fixture.files.add_config("p", "small", tests::small_config);
  const project::Project project = fixture.files.project("p");
  const auto open = [&](const char* name, std::vector<std::string> overrides) {
    return open_config(project, name, tests::fixed_options(std::move(overrides)));
  };
  CHECK(leaves_of(open("graph", {})).size() == 2);
  CHECK(explain(open("graph", {}), "main.lr").front().value == 1);
  CHECK(explain(open("small", {"seed=3"}), "seed").front().value == 3);
  const std::string error = tests::error_of([&] { open("graph", {"seed=3"}); });
  CHECK(error.find("'graph' is none") != std::string::npos);
}

}  // namespace
}  // namespace forge::config

// A worker that is not what its run was planned for.

#include "tests/core/run/supervised_scene.h"

namespace forge::run {
namespace {

std::string with_part(std::string line, const std::string& part, const std::string& other) {
  REQUIRE(contains(line, part));
  return line.replace(line.find(part), part.size(), other);
}

/// Supervises a worker that says so; returns why the run failed, and says how often what is known
/// of workers was forgotten.
std::string reason_of(const std::string& hello, const std::string& environment, int& forgotten) {
  SupervisedScene scene({{{Says{hello}, Says{environment}, Says{lines::finished(true)}}, {}}});
  scene.options.forget_descriptions = [&] { ++forgotten; };
  scene.supervise();
  const nlohmann::json end = scene.last_event();
  if (end.at("status") == "completed") return "";
  CHECK(contains(end.at("hint").get<std::string>(), "forge run train_x' asks the worker again"));
  return end.at("reason").get<std::string>();
}

TEST_CASE("a worker that is another than was planned fails, and nobody relies on what it said",
          "[run][supervisor]") {
  int forgotten = 0;
  CHECK(reason_of(lines::hello, lines::environment, forgotten).empty());
  CHECK(forgotten == 0);
  const std::string other_numerics =
      with_part(lines::hello, "\"numerics_version\":1", "\"numerics_version\":2");
  CHECK(contains(reason_of(other_numerics, lines::environment, forgotten),
                 "the worker is 'fake' with numerics version 2, and the run is one of 'fake'"));
  CHECK(forgotten == 1);
  CHECK(contains(
      reason_of(
          lines::hello, with_part(lines::environment, "\"threads\":2", "\"threads\":7"), forgotten),
      "the worker computes on 7 CPU threads, and the run is one of 2 CPU threads"));
  CHECK(forgotten == 2);
  CHECK(contains(
      reason_of(lines::hello, with_part(lines::environment, "\"cpu\"", "\"cuda\""), forgotten),
      "the worker computes on cuda, and the run is one of 2 CPU threads"));
  CHECK(forgotten == 3);
}

}  // namespace
}  // namespace forge::run

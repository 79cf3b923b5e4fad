#pragma once

#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/run/event_log.h"
#include "core/run/supervisor.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/fake_runs.h"

namespace forge::run {

using namespace tests;  // Says, Exits, …: the words of the scripts

/// A run folder, a fake worker for each script, and what came of supervising them.
class SupervisedScene {
 public:
  explicit SupervisedScene(std::vector<WorkerScript> scripts,
                           const RunInputs& inputs = small_inputs())
      : folder(new_run(runs_.path(), inputs)), launcher(clock, std::move(scripts)) {
    options.clock = [this] { return clock.seconds; };
    options.poll_seconds = 1;
    options.sleep = [this](double seconds) { clock.seconds += seconds; };
  }

  int supervise() { return run::supervise(folder, CommandBackend({"worker"}), launcher, options); }

  /// Names of the stored events, in order.
  std::string story() const {
    std::vector<std::string> names;
    for (const StoredEvent& event : read_events(folder.events_file())) names.push_back(event.name);
    return join(names, " ");
  }
  nlohmann::json last_event() const { return read_events(folder.events_file()).back().json; }

 private:
  TemporaryFolder runs_;

 public:
  RunFolder folder;
  FakeClock clock;
  FakeLauncher launcher;
  SupervisorOptions options;
};

inline Script good_run() {
  return {Says{lines::hello},
          Says{lines::environment},
          Says{lines::train(1)},
          Saves{1},
          Says{lines::finished(true)},
          Exits{{0, 0}}};
}

inline Script then(Script script, const Script& more) {
  script.insert(script.end(), more.begin(), more.end());
  return script;
}

inline Script greeting() { return {Says{lines::hello}, Says{lines::environment}}; }

/// Supervises a worker that is expected to fail and returns the "ended" line.
inline nlohmann::json failure_of(const Script& script, const RunInputs& inputs = small_inputs()) {
  SupervisedScene scene({{script, {}}}, inputs);
  REQUIRE(scene.supervise() == supervised_failed);
  REQUIRE(scene.folder.state() == RunState::failed);
  REQUIRE_FALSE(fs::exists(scene.folder.done_file()));
  REQUIRE(scene.last_event().at("event") == "ended");
  return scene.last_event();
}

}  // namespace forge::run

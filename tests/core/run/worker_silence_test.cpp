// How long a worker may be silent.

#include "core/run/supervisor.h"

#include <csignal>

#include "core/base/files.h"
#include "tests/core/run/supervised_scene.h"

namespace forge::run {
namespace {

std::string started_line() {
  const config::TrainConfig train = config::experiment_from_json(small_inputs().experiment).train;
  worker::Started started{1000, 0, train.max_steps, train.batch_size * train.seq_len};
  started.gradient_slots = train.gradient_slots;
  return worker::to_line(worker::to_json(started));
}

TEST_CASE("a silent worker is killed at the limit and not before", "[run][supervisor]") {
  SupervisedScene patient({{then(greeting(),
                                 {IsSilent{118},
                                  Says{lines::train(1)},
                                  IsSilent{118},
                                  Says{lines::finished(true)},
                                  Exits{}}),
                            {}}});
  REQUIRE(patient.supervise() == supervised_completed);

  const auto ended = failure_of(then(greeting(), {IsSilent{122}, Says{lines::finished(true)}}));
  REQUIRE(contains(ended.at("reason"), "made no progress for 2m 00s"));
  REQUIRE(ended.at("retry") == false);

  REQUIRE(contains(failure_of({IsSilent{122}, Says{lines::hello}}).at("reason"), "no progress"));
}

TEST_CASE("what was long before is waited for twice as long, which the reason says",
          "[run][supervisor]") {
  const auto stepping = [](double first, double second) {
    return then(greeting(),
                {Says{lines::progress(0)},
                 IsSilent{first},
                 Says{lines::progress(1)},
                 IsSilent{second},
                 Says{lines::finished(true)}});
  };
  CHECK(contains(failure_of(stepping(100, 210)).at("reason"),
                 "made no progress for 3m 20s, twice as long as ever before (1m 40s)"));
  // The time that it took to start up is not that of a step.
  const Script slow_start = {Says{lines::hello},
                             Says{lines::environment},
                             IsSilent{100},
                             Says{started_line()},
                             Says{lines::progress(0)},
                             IsSilent{1},
                             Says{lines::progress(1)},
                             IsSilent{130},
                             Says{lines::finished(true)}};
  CHECK(contains(failure_of(slow_start).at("reason"), "made no progress for 2m 00s and was"));
}

TEST_CASE("the config says how long a worker may be silent", "[run][supervisor]") {
  for (const double patience : {40.0, 400.0}) {
    SupervisedScene scene(
        {{then(greeting(), {IsSilent{200}, Says{lines::finished(true)}, Exits{}}), {}}});
    auto request = nlohmann::json::parse(read_file(scene.folder.request_file()));
    request["experiment"]["train"]["hung_after_seconds"] = patience;
    write_file_atomic(scene.folder.request_file(), request.dump() + "\n");
    REQUIRE(scene.supervise() == (patience < 200 ? supervised_failed : supervised_completed));
  }
}

TEST_CASE("time that nobody watched is no silence", "[run][supervisor][hostile]") {
  struct Case {
    double patience, silence, suspended;
  };
  for (const Case& that : {Case{120, 50, 5000}, Case{4, 1, 5.2}}) {
    SupervisedScene scene({});
    scene.options.silence_seconds = that.patience;
    const auto suspended = [&] { scene.clock.seconds += that.suspended; };
    scene.launcher.add({then(greeting(),
                             {IsSilent{that.silence},
                              Does{suspended},
                              IsSilent{that.silence},
                              Says{lines::finished(true)},
                              Exits{}}),
                        {}});
    CHECK(scene.supervise() == supervised_completed);
  }
}

TEST_CASE("time that a scheduler stopped a run for is no time of its work", "[run][supervisor]") {
  for (const bool is_continued : {true, false}) {
    SupervisedScene scene({});
    const auto suspended = [&] {
      scene.clock.seconds += 100;
      if (is_continued) ::raise(SIGCONT);
    };
    scene.launcher.add({{Says{lines::hello},
                         Says{lines::environment},
                         Says{started_line()},
                         IsSilent{1},
                         Does{suspended},
                         IsSilent{1},
                         Exits{{1, 0}}},
                        {}});
    REQUIRE(scene.supervise() == supervised_failed);
    const double seconds = scene.last_event().value("stopped_seconds", 0.0);
    CHECK(seconds == (is_continued ? Approx(94).margin(3) : Approx(0)));
  }
}

TEST_CASE("a slow first step of a worker that computes is waited for", "[run][supervisor]") {
  const auto scene_of = [](double silence) {
    return std::vector<WorkerScript>{{then(greeting(),
                                           {Says{lines::progress(0)},
                                            IsSilent{silence},
                                            Says{lines::progress(1)},
                                            IsSilent{1.5 * silence},
                                            Says{lines::finished(true)},
                                            Exits{}}),
                                      {}}};
  };
  for (const bool computes : {true, false}) {
    SupervisedScene scene(scene_of(400));
    scene.options.cpu_seconds = [&](int) { return computes ? scene.clock.seconds : 7; };
    CHECK(scene.supervise() == (computes ? supervised_completed : supervised_failed));
    if (!computes) {
      CHECK(contains(scene.last_event().at("hint"), "raise train.hung_after_seconds (now 120)"));
      CHECK_FALSE(contains(scene.last_event().at("hint"), "stderr.log"));
    }
  }
  SupervisedScene hung(scene_of(1300));  // more than ten times as long is too much
  hung.options.cpu_seconds = [&](int) { return hung.clock.seconds; };
  CHECK(hung.supervise() == supervised_failed);
}

TEST_CASE("only progress that goes on is a sign of life", "[run][supervisor]") {
  Script alive = greeting();
  Script hung = greeting();
  for (int i = 1; i <= 4; ++i) {
    alive = then(alive, {IsSilent{50}, Says{lines::progress(i)}});
    hung = then(hung, {IsSilent{50}, Says{lines::progress(7)}});
  }
  SupervisedScene scene({{then(alive, {Says{lines::finished(true)}, Exits{}}), {}}});
  REQUIRE(scene.supervise() == supervised_completed);
  REQUIRE(
      contains(failure_of(then(hung, {Says{lines::finished(true)}})).at("reason"), "no progress"));
}

TEST_CASE("a finished worker that does not leave is ended and the log says so",
          "[run][supervisor][hostile]") {
  SupervisedScene scene({{then(greeting(), {Says{lines::finished(true)}}), {}}});
  const double began = scene.clock.seconds;
  REQUIRE(scene.supervise() == supervised_completed);
  REQUIRE(scene.launcher.signals == std::vector<std::string>{"kill"});
  REQUIRE(scene.clock.seconds - began <= scene.options.exit_grace_seconds + 2);
  REQUIRE(scene.last_event().at("reason") ==
          "the worker did not exit within 30s after its last event and was killed");
  REQUIRE(scene.folder.state() == RunState::completed);
}

}  // namespace
}  // namespace forge::run

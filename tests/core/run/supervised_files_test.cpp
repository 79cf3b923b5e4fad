// Files of a run that somebody removes, replaces or links while it is supervised.

#include "core/run/supervisor.h"

#include "core/base/files.h"
#include "tests/core/run/supervised_scene.h"

namespace forge::run {
namespace {

TEST_CASE("a run's lock that somebody removes is put back", "[run][supervisor][hostile]") {
  SupervisedScene scene({});
  bool held = false;
  scene.launcher.add({then(greeting(),
                           {Does{[&] { remove_tree(scene.folder.lock_file()); }},
                            IsSilent{3},
                            Does{[&] { held = scene.folder.is_running(); }},
                            Says{lines::finished(true)},
                            Exits{}}),
                      {}});
  REQUIRE(scene.supervise() == supervised_completed);
  REQUIRE(held);
}

TEST_CASE("a run whose lock another process has taken ends without a word in its events",
          "[run][supervisor][hostile]") {
  SupervisedScene scene({});
  std::optional<FileLock> other;
  scene.launcher.add({then(greeting(),
                           {Does{[&] {
                              remove_tree(scene.folder.lock_file());
                              other = FileLock::try_acquire(scene.folder.lock_file());
                            }},
                            IsSilent{3}}),
                      {}});
  REQUIRE(contains(error_of([&] { scene.supervise(); }), "another process has taken the run"));
  REQUIRE(scene.story() == "attempt hello environment");
  REQUIRE(scene.launcher.signals == std::vector<std::string>{"kill"});
}

TEST_CASE("a run whose folder or events somebody removes ends and leaves nothing",
          "[run][supervisor][hostile]") {
  for (const bool whole : {true, false}) {
    SupervisedScene scene({});
    const fs::path removed = whole ? scene.folder.path() : scene.folder.events_file();
    scene.launcher.add({then(greeting(), {Does{[&] { remove_tree(removed); }}, IsSilent{3}}), {}});
    CHECK(contains(error_of([&] { scene.supervise(); }), "was removed while the run went on"));
    CHECK_FALSE(fs::exists(removed));
    CHECK(scene.launcher.signals == std::vector<std::string>{"kill"});
  }
}

TEST_CASE("a run whose last file cannot be written is completed all the same",
          "[run][supervisor][hostile]") {
  SupervisedScene scene({});
  const auto block = [&] { make_directories(scene.folder.done_file() / "in the way"); };
  scene.launcher.add({then(greeting(), {Does{block}, Says{lines::finished(true)}, Exits{}}), {}});
  REQUIRE(scene.supervise() == supervised_completed);
  REQUIRE(scene.folder.state() == RunState::completed);
}

TEST_CASE("a run goes on where a surplus checkpoint cannot be removed",
          "[run][supervisor][hostile]") {
  SupervisedScene scene(
      {{then(greeting(), {Saves{1}, Saves{2}, Saves{3}, Says{lines::finished(true)}, Exits{}}),
        {}}});
  const fs::path all = scene.folder.checkpoints();
  make_directories(aside_path(all / "000000001", "old") / "in the way");
  REQUIRE(scene.supervise() == supervised_completed);
  REQUIRE(weights::list_checkpoints(all).size() == 3);
}

TEST_CASE("a stop is a stop whatever its file is", "[run][supervisor][stop][hostile]") {
  SupervisedScene scene({});
  scene.launcher.add({then(greeting(),
                           {Does{[&] { make_directories(scene.folder.stop_file()); }},
                            IsSilent{60},
                            Says{lines::train(99)}}),
                      {Says{lines::finished(false)}, Exits{{3, 0}}}});
  REQUIRE(scene.supervise() == supervised_stopped);
}

TEST_CASE("events are not appended to a file that has another name elsewhere",
          "[run][supervisor][hostile]") {
  for (const char* name : {"events.jsonl", "stderr.log", "supervisor.log", "lock"}) {
    SupervisedScene scene({{good_run(), {}}});
    const TemporaryFolder elsewhere;
    const fs::path theirs = elsewhere.write("theirs", "text without an end");
    fs::remove(scene.folder.path() / name);
    fs::create_hard_link(theirs, scene.folder.path() / name);
    CHECK(contains(error_of([&] { scene.supervise(); }), "has another name elsewhere"));
    CHECK(read_file(theirs) == "text without an end");
    CHECK(scene.launcher.launches.empty());
  }
}

TEST_CASE("a run with links in place of its own files is not begun", "[run][supervisor][hostile]") {
  const TemporaryFolder elsewhere;
  elsewhere.write("000000001/mine", "x");
  const fs::path theirs = elsewhere.write("file", "whole\ncut");
  SupervisedScene scene({{good_run(), {}}});
  const run::RunFolder& run = scene.folder;
  const auto is_refused = [&](const fs::path& link, const fs::path& target) {
    CAPTURE(link);
    fs::create_symlink(target, link);
    CHECK(contains(error_of([&] { scene.supervise(); }), "is a symbolic link"));
    CHECK(contains(error_of([&] {
                     write_run_folder(plan_run(small_inputs(), run.path().parent_path(), false),
                                      small_inputs());
                   }),
                   "is a symbolic link"));
    fs::remove(link);
  };
  for (const fs::path& target : {theirs, elsewhere / "new"}) {
    for (const fs::path& file :
         {run.lock_file(), run.events_file(), run.stderr_file(), run.supervisor_log()})
      is_refused(file, target);
  }
  is_refused(run.checkpoints(), elsewhere.path());
  is_refused(run.checkpoints(), elsewhere / "new");
  REQUIRE(read_file(theirs) == "whole\ncut");
  REQUIRE_FALSE(fs::exists(elsewhere / "new"));
  REQUIRE(fs::exists(elsewhere / "000000001/mine"));
  REQUIRE(scene.launcher.launches.empty());
  // The folder itself: it is no run of this runs folder, and the plan is another one.
  const fs::path away = elsewhere / run.id();
  fs::rename(run.path(), away);
  fs::create_symlink(away, run.path());
  CHECK(contains(error_of([&] { scene.supervise(); }), "is a symbolic link"));
  REQUIRE_FALSE(fs::exists(away / "lock"));
}

TEST_CASE("latest progress is not written through a link", "[run][supervisor][hostile]") {
  const TemporaryFolder elsewhere;
  const fs::path theirs = elsewhere.write("file", "text");
  SupervisedScene scene({{then(greeting(), then({Says{lines::progress(1)}}, good_run())), {}}});
  fs::create_symlink(theirs, scene.folder.progress_file().string() + ".tmp");
  scene.supervise();
  REQUIRE(read_file(theirs) == "text");
}

}  // namespace
}  // namespace forge::run

#include "core/manage/run_edits.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include "core/base/files.h"
#include "core/results/store/result_store.h"
#include "core/run/annotations.h"
#include "core/run/needed_checkpoints.h"
#include "core/run/queue/queue.h"
#include "core/run/run_folder.h"
#include "core/run/runs_dir.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/fake_runs.h"
#include "tests/support/other_user.h"
#include "tests/support/support.h"

namespace forge::manage {
namespace {

using namespace tests;
using Texts = std::vector<std::string>;

TEST_CASE("remarks are kept in the run folder and without any there is no file",
          "[upkeep][remarks]") {
  const TemporaryFolder folder;
  const run::RunFolder run = make_completed_run(folder.path(), {});
  REQUIRE(run::read_annotations(run).tags.empty());
  edit_annotations(run, [](run::Annotations& remarks) {
    remarks.tags = {"paper", "a", "paper"};
    remarks.note = "said \"so\"";
  });
  const run::Annotations read = run::read_annotations(run);
  REQUIRE(read.tags == Texts{"a", "paper"});
  REQUIRE(read.note == "said \"so\"");
  REQUIRE_FALSE(read.archived);
  // Who shares the run reads them, whatever the umask of who wrote them.
  permissions(run.record_file(), std::filesystem::perms(0664));
  const mode_t umask_before = ::umask(077);
  edit_annotations(run, [](run::Annotations& remarks) { remarks.note += "!"; });
  ::umask(umask_before);
  CHECK(std::filesystem::status(run.annotations_file()).permissions() ==
        std::filesystem::perms(0644));
  edit_annotations(run, [](run::Annotations& remarks) { remarks = {}; });
  REQUIRE_FALSE(fs::exists(run.annotations_file()));
}

TEST_CASE("a run that was removed meanwhile gets no remarks, and that is said",
          "[upkeep][remarks]") {
  const TemporaryFolder folder;
  const run::RunFolder run = make_completed_run(folder.path(), {});
  remove_runs(folder.path(), {run}, "forge runs rm");
  const auto archive = [](run::Annotations& remarks) { remarks.archived = true; };
  REQUIRE(contains(error_of([&] { edit_annotations(run, archive); }), "was removed meanwhile"));
  undo_removal(folder.path(), "");
  edit_annotations(run, archive);
  REQUIRE(run::read_annotations(run).archived);
}

TEST_CASE("what is no tag and remarks that are damaged are refused", "[upkeep][remarks]") {
  for (const std::string& tag : Texts{"", "-x", "a,b", "a b", "é", std::string(65, 'x')})
    REQUIRE(contains(error_of([&] { run::check_tag(tag); }), "is no tag"));
  REQUIRE(error_of([] { run::check_tag("paper/v2:A_b-c.d"); }) == "");
  const TemporaryFolder folder;
  const run::RunFolder run = make_completed_run(folder.path(), {});
  folder.write(run.id() + "/remarks.json", "{");
  REQUIRE(contains(error_of([&] { run::read_annotations(run); }), "it is not JSON"));
  folder.write(run.id() + "/remarks.json", R"({"tags":["a,b"]})");
  REQUIRE(contains(error_of([&] { run::read_annotations(run); }), "is no tag"));
}

TEST_CASE("the store has remarks and leaves archived runs out of lists", "[upkeep][remarks]") {
  const TemporaryFolder folder;
  const run::RunFolder run = make_completed_run(folder.path(), {});
  store::ResultStore store(folder / "store.sqlite");
  store.sync(folder.path());
  REQUIRE(store.runs().size() == 1);
  edit_annotations(run, [](run::Annotations& remarks) {
    remarks.archived = true;
    remarks.note = "old";
    remarks.tags = {"a", "b"};
  });
  REQUIRE(store.sync(folder.path()).updated == 1);
  REQUIRE(store.runs().empty());
  store::RunFilter filter;
  filter.archived = true;
  REQUIRE(store.runs(filter).size() == 1);
  REQUIRE(store.run(run.id())->note == "old");
  REQUIRE(store.run(run.id())->tags == Texts{"a", "b"});
  REQUIRE(store.sync(folder.path()).updated == 0);
  folder.write(run.id() + "/remarks.json", "rubbish");
  REQUIRE(store.sync(folder.path()).warnings.size() == 1);
  REQUIRE(store.runs().size() == 1);  // damaged remarks do not hide a run
}

using namespace tests;

MadeRun named(const std::string& id) {
  MadeRun run;
  run.id = id;
  return run;
}

size_t runs_in(const fs::path& runs_dir) { return run::list_runs(runs_dir).size(); }

TEST_CASE("removed runs are gone and come back as they were", "[upkeep][trash]") {
  const TemporaryFolder folder;
  const run::RunFolder a = make_completed_run(folder.path(), named("a"));
  const run::RunFolder b = make_failed_run(folder.path(), named("b"), 3, "why not");
  const std::string events = read_file(b.events_file());
  const Removal removal = remove_runs(folder.path(), {a, b}, "forge runs rm a b");
  REQUIRE(runs_in(folder.path()) == 0);
  REQUIRE(removal.runs.size() == 2);
  REQUIRE(removal.runs[1].status == "failed");
  REQUIRE(removal.runs[1].bytes > 100);
  const std::vector<Removal> listed = list_removals(folder.path());
  REQUIRE(listed.size() == 1);
  REQUIRE(to_json(listed[0]) == to_json(removal));
  REQUIRE(undo_removal(folder.path(), "").runs.size() == 2);
  REQUIRE(runs_in(folder.path()) == 2);
  REQUIRE(read_file(b.events_file()) == events);
  REQUIRE(list_removals(folder.path()).empty());
  REQUIRE(contains(error_of([&] { undo_removal(folder.path(), ""); }), "no removed run"));
}

TEST_CASE("a run from whose weights an unfinished run starts is not removed unless it is forced",
          "[upkeep][trash]") {
  const TemporaryFolder folder;
  const run::RunFolder a = make_completed_run(folder.path(), named("a"));
  const fs::path weights = save_checkpoint(a.checkpoints(), 1);
  run::RunInputs inputs = small_inputs();
  inputs.initial_weights = {weights, "w1", "", {}};
  const run::RunFolder b = new_run(folder.path(), inputs);
  const std::string error = error_of([&] { remove_runs(folder.path(), {a}, ""); });
  REQUIRE(contains(error, "run '" + b.id() + "' (not started) starts from the weights of run 'a'"));
  REQUIRE(contains(error, "--force"));
  REQUIRE(a.has_record());
  remove_runs(folder.path(), {a}, "", {}, true);
  undo_removal(folder.path(), "");
  remove_runs(folder.path(), {a, b}, "");
  undo_removal(folder.path(), "");
  complete(b);
  remove_runs(folder.path(), {a}, "");
  REQUIRE_FALSE(a.has_record());
}

/// A run in another runs folder that begins from the run "a" of `folder`, and is marked there.
run::RunFolder mark_one_in(const TemporaryFolder& folder,
                           const TemporaryFolder& elsewhere,
                           int seed = 1) {
  run::RunInputs inputs = small_inputs();
  inputs.experiment["seed"] = seed;
  const fs::path weights = save_checkpoint(run::RunFolder(folder / "a").checkpoints(), seed);
  inputs.initial_weights = {weights, "w1", "", {}};
  return new_run(elsewhere.path(), inputs);
}

TEST_CASE("a run of another runs folder that starts from a run keeps that one and its checkpoint",
          "[upkeep][trash]") {
  const TemporaryFolder folder, elsewhere;
  const run::RunFolder a = make_completed_run(folder.path(), named("a"));
  const fs::path weights = save_checkpoint(a.checkpoints(), 1);
  run::RunInputs inputs = small_inputs();
  inputs.initial_weights = {weights, "w1", "", {}};
  const run::RunFolder b = new_run(elsewhere.path(), inputs);
  CHECK(run::is_needed(weights, folder.path()));
  const std::string error = error_of([&] { remove_runs(folder.path(), {a}, ""); });
  REQUIRE(contains(error, "run '" + shown_path(b.path()) + "' (not started) starts from"));
  complete(b);
  CHECK_FALSE(run::is_needed(weights, folder.path()));
  remove_runs(folder.path(), {a}, "");
  REQUIRE_FALSE(a.has_record());
}

TEST_CASE("a run whose runs folder is not mounted keeps the checkpoint that its mark names",
          "[upkeep][trash]") {
  const TemporaryFolder folder, elsewhere;
  const run::RunFolder a = make_completed_run(folder.path(), named("a"));
  const fs::path weights = save_checkpoint(a.checkpoints(), 1);
  const fs::path other = save_checkpoint(a.checkpoints(), 2);
  run::RunInputs inputs = small_inputs();
  inputs.initial_weights = {weights, "w1", "", {}};
  const fs::path mounted = elsewhere / "runs";
  make_directories(mounted);
  new_run(mounted, inputs);
  fs::rename(mounted, elsewhere / "away");
  const std::string there = GENERATE("nothing", "an empty mount point", "another host's runs");
  CAPTURE(there);
  if (there != "nothing") make_directories(mounted);
  if (there == "another host's runs") make_completed_run(mounted, named("theirs"));
  CHECK(run::is_needed(weights, folder.path()));
  CHECK_FALSE(run::is_needed(other, folder.path()));
  const fs::path mark = folder_entries(folder / ".needed").at(0);
  const std::string error = error_of([&] { remove_runs(folder.path(), {a}, ""); });
  CHECK(contains(error, "which cannot be looked at now, may start from the weights of run 'a'"));
  CHECK(contains(error, "hint: '" + shown_path(mark) + "' says so: remove that file"));
  REQUIRE(a.has_record());
  fs::remove(mark);
  remove_runs(folder.path(), {a}, "");
  REQUIRE_FALSE(a.has_record());
}

TEST_CASE("a run that another user may not read keeps the checkpoint that its mark names",
          "[upkeep][trash]") {
  if (::geteuid() != 0) return;  // only root can be two users
  const TemporaryFolder folder;
  const run::RunFolder a = make_completed_run(folder.path(), named("a"));
  run::RunInputs inputs = small_inputs();
  inputs.initial_weights = {save_checkpoint(a.checkpoints(), 1), "w1", "", {}};
  const fs::path weights = inputs.initial_weights.folder;
  fs::permissions(folder.path(), fs::perms::all);
  const auto is_needed = [&] {
    return words_of_other_user(
        [&] { return std::string(run::is_needed(weights, folder.path()) ? "needed" : "free"); });
  };
  const mode_t before = ::umask(077);
  const run::RunFolder b = new_run(folder.path(), inputs);
  ::umask(before);
  CHECK(is_needed() == "needed");
  CHECK(fs::status(folder / ".needed").permissions() == fs::perms::all);
  run::remove_marks(b);
  CHECK(is_needed() == "free");
  remove_tree(b.path());
  new_run(folder.path(), inputs);
  CHECK(folder_entries(folder / ".needed").empty());  // whoever may list it may read it
}

TEST_CASE("a run that names a checkpoint where there is none writes nothing there",
          "[upkeep][trash][hostile]") {
  const TemporaryFolder folder, elsewhere;
  const run::RunFolder a = make_completed_run(folder.path(), named("a"));
  const fs::path weights = save_checkpoint(a.checkpoints(), 1);
  run::RunInputs inputs = small_inputs();
  inputs.initial_weights = {weights, "w1", "", {}};
  const run::RunFolder b = new_run(elsewhere.path(), inputs);
  REQUIRE(fs::exists(folder / ".needed"));
  remove_tree(folder / ".needed");
  remove_tree(a.path());
  run::mark_needed(b);  // as a pack's request may say
  REQUIRE_FALSE(fs::exists(folder / ".needed"));
}

TEST_CASE("marks that came with a runs folder make forge remove no file",
          "[upkeep][trash][hostile]") {
  const TemporaryFolder folder, home, done;
  make_completed_run(folder.path(), named("a"));
  done.write("DONE", "");
  done.write("inner/DONE", "");
  home.write("empty", "");
  home.write("absolute", done.path().string());
  home.write("relative", "inner");
  fs::path marks = folder / ".needed";
  SECTION("a link") {
    fs::create_directory_symlink(home.path(), marks);
    marks = home.path();
  }
  SECTION("a folder with files of others") {
    fs::create_directory(marks);
    for (const char* name : {"empty", "absolute", "relative"})
      fs::rename(home / name, marks / name);
  }
  const fs::path here = fs::current_path();
  fs::current_path(done.path());
  run::needed_checkpoints(folder.path());
  const TemporaryFolder elsewhere;
  mark_one_in(folder, elsewhere);
  fs::current_path(here);
  for (const char* name : {"empty", "absolute", "relative"}) {
    CAPTURE(name);
    CHECK(fs::exists(marks / name));
  }
}

TEST_CASE("the mark of a run that is completed stays until another one is made",
          "[upkeep][trash]") {
  const TemporaryFolder folder, elsewhere;
  make_completed_run(folder.path(), named("a"));
  const auto count = [&] { return folder_entries(folder / ".needed").size(); };
  complete(mark_one_in(folder, elsewhere, 1));
  run::needed_checkpoints(folder.path());  // as 'forge gc' does that only lists
  CHECK(count() == 1);
  mark_one_in(folder, elsewhere, 2);
  CHECK(count() == 1);
}

TEST_CASE("who removes a run that another command has removed meanwhile is told so",
          "[upkeep][trash]") {
  const TemporaryFolder folder;
  const run::RunFolder a = make_completed_run(folder.path(), named("a"));
  const run::RunFolder b = make_completed_run(folder.path(), named("b"));
  remove_runs(folder.path(), {a}, "");
  const std::string error = error_of([&] { remove_runs(folder.path(), {b, a}, ""); });
  REQUIRE(contains(error, "run 'a' is gone: another command removed it meanwhile"));
  REQUIRE(b.has_record());
  REQUIRE(list_removals(folder.path()).size() == 1);
}

TEST_CASE("without a runs folder there is nothing to bring back", "[upkeep][trash]") {
  const TemporaryFolder folder;
  REQUIRE(contains(error_of([&] { undo_removal(folder / "runs", ""); }),
                   "no removed run to bring back: there is no runs folder"));
  REQUIRE_FALSE(fs::exists(folder / "runs"));
}

TEST_CASE("removing runs tells how far it is, and what ends it there moves all back", "[upkeep]") {
  const TemporaryFolder folder;
  const run::RunFolder a = make_completed_run(folder.path(), named("a"));
  const run::RunFolder b = make_completed_run(folder.path(), named("b"));
  Texts told;
  const CountProgress tell = [&](size_t done, size_t all) {
    told.push_back(std::to_string(done) + "/" + std::to_string(all));
  };
  const CountProgress interrupt = [&](size_t done, size_t all) {
    tell(done, all);
    if (told.size() == 4) throw Error("interrupted", ExitCode::failed);
  };
  REQUIRE(contains(error_of([&] {
                     remove_runs(folder.path(), {a, b}, "", interrupt);
                   }),
                   "interrupted"));
  REQUIRE(a.has_record());
  REQUIRE(b.has_record());
  told.clear();
  remove_runs(folder.path(), {a, b}, "", tell);
  REQUIRE(told == Texts{"1/2", "2/2", "0/2", "1/2"});
  told.clear();
  undo_removal(folder.path(), "", tell);
  REQUIRE(told == Texts{"0/2", "1/2"});
}

TEST_CASE("the last removal is undone first and a named one when it is named", "[upkeep][trash]") {
  const TemporaryFolder folder;
  const Removal first =
      remove_runs(folder.path(), {make_completed_run(folder.path(), named("a"))}, "");
  const Removal second =
      remove_runs(folder.path(), {make_completed_run(folder.path(), named("b"))}, "");
  REQUIRE(first.name != second.name);
  REQUIRE(list_removals(folder.path())[0].name == second.name);
  REQUIRE(undo_removal(folder.path(), first.name).runs[0].run == "a");
  REQUIRE(undo_removal(folder.path(), "").runs[0].run == "b");
  REQUIRE(contains(error_of([&] { undo_removal(folder.path(), "../.."); }), "no removed run"));
}

TEST_CASE("the last removal is undone first though the clock was set back", "[upkeep][trash]") {
  const TemporaryFolder folder;
  const auto remove = [&](const std::string& run) {
    return remove_runs(folder.path(), {make_completed_run(folder.path(), named(run))}, "");
  };
  const Removal first = remove("a");
  // As if the clock had been a century ahead then.
  const fs::path record = run::trash_folder(folder.path()) / first.name / "removed.json";
  nlohmann::json json = nlohmann::json::parse(read_file(record));
  json["removed"] = "2126-01-01T00:00:00Z";
  write_file_atomic(record, json.dump());
  const Removal second = remove("b");
  REQUIRE(list_removals(folder.path())[0].name == second.name);
  REQUIRE(undo_removal(folder.path(), "").runs[0].run == "b");
  REQUIRE(undo_removal(folder.path(), "").runs[0].run == "a");
}

/// In a process that cannot write a byte to any file, as on a full disk. Its exit status.
int on_full_disk(const std::function<void()>& action) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit nothing{0, 0};
    ::setrlimit(RLIMIT_FSIZE, &nothing);
    ::_exit(error_of(action).empty() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST_CASE("runs are removed and brought back on a full disk", "[upkeep][trash]") {
  const TemporaryFolder folder;
  const run::RunFolder a = make_completed_run(folder.path(), named("a"));
  const run::RunFolder b = make_completed_run(folder.path(), named("b"));
  const std::string events = read_file(b.events_file());
  remove_runs(folder.path(), {a}, "forge runs rm a");
  REQUIRE(on_full_disk([&] { remove_runs(folder.path(), {b}, "forge runs rm b"); }) == 0);
  REQUIRE(runs_in(folder.path()) == 0);
  const std::vector<Removal> removals = list_removals(folder.path());
  REQUIRE(removals.size() == 2);
  REQUIRE(removals[0].runs.at(0).run == "b");  // the newest, though it has no record
  REQUIRE(removals[0].runs.at(0).status == "completed");
  REQUIRE(removals[0].runs.at(0).bytes > 100);
  REQUIRE(on_full_disk([&] { undo_removal(folder.path(), ""); }) == 0);
  REQUIRE(read_file(b.events_file()) == events);
  REQUIRE(on_full_disk([&] { undo_removal(folder.path(), ""); }) == 0);
  REQUIRE(runs_in(folder.path()) == 2);
  REQUIRE(folder_entries(run::trash_folder(folder.path())).empty());
}

TEST_CASE("nothing is removed where one of the runs runs or waits", "[upkeep][trash]") {
  const TemporaryFolder folder;
  const run::RunFolder a = make_completed_run(folder.path(), named("a"));
  {
    const FileLock lock = make_running_run(folder.path(), named("b"), 1);
    const std::string message = error_of([&] {
      remove_runs(folder.path(), {a, run::RunFolder(folder / "b")}, "");
    });
    REQUIRE(contains(message, "run 'b' is running: nothing was removed"));
  }
  queue::QueueEntry entry;
  entry.run = "a";
  entry.devices = {{"cpu", 1}};
  queue::Queue(folder.path()).put(entry);
  REQUIRE(contains(error_of([&] { remove_runs(folder.path(), {a}, ""); }), "waits in the queue"));
  REQUIRE(runs_in(folder.path()) == 2);
}

TEST_CASE("where one run cannot be moved to the trash none is", "[upkeep][trash]") {
  const TemporaryFolder folder;
  const run::RunFolder a = make_completed_run(folder.path(), named("a"));
  const run::RunFolder b = make_completed_run(folder.path(), named("b"));
  const auto obstruct = [&](size_t, size_t) {
    for (const fs::path& removal : folder_entries(run::trash_folder(folder.path())))
      if (fs::exists(removal / "a")) make_directories(removal / "b/in the way");
  };
  const std::string message = error_of([&] { remove_runs(folder.path(), {a, b}, "", obstruct); });
  REQUIRE(contains(message, ".trash/"));  // what it is called, and no way through a descriptor
  REQUIRE(contains(message, "Directory not empty"));
  REQUIRE(contains(message, "nothing was moved"));
  REQUIRE(fs::exists(a.record_file()));
  REQUIRE(fs::exists(b.record_file()));
  REQUIRE(list_removals(folder.path()).empty());
}

TEST_CASE("where one run cannot be brought back none is", "[upkeep][trash]") {
  const TemporaryFolder folder;
  const std::vector<run::RunFolder> runs = {make_completed_run(folder.path(), named("a")),
                                            make_completed_run(folder.path(), named("b"))};
  remove_runs(folder.path(), runs, "");
  fs::create_symlink("nowhere", runs[1].path());  // a folder does not take the place of a link
  REQUIRE(contains(error_of([&] { undo_removal(folder.path(), ""); }), "nothing was moved"));
  REQUIRE_FALSE(fs::exists(runs[0].path()));
  REQUIRE(list_removals(folder.path())[0].runs.size() == 2);
}

TEST_CASE("a run is not brought back over another of its name", "[upkeep][trash]") {
  const TemporaryFolder folder;
  remove_runs(folder.path(),
              {make_completed_run(folder.path(), named("a")),
               make_completed_run(folder.path(), named("b"))},
              "");
  make_queued_run(folder.path(), named("b"));
  REQUIRE(contains(error_of([&] { undo_removal(folder.path(), ""); }), "a run 'b' again"));
  REQUIRE(runs_in(folder.path()) == 1);
}

TEST_CASE("only runs of the folder itself are removed", "[upkeep][trash]") {
  const TemporaryFolder folder, other;
  const run::RunFolder run = make_completed_run(other.path(), named("a"));
  REQUIRE(contains(error_of([&] { remove_runs(folder.path(), {run}, ""); }), "is no run of"));
  fs::create_directory_symlink(run.path(), folder / "a");
  REQUIRE(
      contains(error_of([&] { remove_runs(folder.path(), {run::RunFolder(folder / "a")}, ""); }),
               "is no run of"));
}

}  // namespace
}  // namespace forge::manage

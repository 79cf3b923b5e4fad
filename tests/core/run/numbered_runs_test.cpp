#include "core/run/numbered_runs.h"

#include <sys/stat.h>
#include <unistd.h>

#include "core/base/files.h"
#include "core/project/workspace_id.h"
#include "core/run/plan.h"
#include "core/run/runs_dir.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/fake_runs.h"
#include "tests/support/other_user.h"

namespace forge::run {
namespace {

using tests::contains;
using tests::new_run;
using tests::small_inputs;
using tests::TemporaryFolder;
using tests::words_of_other_user;

TEST_CASE("force plans a run of its own, which then counts", "[run][plan]") {
  const TemporaryFolder runs;
  const RunInputs inputs = small_inputs();
  const PlannedRun first = plan_run(inputs, runs.path(), true);
  REQUIRE(first.record.id == "train_x-" + first.record.key);  // nothing to force
  write_run_folder(first, inputs);
  tests::complete(first.folder);
  for (const char* suffix : {"-2", "-3"}) {
    const PlannedRun forced = plan_run(inputs, runs.path(), true);
    REQUIRE(forced.record.id == first.record.id + suffix);
    REQUIRE(forced.record.key == first.record.key);
    REQUIRE(forced.action == Action::start);
    write_run_folder(forced, inputs);
  }
  REQUIRE(plan_run(inputs, runs.path(), false).record.id == first.record.id + "-3");
}

TEST_CASE("a copy that lies beside its run is not taken for it", "[run][plan][hostile]") {
  const TemporaryFolder runs;
  const RunInputs inputs = small_inputs();
  const PlannedRun first = plan_run(inputs, runs.path(), false);
  write_run_folder(first, inputs);
  const std::string id = first.record.id;
  fs::copy(first.folder.path(), runs / (id + "-20261127"), fs::copy_options::recursive);
  fs::copy(first.folder.path(), runs / (id + "-2147483647"), fs::copy_options::recursive);
  tests::complete(first.folder);
  CHECK(plan_run(inputs, runs.path(), false).record.id == id);
  CHECK(plan_run(inputs, runs.path(), false).action == Action::cached);
  CHECK(plan_run(inputs, runs.path(), true).record.id == id + "-20261128");
  // Without the run it is one that somebody renamed.
  remove_tree(first.folder.path());
  CHECK(plan_run(inputs, runs.path(), false).record.id == id + "-20261127");
}

TEST_CASE("a run that is only linked here is not taken for one's own", "[run][plan][hostile]") {
  const TemporaryFolder runs, others;
  const RunInputs inputs = small_inputs();
  const RunFolder elsewhere = tests::new_run(others.path());
  tests::complete(elsewhere);
  fs::create_directory_symlink(elsewhere.path(), runs / elsewhere.id());
  const PlannedRun planned = plan_run(inputs, runs.path(), false);
  CHECK(planned.action == Action::start);
  CHECK(planned.record.id == elsewhere.id() + "-2");
  fs::remove(runs / elsewhere.id());
  fs::create_directory_symlink(others / "none", runs / elsewhere.id());
  write_run_folder(plan_run(inputs, runs.path(), false), inputs);
  CHECK(list_runs(runs.path()).size() == 1);
}

TEST_CASE("a project has runs of its own, which its tables show", "[run][plan]") {
  const TemporaryFolder runs;
  const RunInputs ours = small_inputs();
  tests::complete(tests::new_run(runs.path()));
  RunInputs theirs = ours;
  theirs.project = "projects/two";
  const PlannedRun planned = plan_run(theirs, runs.path(), false);
  REQUIRE(planned.action == Action::start);
  REQUIRE(planned.record.id == "train_x-" + planned.record.key + "-2");
  write_run_folder(planned, theirs);
  tests::complete(planned.folder);
  REQUIRE(plan_run(theirs, runs.path(), false).action == Action::cached);
  REQUIRE(plan_run(theirs, runs.path(), false).record.id == planned.record.id);
  const PlannedRun own = plan_run(ours, runs.path(), false);
  REQUIRE(own.action == Action::cached);
  REQUIRE(own.record.id == "train_x-" + own.record.key);
  // A removed run of the one takes nothing from the other, and may come back.
  remove_tree(own.folder.path());
  REQUIRE(plan_run(theirs, runs.path(), false).action == Action::cached);
  REQUIRE(plan_run(ours, runs.path(), false).record.id == own.record.id + "-3");
}

TEST_CASE("configs of one run name have runs of their own", "[run][plan]") {
  const TemporaryFolder runs;
  RunInputs ours = small_inputs(), theirs = small_inputs();
  ours.config = "a/x";
  theirs.config = "a_x";
  const PlannedRun own = plan_run(ours, runs.path(), false);
  write_run_folder(own, ours);
  tests::complete(own.folder);
  REQUIRE(plan_run(ours, runs.path(), false).action == Action::cached);
  const PlannedRun other = plan_run(theirs, runs.path(), false);
  REQUIRE(other.record.id == own.record.id + "-2");
  // In one plan, of which no run is there yet.
  const std::vector<std::string> taken = {own.record.id + "-2", own.record.id + "-3", "train_y-1"};
  for (const bool force : {false, true})
    REQUIRE(plan_run(theirs, runs.path(), force, taken).record.id == own.record.id + "-4");
  REQUIRE(plan_run(ours, runs.path(), false, taken).action == Action::cached);
}

TEST_CASE("a new run knows the same run of a project that is gone", "[run][plan]") {
  const TemporaryFolder runs, workspace;
  workspace.write("old/meta.yaml", "name: one\n");
  RunInputs before = small_inputs();
  before.workspace = workspace.path().string();
  before.project = "old";
  const PlannedRun old = plan_run(before, runs.path(), false);
  write_run_folder(old, before);
  tests::complete(old.folder);
  RunInputs after = before;
  after.project = "new";
  REQUIRE(plan_run(after, runs.path(), false).orphan == "");
  std::filesystem::rename(workspace / "old", workspace / "new");
  REQUIRE(plan_run(after, runs.path(), false).orphan == old.record.id);
}

TEST_CASE("projects of one path in two workspaces have runs of their own", "[run][plan]") {
  const TemporaryFolder runs, first, second;
  for (const TemporaryFolder* workspace : {&first, &second})
    workspace->write("projects/one/meta.yaml", "name: one\n");
  RunInputs ours = small_inputs(), theirs = small_inputs();
  ours.project = theirs.project = "projects/one";
  ours.workspace = first.path().string();
  theirs.workspace = second.path().string();
  const PlannedRun own = plan_run(ours, runs.path(), false);
  write_run_folder(own, ours);
  tests::complete(own.folder);
  REQUIRE(own.folder.record().workspace == ours.workspace);
  REQUIRE(plan_run(ours, runs.path(), false).action == Action::cached);
  const PlannedRun other = plan_run(theirs, runs.path(), false);
  REQUIRE(other.action == Action::start);
  REQUIRE(other.record.id == own.record.id + "-2");
  // A workspace that was moved keeps its runs.
  std::filesystem::remove_all(first / "projects");
  REQUIRE(plan_run(theirs, runs.path(), false).action == Action::cached);
}

TEST_CASE("another user's workspace that is away keeps its runs", "[run][plan]") {
  const TemporaryFolder runs, folder;
  for (const char* name : {"first", "second"}) {
    folder.write(std::string(name) + "/forge_workspace/workspace.yaml", "");
    folder.write(std::string(name) + "/projects/one/meta.yaml", "name: one\n");
  }
  RunInputs ours = small_inputs(), theirs = small_inputs();
  ours.project = theirs.project = "projects/one";
  ours.workspace = (folder / "first").string();
  theirs.workspace = (folder / "second").string();
  PlannedRun own = plan_run(ours, runs.path(), false);
  own.record.workspace_id = project::made_workspace_id(ours.workspace);
  write_run_folder(own, ours);
  tests::complete(own.folder);
  std::filesystem::rename(folder / "first", folder / "away");
  CHECK(plan_run(theirs, runs.path(), false).action == Action::cached);  // this user's own
  if (::geteuid() != 0) return;  // only root can be two users
  REQUIRE(::chown(own.folder.path().c_str(), 12345, 12345) == 0);
  const PlannedRun other = plan_run(theirs, runs.path(), false);
  CHECK(other.action == Action::start);
  CHECK(other.record.id == own.record.id + "-2");
  ours.workspace = (folder / "away").string();
  CHECK(plan_run(ours, runs.path(), false).action == Action::cached);
}

TEST_CASE("a run folder of another user that may not be read is not the planned run",
          "[run][plan][closed]") {
  const TemporaryFolder runs;
  const RunFolder run = tests::new_run(runs.path());
  fs::permissions(runs.path(), fs::perms::all);
  fs::permissions(run.path(), fs::perms::none);
  const std::string said = words_of_other_user([&] {
    const PlannedRun planned = plan_run(small_inputs(), runs.path(), false);
    return name_of(planned.action) + " " + planned.record.id + " beside " + planned.closed + ": " +
           (planned.problem ? describe(*planned.problem) : "");
  });
  fs::permissions(run.path(), fs::perms::owner_all);
  INFO(said);
  if (::geteuid() == 0) {
    CHECK(said == "new " + run.id() + "-2 beside " + run.id() + ": ");
  } else {  // there is no other user, and it is this one's own
    CHECK(contains(said, "damaged"));
    CHECK(contains(said, "cannot read the run folder '"));
  }
}

}  // namespace
}  // namespace forge::run

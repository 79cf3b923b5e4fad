#include "core/run/moved_files.h"
#include "core/base/files.h"
#include "core/project/workspace_id.h"
#include "core/run/request.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::run {
namespace {

using nlohmann::json;

TEST_CASE("a file that was moved with its folder is found", "[run][moved]") {
  const tests::TemporaryFolder folder;
  const fs::path here = folder.write("now/canon/text.txt", "text"), was = folder / "before";
  const std::vector<MovedFolder> moved = {{was / "x", folder / "now"}, {was, folder / "now"}};
  CHECK(find_moved(was / "canon/text.txt", moved) == here);
  CHECK(find_moved(was / "canon/other.txt", moved) == was / "canon/other.txt");
  CHECK(find_moved(here, {{folder / "now", was}}) == here);
  CHECK(find_moved("canon/text.txt", moved) == "canon/text.txt");
  CHECK(find_moved(was / "canon/text.txt", {{was, ""}, {"", folder / "now"}}) ==
        was / "canon/text.txt");
}

TEST_CASE("a run remembers where its files were moved, and of others nothing", "[run][moved]") {
  const tests::TemporaryFolder folder, runs;
  const fs::path before = folder / "before", now = folder / "now";
  for (const std::string name : {"projects/canon/meta.yaml", "a.txt", "b.txt", "tokenizer.json"})
    folder.write("before/" + name, name);
  RunInputs inputs = tests::small_inputs();
  inputs.workspace = before.string();
  inputs.experiment["data"] = {
      {"path", (before / "a.txt").string()},
      {"sources", {{"s", {{"weight", 1}, {"path", (before / "b.txt").string()}}}}}};
  inputs.experiment["tokenizer"] = {{"path", (before / "tokenizer.json").string()}};
  const RunFolder run = tests::new_run(runs.path(), inputs);
  fs::rename(before, now);
  fs::remove(now / "tokenizer.json");
  const json found = find_moved_files(run.config(), {{before, now}});
  CHECK(found["data"]["path"] == (now / "a.txt").string());
  CHECK(found["data"]["sources"]["s"]["path"] == (now / "b.txt").string());
  CHECK(found["tokenizer"]["path"] == (before / "tokenizer.json").string());

  json changed = found;
  changed["train"]["log_every"] = 7;
  remember_places(run, changed, now.string());
  CHECK(run.config() == found);
  CHECK(run.record().workspace == now.string());
  // What is there stays, whatever somebody else has of it.
  changed["data"]["path"] = folder.write("copy.txt", "a.txt").string();
  remember_places(run, changed, before.string());
  CHECK(run.config() == found);
  CHECK(run.record().workspace == now.string());
}

TEST_CASE("what a run says of its workspace stays where that is another's", "[run][moved]") {
  const tests::TemporaryFolder folder, runs;
  const fs::path before = folder / "before", other = folder / "other";
  for (const fs::path& root : {before, other})
    for (const char* name : {"forge_workspace/workspace.yaml", "projects/canon/meta.yaml", "a.txt"})
      folder.write((root.filename() / name).string(), "");
  RunInputs inputs = tests::small_inputs();
  inputs.workspace = before.string();
  inputs.experiment["data"] = {{"path", (before / "a.txt").string()}};
  PlannedRun planned = plan_run(inputs, runs.path(), false);
  planned.record.workspace_id = project::made_workspace_id(before);
  write_run_folder(planned, inputs);
  fs::rename(before, folder / "away");
  const json recorded = planned.folder.config();
  const json found = find_moved_files(recorded, {{before, other}});
  REQUIRE(found["data"]["path"] == (other / "a.txt").string());
  remember_places(planned.folder, found, other.string());
  CHECK(planned.folder.config() == recorded);
  CHECK(planned.folder.record().workspace == before.string());
  const fs::path away = folder / "away";
  remember_places(planned.folder, find_moved_files(recorded, {{before, away}}), away.string());
  CHECK(planned.folder.config()["data"]["path"] == (away / "a.txt").string());
  CHECK(planned.folder.record().workspace == away.string());
  // One that was moved takes its runs back from a new one at its old path.
  fs::rename(away, folder / "moved");
  for (const char* name : {"forge_workspace/workspace.yaml", "projects/canon/meta.yaml"})
    folder.write((fs::path("away") / name).string(), "");
  const RunFolder& run = planned.folder;
  const auto is_of = [&](const fs::path& root) {
    return is_of_project(run, run.record(), root.string(), run.record().project);
  };
  CHECK(is_of(folder / "moved"));
  CHECK(is_of(away));  // as of a fresh clone
  remember_places(run, run.config(), (folder / "moved").string());
  CHECK(run.record().workspace == (folder / "moved").string());
  CHECK(is_of(folder / "moved"));
  CHECK_FALSE(is_of(away));
}

TEST_CASE("a workspace without an id and its copy both have the runs", "[run][moved]") {
  const tests::TemporaryFolder folder, runs;
  const fs::path first = folder / "first", copy = folder / "copy";
  for (const char* name : {"forge_workspace/workspace.yaml", "projects/canon/meta.yaml"})
    folder.write((fs::path("first") / name).string(), "");
  RunInputs inputs = tests::small_inputs();
  inputs.workspace = first.string();
  PlannedRun planned = plan_run(inputs, runs.path(), false);
  planned.record.workspace_id = project::made_workspace_id(first);
  write_run_folder(planned, inputs);
  const RunFolder& run = planned.folder;
  const auto is_of = [&](const fs::path& root) {
    return is_of_project(run, run.record(), root.string(), run.record().project);
  };
  fs::copy(first, copy, fs::copy_options::recursive);
  CHECK_FALSE(is_of(copy));
  fs::remove_all(project::workspace_id_file(first).parent_path());  // as by 'git clean -fdx'
  for (const fs::path& root : {copy, first}) {
    REQUIRE_FALSE(project::made_workspace_id(root).empty());
    remember_places(run, run.config(), root.string());
    CHECK(is_of(first));
    CHECK(is_of(copy));
  }
}

TEST_CASE("runs in a workspace that was renamed are also those of its copies", "[run][moved]") {
  const tests::TemporaryFolder folder;
  folder.write("first/forge_workspace/workspace.yaml", "");
  folder.write("first/projects/canon/meta.yaml", "");
  make_directories(folder / "first/runs");
  RunInputs inputs = tests::small_inputs();
  inputs.workspace = (folder / "first").string();
  const fs::path name = tests::new_run(folder / "first/runs", inputs).path().filename();
  const auto run_in = [&](const char* workspace) {
    return RunFolder(folder / workspace / "runs" / name);
  };
  fs::rename(folder / "first", folder / "second");
  const RunFolder moved = run_in("second");
  remember_places(moved, moved.config(), (folder / "second").string(), true);
  CHECK(moved.record().workspace == (folder / "second").string());
  fs::copy(folder / "second", folder / "third", fs::copy_options::recursive);
  const RunFolder copied = run_in("third");
  const std::string project = copied.record().project;
  CHECK(is_of_project(copied, copied.record(), folder / "third", project));
  CHECK_FALSE(is_of_project(moved, moved.record(), folder / "third", project));
}

TEST_CASE("a run does not begin in the workspace that is at its own one's old place",
          "[run][moved]") {
  const tests::TemporaryFolder folder;
  const fs::path before = folder / "before", now = folder / "now";
  folder.write("before/projects/canon/meta.yaml", "");
  folder.write("before/text.txt", "ours");
  make_directories(before / "runs");
  RunInputs inputs = tests::small_inputs();
  inputs.workspace = before.string();
  inputs.experiment["data"] = {{"path", (before / "text.txt").string()}};
  const RunFolder made = tests::new_run(before / "runs", inputs);
  const RunRecord record = made.record();
  const std::string run_dir = made.path().string();
  config::ExternalConfig external;
  external.command = {"python", "train.py"};
  external.working_directory = (before / "projects/canon").string();
  CHECK(moved_workspace(made, record, run_dir).empty());
  require_own_workspace(made, record, run_dir, external);

  fs::rename(before, now);
  const RunFolder run(now / "runs" / made.id());
  CHECK(moved_workspace(run, record, run_dir) == now.string());
  require_own_workspace(run, record, run_dir, external);  // that its folder is gone is told later
  fs::create_directory_symlink(now, before);
  CHECK(moved_workspace(run, record, run_dir).empty());
  fs::remove(before);

  folder.write("before/projects/canon/meta.yaml", "");
  const fs::path theirs = folder.write("before/text.txt", "theirs");
  const std::string said =
      tests::error_of([&] { require_own_workspace(run, record, run_dir, external); });
  CHECK(tests::contains(said, "its workspace was moved to '" + now.string() + "'"));
  CHECK(tests::contains(said, "is another workspace's now"));
  CHECK(tests::contains(said, "forge runs resume " + run.id()));
  external.working_directory = (folder / "elsewhere").string();
  require_own_workspace(run, record, run_dir, external);

  const json found = find_moved_files(run.config(), {{before, now, true}});
  CHECK(found["data"]["path"] == (now / "text.txt").string());
  remember_places(run, found, now.string());
  CHECK(run.record().workspace == before.string());
  remember_places(run, found, now.string(), true);
  CHECK(run.record().workspace == now.string());
  CHECK(run.config() == found);
}

TEST_CASE("runs behind a link are not moved into a copy of its workspace", "[run][moved]") {
  const tests::TemporaryFolder folder;
  make_directories(folder / "scratch");
  for (const std::string name : {"first", "second"}) {
    folder.write(name + "/forge_workspace/workspace.yaml", "");
    folder.write(name + "/projects/canon/meta.yaml", "");
    fs::create_directory_symlink(folder / "scratch", folder / name / "runs");
  }
  RunInputs inputs = tests::small_inputs();
  inputs.workspace = (folder / "first").string();
  const RunFolder run = tests::new_run(folder / "first/runs", inputs);
  const RunFolder seen(folder / "second/runs" / run.id());
  CHECK(moved_workspace(seen, seen.record(), read_request(seen).run_dir).empty());
  CHECK(workspace_of(seen, seen.record()).root == inputs.workspace);
}

}  // namespace
}  // namespace forge::run

// Runs of several workspaces in one runs folder.

#include "core/project/workspace_id.h"
#include "core/results/store/result_store.h"
#include "core/results/tables/ablation.h"
#include "tests/support/catch.h"
#include "tests/support/fake_runs.h"
#include "tests/support/other_user.h"
#include "tests/support/support.h"

namespace forge::store {
namespace {

TEST_CASE("a project has no runs of the project of its path in another workspace", "[store]") {
  const tests::TemporaryFolder runs, here, there;
  for (const tests::TemporaryFolder* workspace : {&here, &there})
    workspace->write("projects/canon/meta.yaml", "name: canon\n");
  const auto make = [&](const std::string& id, const std::string& workspace) {
    tests::MadeRun run;
    run.id = id;
    run.workspace = workspace;
    make_completed_run(runs.path(), run);
  };
  make("ours", here.path().string());
  make("theirs", there.path().string());
  make("moved", (here / "was/somewhere/else").string());
  make("older", "");
  ResultStore store(store_path(runs.path()));
  store.sync(runs.path());
  const auto ids_of = [&](const std::string& workspace) {
    RunFilter filter;
    filter.project = "projects/canon";
    filter.workspace = workspace;
    std::set<std::string> ids;
    for (const RunSummary& run : store.runs(filter)) ids.insert(run.id);
    return ids;
  };
  using Ids = std::set<std::string>;
  CHECK(ids_of("") == Ids{"ours", "theirs", "moved", "older"});
  CHECK(ids_of(here.path().string()) == Ids{"ours", "moved", "older"});
  CHECK(ids_of(there.path().string()) == Ids{"theirs", "moved", "older"});
  // A link to the workspace is the workspace.
  const std::filesystem::path link = runs / "link";
  std::filesystem::create_directory_symlink(here.path(), link);
  CHECK(ids_of(link.string()) == Ids{"ours", "moved", "older"});
}

TEST_CASE("of a workspace that is not to be seen its id tells whose runs are whose", "[store]") {
  const tests::TemporaryFolder folder;
  for (const char* name : {"first", "second", "closed"}) {
    folder.write(std::string(name) + "/forge_workspace/workspace.yaml", "");
    folder.write(std::string(name) + "/projects/canon/meta.yaml", "name: canon\n");
  }
  const auto make = [&](const std::string& id, const std::string& name, bool has_id) {
    tests::MadeRun run;
    run.id = id;
    run.workspace = (folder / name).string();
    if (has_id) run.workspace_id = project::made_workspace_id(folder / name);
    make_completed_run(folder / "runs", run);
  };
  make("of_first", "first", true);
  make("of_closed", "closed", true);
  make("of_closed_without", "closed", false);
  const auto ids_of = [&](const std::string& name) {
    RunFilter filter;
    filter.project = "projects/canon";
    filter.workspace = (folder / name).string();
    filter.runs_dir = folder / "runs";
    ResultStore store(store_path(folder / "runs"));
    store.sync(folder / "runs");
    std::string ids;
    for (const RunSummary& run : store.runs(filter)) ids += run.id + " ";
    return ids;
  };
  CHECK(ids_of("first") == "of_first ");
  CHECK(ids_of("second").empty());
  std::filesystem::rename(folder / "first", folder / "moved");
  CHECK(ids_of("moved") == "of_first ");
  CHECK(ids_of("second") == "of_first ");  // this user's own, which may have been made anew
  if (::geteuid() != 0) return;            // only root can be two users
  REQUIRE(::chown((folder / "runs/of_first").c_str(), 12345, 12345) == 0);
  CHECK(ids_of("moved") == "of_first ");
  CHECK(ids_of("second").empty());
  // One's home that another may not look into.
  using std::filesystem::perms;
  permissions(folder.path(), perms::all);
  permissions(folder / "closed", perms::owner_all);
  const std::string said = tests::words_of_other_user([&] {
    const auto relation = [&](const char* name) {
      return project::relation_of(
          {(folder / name).string(), ""}, folder / "second", "projects/canon");
    };
    const bool is_closed_another = relation("closed") == project::WorkspaceRelation::another;
    const bool is_first_away = relation("first") == project::WorkspaceRelation::away;
    return std::string(is_closed_another && is_first_away ? "as it should be" : "otherwise");
  });
  CHECK(said == "as it should be");
}

}  // namespace
}  // namespace forge::store

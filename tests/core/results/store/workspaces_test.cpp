// Runs of several workspaces in one runs folder.

#include "core/results/store/result_store.h"
#include "core/results/tables/ablation.h"
#include "tests/support/catch.h"
#include "tests/support/fake_runs.h"
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

}  // namespace
}  // namespace forge::store

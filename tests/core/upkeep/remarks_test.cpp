#include "core/run/remarks.h"

#include "core/base/fs.h"
#include "core/store/result_store.h"
#include "core/upkeep/change_remarks.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/run_folder_maker.h"
#include "tests/support/support.h"

namespace forge::upkeep {
namespace {

using namespace tests;
using Texts = std::vector<std::string>;

TEST_CASE("remarks are kept in the run folder and without any there is no file",
          "[upkeep][remarks]") {
  const TemporaryFolder folder;
  const run::RunFolder run = make_completed_run(folder.path(), {});
  REQUIRE(run::read_remarks(run).tags.empty());
  change_remarks(run, [](run::Remarks& remarks) {
    remarks.tags = {"paper", "a", "paper"};
    remarks.note = "said \"so\"";
  });
  const run::Remarks read = run::read_remarks(run);
  REQUIRE(read.tags == Texts{"a", "paper"});
  REQUIRE(read.note == "said \"so\"");
  REQUIRE_FALSE(read.archived);
  change_remarks(run, [](run::Remarks& remarks) { remarks = {}; });
  REQUIRE_FALSE(fs::exists(run.remarks_file()));
}

TEST_CASE("what is no tag and remarks that are damaged are refused", "[upkeep][remarks]") {
  for (const std::string& tag : Texts{"", "-x", "a,b", "a b", "é", std::string(65, 'x')})
    REQUIRE(contains(error_of([&] { run::require_tag(tag); }), "is no tag"));
  REQUIRE(error_of([] { run::require_tag("paper/v2:A_b-c.d"); }) == "");
  const TemporaryFolder folder;
  const run::RunFolder run = make_completed_run(folder.path(), {});
  folder.write(run.id() + "/remarks.json", "{");
  REQUIRE(contains(error_of([&] { run::read_remarks(run); }), "is no JSON"));
  folder.write(run.id() + "/remarks.json", R"({"tags":["a,b"]})");
  REQUIRE(contains(error_of([&] { run::read_remarks(run); }), "is no tag"));
}

TEST_CASE("the store has remarks and leaves archived runs out of lists", "[upkeep][remarks]") {
  const TemporaryFolder folder;
  const run::RunFolder run = make_completed_run(folder.path(), {});
  store::ResultStore store(folder / "store.sqlite");
  store.sync(folder.path());
  REQUIRE(store.runs().size() == 1);
  change_remarks(run, [](run::Remarks& remarks) {
    remarks.archived = true;
    remarks.note = "old";
    remarks.tags = {"a", "b"};
  });
  REQUIRE(store.sync(folder.path()).updated == 1);
  REQUIRE(store.runs().empty());
  REQUIRE(store.newest_completed().empty());
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

}  // namespace
}  // namespace forge::upkeep

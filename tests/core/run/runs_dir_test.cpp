#include "core/run/runs_dir.h"

#include "core/base/files.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/fake_runs.h"
#include "tests/support/other_user.h"

namespace forge::run {
namespace {

using tests::contains;
using tests::error_of;
using tests::new_run;
using tests::TemporaryFolder;

TEST_CASE("a runs folder that may not be listed is not an empty one", "[run][runs_dir][hostile]") {
  const TemporaryFolder runs;
  new_run(runs.path());
  fs::permissions(runs.path(),
                  fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec);
  const std::string said = tests::words_of_other_user(
      [&] { return std::to_string(list_runs(runs.path()).size()) + " runs"; });
  fs::permissions(runs.path(), fs::perms::all);
  CHECK(contains(said, "cannot list the runs folder"));
  CHECK(list_runs(runs / "none").empty());
}

TEST_CASE("runs are not written where requests cannot name them", "[run][runs_dir]") {
  const TemporaryFolder folder;
  const fs::path runs = folder / "bad\xff";
  REQUIRE(contains(tests::error_of([&] { make_runs_dir(runs); }), "is not UTF-8"));
  REQUIRE_FALSE(fs::exists(runs));
}

TEST_CASE("a runs folder whose path would break lines and commands is refused",
          "[run][runs_dir][hostile]") {
  const TemporaryFolder folder;
  for (const char* name : {"a\nb",
                           "a\rb",
                           "a\x1b[31mb",
                           "a\tb",
                           "a\x7f",
                           "a\xc2\x9b"
                           "b"}) {
    const std::string said = tests::error_of([&] { runs_dir(folder / name); });
    CHECK(contains(said, "has a line break or another control character"));
    CHECK(contains(said, "FORGE_RUNS_DIR"));
    CHECK(said.find_first_of("\r\t\x1b\x7f") == std::string::npos);
  }
  for (const char* name : {"plain", "with space", "sch\xc3\xb6n", "it's", "\xf0\x9f\x98\x80"})
    CHECK(runs_dir(folder / name) == folder / name / "runs");
}

TEST_CASE("runs are listed by name and half-written ones are not", "[run][runs_dir]") {
  const TemporaryFolder runs;
  REQUIRE(list_runs(runs / "missing").empty());
  runs.write("b-1/run.json", "{}");
  runs.write("a-1/run.json", "{}");
  runs.write(".c-1.tmp-7/run.json", "{}");
  runs.write("no-run/config.json", "{}");
  runs.write("file", "");
  std::vector<std::string> names;
  for (const RunFolder& run : list_runs(runs.path())) names.push_back(run.id());
  REQUIRE(names == std::vector<std::string>{"a-1", "b-1"});
}

TEST_CASE("a link in the place of a run folder is no run", "[run][runs_dir][hostile]") {
  const TemporaryFolder folder;
  const fs::path runs = folder / "runs";
  tests::MadeRun made;
  made.id = "train_a-1";
  tests::make_completed_run(runs, made);
  const RunFolder elsewhere = tests::make_completed_run(folder / "others", made);
  fs::create_directory_symlink(elsewhere.path(), runs / "train_a-2");
  REQUIRE(list_runs(runs).size() == 1);
  CHECK(find_run(runs, "train_a")->id() == "train_a-1");
  const std::string said = error_of([&] { find_run(runs, "train_a-2"); });
  CHECK(contains(said, "a symbolic link stands in the place of its folder"));
  // The runs folder itself may be one.
  fs::create_directory_symlink(runs, folder / "link");
  CHECK(find_run(folder / "link", "train_a-1").has_value());
}

TEST_CASE("a run is found by its id or a beginning that no other has", "[run][runs_dir]") {
  const TemporaryFolder runs;
  for (const char* name : {"nope-1a", "nope-1a-2", "canon-3f"}) {
    runs.write(std::string(name) + "/run.json", "{}");
  }
  REQUIRE(find_run(runs.path(), "nope-1a")->id() == "nope-1a");
  REQUIRE(find_run(runs.path(), "can")->id() == "canon-3f");
  REQUIRE_FALSE(find_run(runs.path(), "other"));
  REQUIRE_FALSE(find_run(runs.path(), ""));
  REQUIRE_FALSE(find_run(runs / "missing", "nope"));
  REQUIRE(contains(error_of([&] { find_run(runs.path(), "nope"); }), "nope-1a, nope-1a-2"));
}

TEST_CASE("a whole id is no beginning of that of a repetition", "[run][runs_dir]") {
  const TemporaryFolder runs;
  const std::string id = "train-0123456789ab";
  for (const char* end : {"-2", "-20", "-copy"}) runs.write(id + end + "/run.json", "{}");
  CHECK_FALSE(find_run(runs.path(), id));
  CHECK(find_run(runs.path(), id + "-2")->id() == id + "-2");
  fs::remove_all(runs / (id + "-2"));
  CHECK_FALSE(find_run(runs.path(), id + "-2"));
  CHECK(find_run(runs.path(), id + "-c")->id() == id + "-copy");
  fs::remove_all(runs / (id + "-copy"));
  CHECK(find_run(runs.path(), "train-0123456789a")->id() == id + "-20");
}

}  // namespace
}  // namespace forge::run

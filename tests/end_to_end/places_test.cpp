// What forge finds of its surroundings: folders of other users, closed streams.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "core/base/files.h"
#include "tests/end_to_end/program.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

TEST_CASE("runs in a folder that cannot be written are listed and compared and planned and shown") {
  Program forge;
  REQUIRE(forge.call(tiny({"run", "train_canon_a"}, 4)).exit_code == 0);
  using std::filesystem::perms;
  forge.folder().write("cache/file", "");
  for (const char* name : {"", "cache"}) permissions(forge.folder() / name, perms::all);
  permissions(forge.runs_dir(), perms(0555));
  forge.as_nobody = true;
  forge.environment["FORGE_CACHE_DIR"] = (forge.folder() / "cache").string();
  for (const std::vector<std::string>& command : {std::vector<std::string>{"runs"},
                                                  {"status"},
                                                  {"compare", "-p", "canon"},
                                                  tiny({"run", "train_canon_a", "--dry-run"}, 4),
                                                  tiny({"run", "train_canon_a"}, 4)}) {
    const Outcome outcome = forge.call(command);
    if (outcome.exit_code == 127) break;  // another user cannot reach the build folder
    INFO(command[0] << ": " << outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.err.find("runs' cannot be written") != std::string::npos);
    CHECK(outcome.out.find("anon") != std::string::npos);
  }
  const Outcome other = forge.call(tiny({"run", "train_canon_a"}, 5));
  if (other.exit_code != 127) {
    INFO(other.err);
    CHECK(other.exit_code == 1);
    CHECK(contains(other.err, "cannot write to the runs folder"));
  }
  // A folder that several users share, with the index of the first of them.
  permissions(forge.runs_dir(), perms::all);
  const Outcome shared = forge.call({"runs"});
  if (shared.exit_code != 127) {
    INFO(shared.err);
    CHECK(shared.exit_code == 0);
    CHECK(contains(shared.err, "the index of the runs folder"));
    CHECK(contains(shared.out, "anon"));
  }
  permissions(forge.runs_dir(), perms::owner_all);
}

TEST_CASE("a place that this user may not look at is said to be one") {
  Program forge;
  forge.folder().write("closed/file", "");
  forge.folder().write("cache/file", "");
  using std::filesystem::perms;
  for (const char* name : {"", "cache"}) permissions(forge.folder() / name, perms::all);
  permissions(forge.folder() / "closed", perms::owner_all);
  forge.as_nobody = ::geteuid() == 0;
  if (!forge.as_nobody) permissions(forge.folder() / "closed", perms::none);
  forge.environment["FORGE_CACHE_DIR"] = (forge.folder() / "cache").string();
  const Outcome made = forge.call({"init", (forge.folder() / "closed/x").string()});
  if (made.exit_code != 127) {  // 127: another user cannot reach the build folder
    CHECK(made.exit_code == 1);
    CHECK(contains(made.err, "Permission denied\nhint: the permissions there"));
    CHECK_FALSE(contains(made.err, "workspace already"));
  }
  permissions(forge.folder() / "closed", perms::owner_all);
}

TEST_CASE("a closed standard output is said to be closed") {
  const Program forge;
  const std::string words = (forge.folder() / "words").string();
  const std::string command = forge.binary.string() + " keys >&- 2> " + words;
  REQUIRE(WEXITSTATUS(std::system(command.c_str())) == 1);
  REQUIRE(contains(read_file(words), "standard output: it is closed"));
}

}  // namespace
}  // namespace forge::tests

// What forge finds of its surroundings: folders of other users, closed streams.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "core/base/files.h"
#include "core/base/text.h"
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
  // Somebody else has taken the name of this user's folder for temporary files.
  for (const char* variable : {"FORGE_CACHE_DIR", "HOME", "XDG_CACHE_HOME"})
    forge.environment[variable] = "";
  forge.environment["TMPDIR"] = (forge.folder() / "cache").string();
  for (const uid_t user : {::geteuid(), uid_t{65534}})
    forge.folder().write("cache/forge-cache-" + std::to_string(user), "");
  permissions(forge.runs_dir(), perms(0555));
  const Outcome alone = forge.call({"runs"});
  if (alone.exit_code != 127) {
    INFO(alone.err);
    CHECK(alone.exit_code == 0);
    CHECK(contains(alone.err, "what it holds is listed in '"));
    CHECK(contains(alone.out, "anon"));
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

TEST_CASE("a run whose result cannot be printed is no failed run") {
  const Program forge;
  const std::string words = (forge.folder() / "words").string();
  for (const char* output : {">&-", "> /dev/full"}) {
    std::string command = "cd " + shell_quoted(forge.working_directory.string()) + " && ";
    for (const auto& [name, value] : forge.environment)
      command += name + "=" + shell_quoted(value) + " ";
    command += shell_quoted(forge.binary.string()) + " " +
               shell_quoted(tiny({"run", "train_canon_a"}, 4)) + " " + output + " 2> " + words;
    const int status = std::system(command.c_str());
    INFO(read_file(words));
    CHECK(WEXITSTATUS(status) == 0);
    CHECK(contains(read_file(words), "warning: cannot write to standard output"));
    CHECK(contains(read_file(words), "'forge runs' shows the results"));
  }
}

TEST_CASE("configs and tables that this user may not read are no empty ones") {
  using std::filesystem::perms;
  Program forge;
  forge.folder().write("cache/file", "");
  forge.environment["FORGE_CACHE_DIR"] = (forge.folder() / "cache").string();
  REQUIRE(forge.call({"init", (forge.folder() / "w").string()}).exit_code == 0);
  forge.working_directory = forge.folder() / "w";
  REQUIRE(forge.call({"project", "create", "A"}).exit_code == 0);
  for (const char* name : {"", "cache", "w", "w/a"}) permissions(forge.folder() / name, perms::all);
  forge.working_directory = forge.folder() / "w" / "a";
  forge.as_nobody = true;
  const auto check_closed = [&](const std::string& name, const std::vector<std::string>& command) {
    const std::filesystem::path closed = forge.folder() / "w" / "a" / name;
    permissions(closed, perms::none);
    const Outcome outcome = forge.call(command);
    permissions(closed, perms::owner_all);
    if (outcome.exit_code == 127) return;  // another user cannot reach the build folder
    INFO(command[0] << ": " << outcome.out << outcome.err);
    CHECK(outcome.exit_code != 0);
    CHECK(contains(outcome.out + outcome.err, "cannot read the folder '"));
    CHECK(contains(outcome.out + outcome.err, "Permission denied"));
  };
  check_closed("templates/configs", {"ls"});
  check_closed("templates/configs", {"check", "--all"});
  check_closed("templates/configs", {"run", "--all"});
  check_closed("tables", {"compare"});
}

}  // namespace
}  // namespace forge::tests

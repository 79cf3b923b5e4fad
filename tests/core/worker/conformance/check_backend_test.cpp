#include "core/worker/conformance/check_backend.h"

#include <algorithm>

#include "core/base/files.h"
#include "core/worker/launcher.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::conformance {
namespace {

using namespace tests;

fs::path bigram() { return tests_dir().parent_path() / "backends" / "bigram"; }

/// The bigram worker with a part of one of its files replaced.
worker::WorkerCommand spoilt(const TemporaryFolder& folder,
                             const std::string& file,
                             const std::string& part,
                             const std::string& by) {
  for (const char* name : {"worker.sh", "json.awk", "bigram.awk"}) {
    std::string text = read_file(bigram() / name);
    if (name == file) {
      const size_t at = text.find(part);
      REQUIRE(at != std::string::npos);
      text.replace(at, part.size(), by);
    }
    folder.write(std::string("worker/") + name, text);
  }
  fs::permissions(folder / "worker/worker.sh", fs::perms::owner_all);
  return {{(folder / "worker/worker.sh").string()}, {}};
}

std::vector<Finding> findings_of(const TemporaryFolder& folder,
                                 const worker::WorkerCommand& command,
                                 double patience = 20) {
  worker::LocalLauncher launcher;
  CheckOptions options;
  options.patience_seconds = patience;
  make_directories(folder / "files");
  return check_backend(launcher, command, folder / "files", options);
}

/// "check: text" of each that is not passed.
std::string complaints(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    if (finding.verdict != Verdict::passed)
      text += finding.check + ": " + finding.text + " (" + finding.hint + ")\n";
  }
  return text;
}

std::string complaints_of(const std::string& file,
                          const std::string& part,
                          const std::string& by,
                          double patience = 20) {
  const TemporaryFolder folder;
  return complaints(findings_of(folder, spoilt(folder, file, part, by), patience));
}

TEST_CASE("the backend in shell and awk does all that is expected", "[backend]") {
  const TemporaryFolder folder;
  const auto findings = findings_of(folder, {{(bigram() / "worker.sh").string()}, {}});
  CHECK(complaints(findings) == "");
  CHECK(findings.size() == 10);
}

TEST_CASE("a candidate is told what it does wrong", "[backend]") {
  const auto expect = [](const std::string& part, const std::string& by, const std::string& said) {
    const std::string complaints = complaints_of("bigram.awk", part, by);
    INFO(complaints);
    CHECK(contains(complaints, said));
  };
  expect("\\\"learning_rate\\\":0,", "", "train: event 'train': 'learning_rate' is missing");
  expect("\\\"learning_rate\\\":0,",
         "\\\"learning_rate\\\":\\\"nan\\\",",
         "'learning_rate' is no finite number: nan");
  expect("step, step * batch * seq_len, train_loss,", "step, 7, train_loss,", "'tokens' of step 1");
  expect("if (completed) evaluate_now()", "", "no 'evaluation' of step 8");
  expect("exit completed ? 0 : 3", "exit 0", "stop: it ended with exit status 0");
  expect("if (job == \"describe\") { say_support(); exit 0 }",
         "if (job == \"describe\") { say_support(); print \"done\"; exit 0 }",
         "describe: not a line of the protocol (one JSON object): 'done'");
  expect("&& mv -T \" aside", "&& true \" aside", "there is no checkpoints/");
  expect("exit 2", "exit 0", "wrong job: it ended with exit status 0");
  expect("  if (json[\"resume_from\"] != \"\") load(json[\"resume_from\"])\n",
         "",
         "resume: 'first_step' of 'started' is 0 instead of 4");
  expect("print text; fflush()", "printf \"%s\", text", "a line counts when its newline has come");
}

TEST_CASE("a candidate that says nothing or will not stop is ended", "[backend]") {
  const std::string silent = complaints_of("worker.sh", "printf '{", "sleep 100; printf '{", 0.2);
  CHECK(contains(silent, "describe: nothing new was heard for too long"));
  const std::string stubborn =
      complaints_of("worker.sh", "trap ': > \"$scratch/stop\"' TERM", "trap '' TERM", 4);
  CHECK(contains(stubborn, "stop: it went on after SIGTERM"));
  const std::string killed = complaints_of("worker.sh", "trap ': > \"$scratch/stop\"' TERM", "");
  INFO(killed);
  CHECK(contains(killed, "stop: SIGTERM ended it by signal 15"));
}

TEST_CASE("a candidate that says that it saves on request has to do it", "[backend]") {
  const std::string trap = "trap ': > \"$scratch/save\"' USR1";
  CHECK(contains(complaints_of("worker.sh", trap, ""), "save: SIGUSR1 ended it by signal 10"));
  const std::string deaf = complaints_of("worker.sh", trap, "trap '' USR1", 4);
  INFO(deaf);
  CHECK(contains(deaf, "save: SIGUSR1 brought no 'checkpoint'"));
  CHECK(contains(complaints_of("worker.sh", ",\"saves_on_request\":true", ""),
                 "save: its 'hello' does not say 'saves_on_request'"));
}

TEST_CASE("a candidate that is no program fails", "[backend]") {
  const TemporaryFolder folder;
  const auto findings = findings_of(folder, {{(folder / "none").string()}, {}});
  CHECK(findings.at(0).verdict == Verdict::failed);
  CHECK(contains(findings.at(0).text, (folder / "none").string()));
}

}  // namespace
}  // namespace forge::conformance

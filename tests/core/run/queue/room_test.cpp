// A limit on the size of files stands in for the full disk.
#include <sys/resource.h>

#include <csignal>

#include "tests/core/run/queue/scene.h"
#include "tests/support/catch.h"

namespace forge::queue {
namespace {

using tests::contains;

class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

using Runs = std::vector<std::string>;

TEST_CASE("runs wait for room on a full disk and start when there is some", "[queue][room]") {
  Scene scene(holds_the_lock);
  const QueueEntry first = scene.add(1, 4), second = scene.add(2, 4);
  const rlim_t bytes = GENERATE(0, 1 << 10, 32 << 10);
  for (int pass = 0; pass <= max_starts; ++pass) {
    const FullDisk full(bytes);
    const DispatchResult done = scene.dispatch_unless_locked();
    REQUIRE(done.started.empty());
    REQUIRE(done.failed.empty());
    for (const QueueEntry& entry : {first, second}) {
      REQUIRE(done.waiting.count(entry.run) == 1);
      CHECK(contains(done.waiting.at(entry.run), "room: cannot write "));
    }
  }
  REQUIRE(read_entries(scene.path()).size() == 2);
  REQUIRE(scene.started() == Runs{first.run});
  REQUIRE(read_entries(scene.path()).at(0).starts == 1);
}

TEST_CASE("of runs whose command waits to be told, the first fails for want of room",
          "[queue][room]") {
  Scene scene(holds_the_lock);
  const QueueEntry first = scene.add(1, 4), second = scene.add(2, 4);
  const FullDisk full(0);
  const DispatchResult done =
      dispatch(scene.path(), scene.program(), IfLocked::skip, {first.run, second.run});
  REQUIRE(done.failed.size() == 1);
  CHECK(done.failed[0].run == first.run);
  CHECK(done.failed[0].problem.exit_code() == ExitCode::storage);
  CHECK_FALSE(scene.queued(first));
  CHECK(scene.queued(second));
}

TEST_CASE("a run whose own files fail fails alone, and the next one has its turn",
          "[queue][room]") {
  Scene scene("[ -e \"$2/bad\" ] && { echo 'error: no space' >&2; exit 4; }\n" + holds_the_lock);
  const QueueEntry bad = scene.add(1, 4), next = scene.add(2, 4);
  write_file_atomic(scene.run(bad).path() / "bad", "");
  const DispatchResult done = scene.dispatch();
  REQUIRE(done.failed.size() == 1);
  CHECK(done.failed[0].run == bad.run);
  REQUIRE(done.started.size() == 1);
  CHECK(done.started[0].run == next.run);
  CHECK(contains(scene.run(bad).status().reason, "no space"));
}

TEST_CASE("while forge dies at its start without a word all runs wait", "[queue][room][hostile]") {
  // Half of the program is there, or a library of another version, or memory is short.
  const std::string death = GENERATE("exit 127",
                                     "kill -SEGV $$",
                                     "kill -KILL $$",
                                     "echo 'forge: error while loading libz.so' >&2; exit 127");
  CAPTURE(death);
  Scene scene("[ -e \"$(dirname \"$2\")/half\" ] && { " + death + "; }\n" + holds_the_lock);
  const QueueEntry first = scene.add(1, 4), second = scene.add(2, 4);
  write_file_atomic(scene.path() / "half", "");
  const DispatchResult refused = scene.dispatch_unless_locked();
  CHECK(refused.failed.empty());
  CHECK(refused.needs_keeper);
  for (const QueueEntry& entry : {first, second}) {
    CHECK(scene.queued(entry));
    CHECK(contains(refused.waiting.at(entry.run), "another try: "));
  }
  remove_tree(scene.path() / "half");
  CHECK(scene.dispatch().started.size() == 1);
}

TEST_CASE("while the machine starts no forge all runs wait, and then have their turns",
          "[queue][room]") {
  Scene scene(holds_the_lock);
  const QueueEntry first = scene.add(1, 4), second = scene.add(2, 4);
  const fs::path away = scene.path() / "away";
  fs::rename(scene.program(), away);  // it is being installed anew
  const DispatchResult refused = scene.dispatch_unless_locked();
  REQUIRE(refused.no_process.has_value());
  CHECK(contains(refused.no_process->message(), "cannot start '"));
  CHECK(refused.needs_keeper);
  CHECK(refused.failed.empty());
  for (const QueueEntry& entry : {first, second}) {
    CHECK(scene.queued(entry));
    CHECK(contains(refused.waiting.at(entry.run), "this machine to start forge: cannot start '"));
    CHECK_FALSE(path_exists(scene.run(entry).done_file()));
    CHECK(scene.run(entry).status().attempt == 0);
  }
  CHECK(read_entries(scene.path()).at(0).starts == 0);
  fs::rename(away, scene.program());
  CHECK(scene.dispatch().started.size() == 1);  // of a device that holds one
}

}  // namespace
}  // namespace forge::queue

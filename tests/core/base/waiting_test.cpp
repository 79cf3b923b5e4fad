#include "core/base/waiting.h"

#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <future>
#include <mutex>

#include "core/base/error.h"
#include "core/base/folders.h"
#include "core/base/text.h"
#include "core/data/rows/token_cache.h"
#include "core/results/store/result_store.h"
#include "core/run/host.h"
#include "core/run/queue/queue.h"
#include "tests/support/catch.h"
#include "tests/support/other_user.h"
#include "tests/support/support.h"

namespace forge {
namespace {

using tests::contains;
using tests::error_of;
using tests::TemporaryFolder;

/// An action that finds the disk full so often, and how often it was called.
struct Refused {
  int times = 0;
  int cause = ENOSPC;
  int calls = 0;
  void operator()() {
    if (++calls <= times) throw system_error("write 'x'", cause);
  }
};

TEST_CASE("an action that finds the disk full is tried again") {
  Refused once{1}, thrice{3}, quota{2, EDQUOT}, away{1, ESTALE};
  constexpr Patience twice = {0, 2};
  call_patiently(twice, {}, std::ref(once));
  REQUIRE(once.calls == 2);
  REQUIRE(
      contains(error_of([&] { call_patiently(twice, {}, std::ref(thrice)); }), "No space left"));
  REQUIRE(thrice.calls == 3);
  call_patiently(twice, {}, std::ref(quota));
  REQUIRE(quota.calls == 3);
  call_patiently(twice, {}, std::ref(away));
  REQUIRE(away.calls == 2);
}

TEST_CASE(
    "what no second try mends is said at once, and a wait ends where it is no longer wanted") {
  Refused denied{1, EACCES}, limited{1, EFBIG}, given_up{1};
  for (Refused* each : {&denied, &limited})
    REQUIRE(error_of([&] { call_patiently({1000, 1}, {}, std::ref(*each)); }) != "");
  REQUIRE(denied.calls + limited.calls == 2);
  const auto goes_on = [] { return false; };
  REQUIRE(contains(error_of([&] {
                     call_patiently({1000, 1}, goes_on, std::ref(given_up));
                   }),
                   "No space left"));
  REQUIRE(given_up.calls == 1);
}

/// Keeps what is said while this process waits, for the life of the object.
class Listener {
 public:
  Listener() {
    set_waiting({[this](const std::string& text) {
                   const std::lock_guard lock(mutex_);
                   said_ += text + "\n";
                   if (ends_wait_) interrupts_ = 1;
                 },
                 [this] { return interrupts_.load(); }});
  }
  ~Listener() { set_waiting({}); }
  std::string said() {
    const std::lock_guard lock(mutex_);
    return said_;
  }
  /// As soon as something is said, the user asks the program to stop.
  void end_wait_when_told() { ends_wait_ = true; }

 private:
  std::mutex mutex_;
  std::string said_;
  std::atomic<int> interrupts_{0};
  std::atomic<bool> ends_wait_{false};
};

std::string this_process() {
  return "process " + std::to_string(::getpid()) + " on " + run::host_name();
}

TEST_CASE("a lock that another holds is waited for in words, and a Ctrl-C ends that", "[waiting]") {
  const TemporaryFolder folder;
  const fs::path file = folder / "lock";
  std::optional<FileLock> held = try_lock_signed(file);
  Listener listener;
  listener.end_wait_when_told();
  REQUIRE(contains(error_of([&] { lock_signed(file, "the thing"); }), "interrupted"));
  CHECK(listener.said() == "waiting for the thing: " + this_process() + " holds it\n");
  held.reset();
  CHECK(FileLock::holder(file).empty());
  {
    // Another program has it, which signs nothing; the last line is of one that has ended.
    write_file_atomic(file, "process 999999999 on " + run::host_name() + "\n");
    const std::optional<FileLock> unsigned_lock = FileLock::try_acquire(file);
    Listener second;
    second.end_wait_when_told();
    REQUIRE(contains(error_of([&] { lock_signed(file, "the thing"); }), "interrupted"));
    CHECK(second.said() == "waiting for the thing: another process holds it\n");
  }
  const FileLock now = lock_signed(file, "the thing");
  CHECK(FileLock::holder(file) == this_process());
}

TEST_CASE("a folder that is removed while its lock is waited for is made again", "[waiting]") {
  const TemporaryFolder place;
  const fs::path folder = place / "cache/data";
  std::optional<FileLock> held = lock_made_folder(folder, {});
  const FileLock lock = lock_made_folder(folder, [&](const std::string& holder) {
    CHECK(holder == this_process());
    remove_tree(folder);
    held.reset();
  });
  CHECK_FALSE(held);
  CHECK(lock.is_at(folder / "lock"));
  // What is wrong with the folder itself is said.
  place.write("file", "");
  CHECK_THROWS_AS(lock_made_folder(place / "file", {}), Error);
}

TEST_CASE("commands say for whom they wait at the store and at the queue", "[waiting]") {
  const TemporaryFolder runs;
  queue::Queue(runs.path());
  store::ResultStore(runs / "forge.sqlite");
  const auto said_while = [&](const fs::path& file, const std::function<void()>& action) {
    const std::optional<FileLock> held = try_lock_signed(runs / file);
    REQUIRE(held);
    Listener listener;
    listener.end_wait_when_told();
    REQUIRE(contains(error_of(action), "interrupted"));
    return listener.said();
  };
  const std::string store =
      said_while("forge.sqlite.lock", [&] { store::ResultStore(runs / "forge.sqlite"); });
  CHECK(contains(store, "waiting for the results store '"));
  CHECK(contains(store, "forge.sqlite': " + this_process() + " holds it"));
  const std::string queue = said_while(".queue/lock", [&] { queue::Queue(runs.path()); });
  CHECK(contains(queue, "waiting for the queue of '"));
  CHECK(contains(queue, this_process() + " holds it"));
  CHECK(queue::Queue::try_open(runs.path()));  // it signs, too
  CHECK(contains(read_file(runs / ".queue/lock"), this_process()));
}

TEST_CASE("who prepares the same data is named, and a Ctrl-C ends the wait for it", "[waiting]") {
  const TemporaryFolder cache;
  const data::TokenCacheEntry first(cache.path(), {}, false);
  std::string phase;
  const data::Progress progress = [&](double, const std::string& text) {
    phase = text;
    throw Error("interrupted", ExitCode::failed);
  };
  REQUIRE(contains(error_of([&] { data::TokenCacheEntry(cache.path(), progress, false); }),
                   "interrupted"));
  CHECK(phase == "waiting for " + this_process() + ", which prepares the same data");
}

TEST_CASE("a folder that cannot be read does not count as empty", "[files]") {
  const TemporaryFolder folder;
  folder.write("open/b", "");
  folder.write("open/a", "");
  folder.write("closed/x", "");
  CHECK(required_entries(folder / "none").empty());
  CHECK(required_entries(folder / "open") ==
        std::vector<fs::path>{folder / "open/a", folder / "open/b"});
  fs::permissions(folder.path(), fs::perms::all);
  fs::permissions(folder / "closed", fs::perms::none);
  const std::string said = tests::words_of_other_user(
      [&] { return std::to_string(required_entries(folder / "closed").size()); });
  CHECK(contains(said, "cannot read the folder '"));
  CHECK(contains(said, "closed': Permission denied"));
  fs::permissions(folder / "closed", fs::perms::owner_all);
}

}  // namespace
}  // namespace forge

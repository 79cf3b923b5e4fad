#include "core/run/queue/owners.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/text.h"
#include "core/run/queue/hosts.h"
#include "core/run/queue/withdraw.h"
#include "tests/core/run/queue/scene.h"
#include "tests/support/catch.h"
#include "tests/support/other_user.h"

namespace forge::queue {
namespace {

using tests::as_other_user;
using tests::contains;
using tests::until;
using tests::words_of_other_user;

/// Lets every user add runs to the queue, and change what waits in it.
void share(const Scene& scene) {
  fs::permissions(scene.path(), fs::perms::all);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(scene.path() / ".queue"))
    fs::permissions(entry, entry.is_directory() ? fs::perms::all : fs::perms(0666));
  fs::permissions(scene.path() / ".queue", fs::perms::all);
}

/// A run folder that others may not write to for the life of this object, nor its owner but root.
class Closed {
 public:
  Closed(fs::path folder, fs::perms rights) : folder_(std::move(folder)) {
    fs::permissions(folder_, rights);
  }
  ~Closed() { fs::permissions(folder_, fs::perms::owner_all); }
  Closed(const Closed&) = delete;
  Closed& operator=(const Closed&) = delete;

 private:
  fs::path folder_;
};

constexpr fs::perms listed = fs::perms(0555), hidden = fs::perms::none;

/// What a dispatch of another user's says that a run waits for; the names of runs that it took out
/// of the queue.
std::string dispatched_by_other(Scene& scene, const QueueEntry& entry) {
  return words_of_other_user([&] {
    const DispatchResult done = scene.dispatch_unless_locked();
    std::string said = "waits for " + done.waiting.at(entry.run);
    for (const NotStarted& failed : done.failed) said += ", failed " + failed.run;
    for (const StartedRun& started : done.started) said += ", started " + started.run;
    return said;
  });
}

TEST_CASE("a run that another user may not write to is left in the queue", "[queue][owners]") {
  Scene scene(holds_the_lock);
  QueueEntry entry = scene.add(1);
  const fs::perms rights = GENERATE(listed, hidden);
  std::string reason = rights == listed ? "this user may not write to its folder"
                                        : "this user may not read its folder";
  SECTION("it has not begun") { reason = "who queued it"; }
  SECTION("it has begun, and may run") {
    entry.starts = max_starts;
    entry.device = "cpu";
    scene.put(entry);
  }
  SECTION("its host seems to be gone") {
    entry.host = "another";
    scene.put(entry);
    scene.make_token_files(entry);
    fs::last_write_time(scene.path() / ".queue" / "entries" / entry.run,
                        fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  Lease::try_acquire(leases_folder(scene.path()), {"cpu", 4}, 1);
  give_sign_of_life(scene.path());
  share(scene);
  const fs::path file = scene.path() / ".queue" / "entries" / entry.run;
  const std::string before = read_file(file);
  const Closed closed(scene.run(entry).path(), rights);
  const std::string said = dispatched_by_other(scene, entry);
  INFO(said);
  CHECK(contains(said, "waits for its owner, "));
  CHECK(contains(said, ::geteuid() == 0 ? reason : "this user may not"));
  CHECK_FALSE(contains(said, "failed"));
  REQUIRE(path_exists(file));
  CHECK(read_file(file) == before);
}

TEST_CASE("a run is started for nobody but the user who has queued it",
          "[queue][owners][hostile]") {
  if (::geteuid() != 0) return;  // only root can be two users
  Scene scene(holds_the_lock);
  const QueueEntry entry = scene.add(1);
  Lease::try_acquire(leases_folder(scene.path()), {"cpu", 4}, 1);
  give_sign_of_life(scene.path());
  share(scene);
  for (const fs::path& path : {scene.path() / ".queue" / "leases", scene.run(entry).path()})
    fs::permissions(path, fs::perms::all);
  for (const auto& file : fs::recursive_directory_iterator(scene.path() / ".queue" / "leases"))
    fs::permissions(file, fs::perms::all);
  const std::string said = words_of_other_user([&] {
    const DispatchResult done = scene.dispatch_unless_locked();
    return "waits for " + done.waiting.at(entry.run) + (done.needs_keeper ? ", keeper" : "") +
           ", unserved: " + unserved_run(scene.path());
  });
  CHECK(said == "waits for its owner, root, who queued it, unserved: ");
  // Nor does root start another user's.
  const std::string theirs = words_of_other_user([&] { return scene.add(2).run; });
  const DispatchResult done = scene.dispatch();
  REQUIRE(done.waiting.count(theirs) == 1);
  CHECK(contains(done.waiting.at(theirs), ", who queued it"));
  CHECK(done.started.empty());  // the entry was shared: see the next test
}

TEST_CASE("an entry that others may write to starts nothing until it is written anew",
          "[queue][owners][hostile]") {
  Scene scene(holds_the_lock);
  const mode_t before = ::umask(0);
  const QueueEntry entry = scene.add(1);
  ::umask(before);
  const fs::path file = scene.path() / ".queue" / "entries" / entry.run;
  CHECK((fs::status(file).permissions() & fs::perms(0022)) == fs::perms::none);
  SECTION("by its rights") { fs::permissions(file, fs::perms(0664)); }
  SECTION("through a link") {
    fs::rename(file, scene.path() / "elsewhere");
    fs::create_symlink(scene.path() / "elsewhere", file);
  }
  const DispatchResult done = scene.dispatch();
  CHECK(done.started.empty());
  if (!fs::is_symlink(file)) {
    CHECK(contains(done.waiting.at(entry.run),
                   "which others may have written: 'forge runs resume " + entry.run + "'"));
    CHECK_FALSE(done.needs_keeper);
  }
  scene.put(entry);
  CHECK(scene.started() == std::vector<std::string>{entry.run});
}

TEST_CASE("another user's run holds up none of one's own", "[queue][owners]") {
  Scene scene(holds_the_lock);
  const QueueEntry theirs = scene.add(1, 4);
  Lease::try_acquire(leases_folder(scene.path()), {"cpu", 4}, 1);
  share(scene);
  const Closed closed(scene.run(theirs).path(), hidden);
  const std::string said = words_of_other_user([&] {
    const QueueEntry own = scene.add(2, 4);
    const std::vector<std::string> started = scene.started();
    if (!started.empty()) ::kill(-scene.last_pid(), SIGKILL);
    return "started " + join(started, ", ") + ", asked for " + own.run;
  });
  INFO(said);
  const std::string own = said.substr(said.rfind(' ') + 1);
  CHECK(said == "started " + own + ", asked for " + own);
  CHECK(scene.queued(theirs));
}

TEST_CASE("a run that waits behind another user's needs a keeper, and behind one's own none",
          "[queue][owners]") {
  if (::geteuid() != 0) return;  // only root can be two users
  Scene scene(holds_the_lock);
  const bool is_own = GENERATE(false, true), has_room = GENERATE(true, false);
  CAPTURE(is_own, has_room);
  scene.add(1, has_room ? 4 : 1);
  if (!is_own) REQUIRE(scene.started().size() == 1);
  share(scene);
  const std::string said = words_of_other_user([&] {
    if (is_own) {
      scene.add(3, has_room ? 4 : 1);
      if (scene.started().size() != 1) return std::string("nothing was started");
    }
    scene.add(2, has_room ? 4 : 1);
    if (!has_room) fs::remove(scene.program());
    const DispatchResult done = scene.dispatch_unless_locked();
    if (is_own) ::kill(-scene.last_pid(), SIGKILL);
    return std::string(done.needs_keeper ? "keeper" : "none");
  });
  CHECK(said == (is_own ? "none" : "keeper"));
}

TEST_CASE("a run becomes theirs who ask for it only where nobody serves the queue for its owner",
          "[queue][owners][hosts]") {
  if (::geteuid() != 0) return;  // only root can be two users
  Scene scene(holds_the_lock);
  QueueEntry entry = scene.add(1);
  const bool is_here = GENERATE(true, false);
  entry.host = is_here ? run::host_name() : "another";
  scene.put(entry);
  const fs::path hosts = scene.path() / ".queue" / "hosts";
  fs::create_directories(hosts);
  const fs::path owners_sign = hosts / ("0@" + entry.host), hosts_sign = hosts / entry.host;
  for (const fs::path& sign : {owners_sign, hosts_sign}) write_file_atomic(sign, "");
  share(scene);
  const fs::path file = scene.path() / ".queue" / "entries" / entry.run;
  const auto ask_as_other = [&] {
    as_other_user([&] {
      QueueEntry theirs = entry;
      theirs.host = run::host_name();
      theirs.group = "theirs";
      Queue(scene.path()).add(theirs);
    });
  };
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::minutes(1);
  ask_as_other();
  CHECK_FALSE(is_of_other_user(file));  // the owner's processes need not be seen

  fs::last_write_time(owners_sign, long_ago);
  ask_as_other();
  CHECK(is_of_other_user(file) == is_here);  // others serve the other host, and would not start it
  CHECK(Queue(scene.path()).find(entry.run)->host == entry.host);
  if (is_here) return;

  fs::last_write_time(hosts_sign, long_ago);
  ask_as_other();
  CHECK(is_of_other_user(file));
  CHECK(Queue(scene.path()).find(entry.run)->host == run::host_name());
}

TEST_CASE("another user cannot withdraw a run of which nobody knows whether it runs",
          "[queue][owners]") {
  Scene scene(holds_the_lock);
  const QueueEntry entry = scene.add(1);
  share(scene);
  const Closed closed(scene.run(entry).path(), hidden);
  const std::string said = words_of_other_user([&] {
    Queue queue(scene.path());
    return "withdrawn: " + join(cancel_queued(queue, {entry.run}), ", ");
  });
  CHECK(said == "withdrawn: ");
  CHECK(path_exists(scene.path() / ".queue" / "entries" / entry.run));
}

/// The run's log, with these rights.
fs::path log_with(const Scene& scene, const QueueEntry& entry, fs::perms rights) {
  const fs::path log = scene.run(entry).events_file();
  if (!path_exists(log)) write_file_atomic(log, "");
  fs::permissions(log, rights);
  return log;
}

TEST_CASE("a run with a file that its own user may not write waits for no other",
          "[queue][owners]") {
  Scene scene(holds_the_lock);
  scene.add(1);
  share(scene);
  fs::permissions(scene.path() / ".queue" / "leases", fs::perms::all);
  const std::string said = words_of_other_user([&] {
    const QueueEntry own = scene.add(2);
    log_with(scene, own, fs::perms(0444));
    const DispatchResult done = scene.dispatch_unless_locked();
    const DispatchResult told =
        queue::dispatch(scene.path(), scene.program(), IfLocked::skip, {own.run});
    const std::string waits = done.waiting.count(own.run) ? done.waiting.at(own.run) : "-";
    const std::string fails = told.failed.empty() ? "-" : describe(told.failed.at(0).problem);
    return "waits for " + waits + "\nfails: " + fails + "\n" +
           (scene.queued(own) ? "queued" : "not queued");
  });
  INFO(said);
  CHECK_FALSE(contains(said, "its owner"));
  CHECK(contains(said, "waits for your right to write to '"));
  CHECK(contains(said, "fails: error: you may not write to '"));
  CHECK(contains(said, "/events.jsonl', though it is yours"));
  CHECK(contains(said, "\nhint: 'chmod u+rw "));
  CHECK(contains(said, "\nnot queued"));
}

TEST_CASE("a run that waits for a file of another user's says for which one", "[queue][owners]") {
  Scene scene(holds_the_lock);
  const QueueEntry entry = scene.add(1);
  share(scene);
  fs::permissions(scene.path() / ".queue" / "leases", fs::perms::all);
  fs::permissions(scene.run(entry).path(), fs::perms::all);
  log_with(scene, entry, fs::perms(0644));
  words_of_other_user([&] {
    scene.put(entry);
    return std::string();
  });
  const std::string said = dispatched_by_other(scene, entry);
  INFO(said);
  CHECK(contains(said, "/events.jsonl' belongs: this user may not write to it"));
  CHECK(scene.queued(entry));
}

TEST_CASE("who has queued a run can withdraw it, whatever its files' rights are",
          "[queue][owners]") {
  Scene scene(holds_the_lock);
  scene.add(1);
  share(scene);
  const bool is_hidden = GENERATE(false, true);
  CAPTURE(is_hidden);
  const std::string said = words_of_other_user([&] {
    const QueueEntry own = scene.add(2);
    log_with(scene, own, fs::perms(0444));
    if (is_hidden) fs::permissions(scene.run(own).path(), hidden);
    std::string withdrawn;
    {
      Queue queue(scene.path());
      withdrawn =
          join(cancel_queued(queue, {own.run}, {{own.run, request_stamp(scene.run(own))}}), ", ");
    }
    fs::permissions(scene.run(own).path(), fs::perms::owner_all);
    return withdrawn == own.run && !scene.queued(own) ? "withdrawn" : "left";
  });
  CHECK(said == "withdrawn");
}

TEST_CASE("an entry that this user may not read is another one's that waits", "[queue][owners]") {
  Scene scene(holds_the_lock);
  const QueueEntry entry = scene.add(1);
  share(scene);
  const fs::path file = scene.path() / ".queue" / "entries" / entry.run;
  fs::permissions(file, fs::perms::none);
  const fs::perms rights = GENERATE(listed, hidden);
  const Closed closed(scene.run(entry).path(), rights);
  const std::string said = words_of_other_user([&] {
    std::vector<std::string> problems;
    const size_t count = read_entries(scene.path(), &problems).size();
    return std::to_string(count) + (is_queued(scene.path(), entry.run) ? " queued " : " idle ") +
           join(problems, "\n");
  });
  INFO(said);
  CHECK(contains(said, "0 queued "));
  CHECK(contains(said, ": Permission denied; it belongs to "));
  CHECK_FALSE(contains(said, "removes the entry"));
}

TEST_CASE("a queue that cannot be read is not taken for an empty one", "[queue][owners]") {
  Scene scene(holds_the_lock);
  scene.add(1);
  share(scene);
  const Closed closed(scene.path() / ".queue" / "entries", fs::perms(0333));
  const std::string said = words_of_other_user([&] {
    std::vector<std::string> problems;
    read_entries(scene.path(), &problems);
    return join(problems, "\n") + "\n" + unserved_run(scene.path()) + "\n" +
           tests::error_of([&] { const Queue queue(scene.path()); });
  });
  INFO(said);
  CHECK(contains(said, "the queue is not shown: cannot read the folder '"));
  CHECK(contains(said, "error: cannot read the folder '"));
}

}  // namespace
}  // namespace forge::queue

#include <csignal>

#include "core/base/error.h"
#include "core/run/host.h"
#include "core/run/queue/dispatch.h"
#include "core/run/queue/hosts.h"
#include "core/run/queue/queue.h"
#include "core/run/queue/withdraw.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::queue {
namespace {

using tests::contains;
using tests::error_of;
using tests::TemporaryFolder;

QueueEntry entry(const std::string& run, int priority, int64_t position) {
  QueueEntry entry;
  entry.run = run;
  entry.group = "2026-11-21T10:00:00.000Z-7";
  entry.submitted = "2026-11-21T10:00:00.000Z";
  entry.priority = priority;
  entry.position = position;
  entry.host = "here";
  entry.devices = {{"cuda:0", 24}, {"cuda:1", 24}};
  entry.units = 12;
  entry.jobs = 4;
  entry.fail_fast = true;
  return entry;
}

std::vector<std::string> runs(const std::vector<QueueEntry>& entries) {
  std::vector<std::string> runs;
  for (const QueueEntry& entry : entries) runs.push_back(entry.run);
  return runs;
}

TEST_CASE("an entry is written and read as it is", "[queue]") {
  QueueEntry before = entry("a", -3, 5);
  before.starts = 2;
  before.attempt = 7;
  const QueueEntry after = entry_from_json(to_json(before));
  REQUIRE(to_json(after) == to_json(before));
  REQUIRE(after.priority == -3);
  REQUIRE(after.devices.size() == 2);
  REQUIRE(after.devices[1].name == "cuda:1");
  REQUIRE(after.fail_fast);
}

TEST_CASE("an entry of a newer version is left to that", "[queue]") {
  nlohmann::json json = to_json(entry("a", 1, 0));
  CHECK(entry_from_json(json).run == "a");
  json["version"] = json.at("version").get<int>() + 1;
  CHECK(contains(tests::error_of([&] { entry_from_json(json); }), "a newer version of forge"));
}

TEST_CASE("a damaged entry is named by its field", "[queue]") {
  nlohmann::json json = to_json(entry("a", 0, 0));
  json["units"] = "many";
  REQUIRE(error_of([&] { entry_from_json(json); }).find("'units'") != std::string::npos);
}

TEST_CASE("an entry leads to no file outside the queue and to no endless work",
          "[queue][hostile]") {
  const auto refused = [](const std::function<void(QueueEntry&)>& edit) {
    QueueEntry changed = entry("a", 0, 0);
    edit(changed);
    return error_of([&] { entry_from_json(to_json(changed)); });
  };
  REQUIRE(refused([](QueueEntry&) {}) == "");
  for (const std::string name : {"../../../tmp/x", "/etc/passwd", "..", ""}) {
    REQUIRE(contains(refused([&](QueueEntry& e) { e.devices[1].name = name; }), "'devices'"));
    if (!name.empty()) REQUIRE(contains(refused([&](QueueEntry& e) { e.host = name; }), "'host'"));
  }
  for (const int units : {0, -1, 1 << 30}) {
    REQUIRE(contains(refused([&](QueueEntry& e) { e.units = units; }), "'units'"));
    REQUIRE(refused([&](QueueEntry& e) { e.devices[0].units = units; }) != "");
  }
}

TEST_CASE("an entry that nobody could start is neither written nor taken for one that waits",
          "[queue]") {
  const TemporaryFolder runs_dir;
  const run::RunFolder folder = tests::new_run(runs_dir.path());
  QueueEntry nowhere = entry(folder.id(), 0, 0);
  nowhere.devices.clear();
  QueueEntry too_many = entry(folder.id(), 0, 0);
  too_many.count = 3;
  for (const QueueEntry& hopeless : {nowhere, too_many}) {
    Queue queue(runs_dir.path());
    REQUIRE(contains(error_of([&] { queue.add(hopeless); }), "'devices'"));
    REQUIRE(contains(error_of([&] { queue.put(hopeless); }), "'devices'"));
    REQUIRE(queue.entries().empty());
    // One that another version of forge wrote is named with what helps.
    runs_dir.write(".queue/entries/" + folder.id(), to_json(hopeless).dump());
    REQUIRE_FALSE(is_queued(runs_dir.path(), folder.id()));
    std::vector<std::string> problems;
    REQUIRE(read_entries(runs_dir.path(), &problems).empty());
    REQUIRE(problems.size() == 1);
    REQUIRE(contains(problems[0], "'forge runs resume " + folder.id() + "' queues it anew"));
    REQUIRE(cancel_queued(queue, {folder.id()}) == std::vector<std::string>{folder.id()});
    REQUIRE_FALSE(queue.holds(folder.id()));
    // Who asks for the run again replaces it.
    runs_dir.write(".queue/entries/" + folder.id(), to_json(hopeless).dump());
    queue.add(entry(folder.id(), 0, 0));
    REQUIRE(is_queued(runs_dir.path(), folder.id()));
    queue.remove(folder.id());
  }
}

TEST_CASE("larger priorities come first, then earlier commands, then the order of a command",
          "[queue]") {
  TemporaryFolder folder;
  Queue queue(folder.path());
  QueueEntry late = entry("late", 0, 0);
  late.submitted = "2026-11-21T11:00:00.000Z";
  queue.add(late);
  queue.add(entry("second", 0, 1));
  queue.add(entry("first", 0, 0));
  QueueEntry urgent = late;
  urgent.run = "urgent";
  urgent.priority = 1;
  queue.add(urgent);
  const std::vector<std::string> order = {"urgent", "first", "second", "late"};
  REQUIRE(runs(queue.entries()) == order);
  REQUIRE(runs(read_entries(folder.path())) == order);
}

TEST_CASE("a queue is on the disk, for the next process", "[queue]") {
  TemporaryFolder folder;
  Queue(folder.path()).add(entry("a", 0, 0));
  REQUIRE(is_queued(folder.path(), "a"));
  Queue queue(folder.path());
  REQUIRE(queue.find("a") != nullptr);
  queue.remove("a");
  REQUIRE(queue.find("a") == nullptr);
  REQUIRE_FALSE(is_queued(folder.path(), "a"));
  REQUIRE(read_entries(folder.path()).empty());
}

TEST_CASE("many runs are added at once, and those that wait already stay", "[queue]") {
  TemporaryFolder folder;
  QueueEntry waits = entry("a", 7, 3);
  waits.group = "another";
  Queue(folder.path()).add(waits);
  Queue queue(folder.path());
  queue.add({entry("c", 0, 2), entry("a", 1, 0), entry("b", 0, 1)});
  const std::vector<std::string> order = {"a", "b", "c"};
  REQUIRE(runs(queue.entries()) == order);
  REQUIRE(runs(read_entries(folder.path())) == order);
  REQUIRE(queue.find("a")->group == "another");
  REQUIRE(queue.find("a")->priority == 1);
  REQUIRE(folder_entries(folder / ".queue/entries").size() == 3);  // nothing is left aside
  queue.add(std::vector<QueueEntry>());
  REQUIRE(runs(read_entries(folder.path())) == order);
}

TEST_CASE("a run that is asked for twice goes on to the later step", "[queue][halving]") {
  const TemporaryFolder folder;
  Queue queue(folder.path());
  const auto added = [&](int64_t stop_after) {
    QueueEntry asked = entry("a", 0, 0);
    asked.stop_after = stop_after;
    queue.add(asked);
    return last_step_asked(*queue.find("a"));
  };
  REQUIRE(added(600) == 600);
  REQUIRE(added(200) == 600);
  REQUIRE(added(1800) == 1800);
  REQUIRE(added(0) == 0);  // all of it
  REQUIRE(added(200) == 0);
}

TEST_CASE("a run is started as those say who still ask for it", "[queue]") {
  const TemporaryFolder folder;
  Queue queue(folder.path());
  QueueEntry first = entry("a", 0, 0);
  first.devices = {{"cuda:3", 24, "cuda:0"}};
  first.units = 24;
  first.place = "11111111";
  first.stop_after = 600;
  first.variables = Environment{{"OMP_NUM_THREADS", "1"}};
  queue.add(first);
  QueueEntry second = first;
  second.group = "another";
  second.devices = {{"cuda:5", 24, "cuda:0"}, {"cuda:6", 24, "cuda:1"}};
  second.count = 2;
  second.place = "22222222";
  second.stop_after = 0;
  second.variables = Environment{};
  queue.add(second);
  const auto entry_now = [&] { return read_entries(folder.path())[0]; };
  CHECK(devices_text(entry_now()) == "2 of cuda:5, cuda:6");
  CHECK(entry_now().place == second.place);
  CHECK(entry_now().variables == second.variables);
  CHECK(last_step_asked(entry_now()) == 0);
  SECTION("the one that asked last") {
    REQUIRE(queue.leave_to_others("a", first.group));
    CHECK(devices_text(entry_now()) == "2 of cuda:5, cuda:6");
    CHECK(entry_now().others.empty());
  }
  SECTION("the one that asked first, whose devices are too few for what was asked last") {
    REQUIRE(queue.leave_to_others("a", second.group));
    CHECK(devices_text(entry_now()) == "2 of cuda:5, cuda:6");
    CHECK(entry_now().place == first.place);
    CHECK(last_step_asked(entry_now()) == 600);
  }
  SECTION("the one that asked first, on its own device") {
    QueueEntry third = second;
    third.group = "a third";
    third.devices.pop_back();
    third.count = 1;
    queue.add(third);
    CHECK(devices_text(entry_now()) == "cuda:5");
    REQUIRE(queue.leave_to_others("a", third.group));
    CHECK(devices_text(entry_now()) == "cuda:5 or cuda:6");
    REQUIRE(queue.leave_to_others("a", second.group));
    CHECK(devices_text(entry_now()) == "cuda:3");
    CHECK(entry_now().variables == first.variables);
  }
  SECTION("one of another host, whose devices are not here") {
    QueueEntry moved = *queue.find("a");
    for (Asker& other : moved.others) other = of_another_host(other);
    queue.put(moved);
    REQUIRE(queue.leave_to_others("a", second.group));
    CHECK(devices_text(entry_now()) == "2 of cuda:5, cuda:6");
    CHECK(entry_now().place.empty());
  }
}

TEST_CASE("who asks for a run that waits already changes its priority and asks with others",
          "[queue]") {
  TemporaryFolder folder;
  Queue queue(folder.path());
  queue.add(entry("a", 2, 0));
  QueueEntry again = entry("a", 1, 9);
  again.group = "another";
  queue.add(again);
  REQUIRE(queue.entries().size() == 1);
  REQUIRE(queue.find("a")->priority == 1);
  again.priority = 5;
  queue.add(again);
  REQUIRE(queue.find("a")->priority == 5);
  REQUIRE(queue.find("a")->position == 0);
  REQUIRE(queue.find("a")->others.size() == 1);
  REQUIRE(is_asked_by(*queue.find("a"), "another"));
}

TEST_CASE("a run that another host queued is taken over by who asks for it here",
          "[queue][hosts]") {
  TemporaryFolder folder;
  Queue queue(folder.path());
  QueueEntry theirs = entry("a", 2, 0);
  theirs.host = "gone";
  theirs.starts = 3;
  queue.add(theirs);
  QueueEntry ours = entry("a", 1, 9);
  ours.group = "ours";
  SECTION("nobody runs it") {
    queue.add(ours);
    REQUIRE(queue.find("a")->host == "here");
    REQUIRE(queue.find("a")->group == "ours");
    REQUIRE(queue.find("a")->priority == 1);
    REQUIRE(queue.find("a")->starts == 0);
  }
  SECTION("it runs there") {
    make_directories(folder / "a");
    const FileLock running = FileLock::acquire(folder / "a" / "lock");
    queue.add(ours);
    REQUIRE(queue.find("a")->host == "gone");
  }
}

TEST_CASE("a run that waits on another host keeps the devices of that one", "[queue][hosts]") {
  const TemporaryFolder folder;
  Queue queue(folder.path());
  QueueEntry theirs = entry("a", 2, 0);
  theirs.host = "there";
  theirs.group = "theirs";
  theirs.devices = {{"cuda:0", gpu_units, "0"}};
  queue.add(theirs);
  folder.write(".queue/hosts/there", "");
  QueueEntry ours = entry("a", 1, 9);
  ours.group = "ours";
  ours.devices = {{"cuda:0", gpu_units, "0"}, {"cuda:1", gpu_units, "1"}};
  ours.units = gpu_units;
  ours.count = 2;
  queue.add(ours);
  const QueueEntry now = *queue.find("a");
  CHECK(now.count == 1);
  REQUIRE_NOTHROW(require_sound(now));
  CHECK(now.host == "there");
  CHECK(now.group == "theirs");
  CHECK(devices_text(now) == "cuda:0");
  REQUIRE(now.others.size() == 1);
  CHECK(now.others[0].group == "ours");
  CHECK(now.others[0].devices.empty());
}

TEST_CASE("Ctrl-Z waits until the queue is free for others", "[queue]") {
  TemporaryFolder folder;
  const auto delayed = [] {
    sigset_t blocked;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    return ::sigismember(&blocked, SIGTSTP) == 1;
  };
  {
    std::optional<Queue> queue = Queue::try_open(folder.path());
    REQUIRE(queue);
    REQUIRE(delayed());
    REQUIRE_FALSE(Queue::try_open(folder.path()));
    REQUIRE(delayed());
  }
  REQUIRE_FALSE(delayed());
}

TEST_CASE("damaged entries are named and do not hinder the others", "[queue]") {
  TemporaryFolder folder;
  Queue(folder.path()).add(entry("a", 0, 0));
  folder.write(".queue/entries/b", "{\"run\":");
  folder.write(".queue/entries/c", to_json(entry("other", 0, 0)).dump());
  folder.write(".queue/entries/a.tmp-" + process_digits(), "half");
  std::vector<std::string> problems;
  REQUIRE(runs(read_entries(folder.path(), &problems)) == std::vector<std::string>{"a"});
  REQUIRE(problems.size() == 2);
  REQUIRE_FALSE(is_queued(folder.path(), "b"));
}

TEST_CASE("a run waits whatever its config is called", "[queue][hostile]") {
  const TemporaryFolder folder;
  const std::string run = "train_lr.tmp-2-0123456789ab";
  Queue(folder.path()).add(entry(run, 0, 0));
  REQUIRE(runs(read_entries(folder.path())) == std::vector<std::string>{run});
  Queue(folder.path()).remove(run);
  REQUIRE_FALSE(is_queued(folder.path(), run));
}

TEST_CASE("a runs folder without a queue has no entries", "[queue]") {
  TemporaryFolder folder;
  REQUIRE(read_entries(folder.path()).empty());
  REQUIRE_FALSE(is_queued(folder.path(), "a"));
}

TEST_CASE("the queue is kept behind no link", "[queue][hostile]") {
  const TemporaryFolder folder;
  const TemporaryFolder elsewhere;
  const auto is_refused = [&](const fs::path& link, const std::function<void()>& action) {
    CAPTURE(link);
    make_directories((folder / link).parent_path());
    fs::create_symlink(elsewhere / "new", folder / link);
    CHECK(contains(error_of(action), "is a symbolic link"));
    fs::remove(folder / link);
    fs::create_directory_symlink(elsewhere.path(), folder / link);
    CHECK(contains(error_of(action), "is a symbolic link"));
    fs::remove(folder / link);
    CHECK(fs::is_empty(elsewhere.path()));
  };
  const auto open = [&] { Queue queue(folder.path()); };
  const fs::path leases = leases_folder(folder.path());
  const auto lease = [&] { Lease::try_acquire(leases, {"cpu", 2}, 1); };
  is_refused(".queue", open);
  is_refused(".queue/entries", open);
  is_refused(".queue/leases", open);
  is_refused(".queue/lock", open);
  is_refused(leases.lexically_relative(folder.path()), lease);
  is_refused(leases.lexically_relative(folder.path()) / "cpu", lease);
  const fs::path sign = fs::path(".queue/hosts") / run::host_name();
  for (const fs::path& link : {sign.parent_path(), sign}) {
    make_directories((folder / link).parent_path());
    fs::create_symlink(elsewhere / "new", folder / link);
    // In the folder a user's own sign is given all the same.
    CHECK(give_sign_of_life(folder.path()).has_value() == (link == sign));
    fs::remove(folder / link);
  }
  REQUIRE(fs::is_empty(elsewhere.path()));
}

TEST_CASE("the queue brings back no runs folder that was moved away", "[queue]") {
  const TemporaryFolder folder;
  const fs::path runs = folder / "runs";
  for (const std::function<void()>& action :
       std::vector<std::function<void()>>{[&] { Queue queue(runs); },
                                          [&] { Queue::try_open(runs); },
                                          [&] { dispatch(runs, "forge", IfLocked::wait); },
                                          [&] { finish_queued_run(runs, "a", true); }})
    CHECK(contains(error_of(action), "is not there any more"));
  REQUIRE_FALSE(give_sign_of_life(runs));
  REQUIRE_FALSE(fs::exists(runs));
}

TEST_CASE("an entry says of how many devices it needs all", "[queue]") {
  QueueEntry entry;
  entry.run = "r";
  entry.host = "h";
  entry.devices = {{"cuda:0", gpu_units}, {"cuda:1", gpu_units}};
  REQUIRE(devices_text(entry) == "cuda:0 or cuda:1");
  entry.count = 2;
  REQUIRE(devices_text(entry) == "2 of cuda:0, cuda:1");
  REQUIRE(entry_from_json(to_json(entry)).count == 2);
  nlohmann::json older = to_json(entry);
  older.erase("count");
  REQUIRE(entry_from_json(older).count == 1);
  older["count"] = 0;
  REQUIRE(tests::contains(tests::error_of([&] { entry_from_json(older); }), "count"));
}

TEST_CASE("a run that is asked for twice at once waits once", "[queue]") {
  const TemporaryFolder folder;
  QueueEntry first;
  first.run = "train-1";
  first.group = "group";
  first.host = run::host_name();
  first.devices = {{"cpu", 2}};
  QueueEntry again = first;
  again.priority = 3;
  Queue(folder.path()).add({first, again});
  const std::vector<QueueEntry> waiting = read_entries(folder.path());
  REQUIRE(waiting.size() == 1);
  REQUIRE(waiting[0].priority == 3);
}

}  // namespace
}  // namespace forge::queue

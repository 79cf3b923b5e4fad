#include "core/run/queue/dispatch.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <optional>

#include "core/base/parallel.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/run/allowed_command.h"
#include "core/run/annotations.h"
#include "core/run/event_log.h"
#include "core/run/host.h"
#include "core/run/queue/hosts.h"
#include "core/run/queue/keeper.h"
#include "core/run/queue/place.h"
#include "core/run/queue/withdraw.h"
#include "tests/core/run/fixture.h"
#include "tests/core/run/queue/scene.h"
#include "tests/support/catch.h"

namespace forge::queue {
namespace {

using tests::contains;
using tests::TemporaryFolder;
using tests::until;

void end(const run::RunFolder& folder, const std::string& status, int attempt) {
  run::EventLog log(folder.events_file());
  log.append({{"event", "ended"}, {"status", status}, {"reason", ""}}, attempt);
  log.sync();
}

using Runs = std::vector<std::string>;

TEST_CASE("as many runs are started as a device has room for", "[queue][dispatch]") {
  Scene scene(holds_the_lock);
  const QueueEntry first = scene.add(1, 2), second = scene.add(2, 2), third = scene.add(3, 2);
  REQUIRE(scene.started() == Runs{first.run, second.run});
  REQUIRE(scene.started().empty());
  REQUIRE(scene.run(first).state() == run::RunState::running);
  REQUIRE(scene.run(third).state() == run::RunState::queued);
  REQUIRE(used_units(leases_folder(scene.path()), {"cpu", 4}) == 4);
}

TEST_CASE("a run that no room is left for is not overtaken by a smaller one behind it",
          "[queue][dispatch]") {
  Scene scene(holds_the_lock);
  const QueueEntry small = scene.add(1, 2);
  const QueueEntry large = scene.add(2, 4);
  const QueueEntry behind = scene.add(3, 1);
  REQUIRE(scene.started() == Runs{small.run});
}

/// Of a run that starts a program of its own, which a user must allow.
run::RunInputs inputs_with_program() {
  run::RunInputs inputs = tests::small_inputs();
  inputs.experiment["backend"] = "external";
  inputs.experiment["external"] = {
      {"command", {"./train"}}, {"environment", Runs()}, {"working_directory", "/"}};
  return inputs;
}

TEST_CASE("a run whose program this user has not allowed waits, and holds up nobody",
          "[queue][dispatch][hostile]") {
  Scene scene(holds_the_lock);
  const TemporaryFolder cache;
  ::setenv("FORGE_CACHE_DIR", cache.path().c_str(), 1);
  const run::RunInputs inputs = inputs_with_program();
  const QueueEntry strange = scene.add(1, 4, inputs);
  const QueueEntry own = scene.add(2, 4);
  const DispatchResult done = scene.dispatch();
  REQUIRE(done.started.size() == 1);
  CHECK(done.started[0].run == own.run);
  CHECK(scene.queued(strange));
  INFO(done.waiting.at(strange.run));
  CHECK(contains(
      done.waiting.at(strange.run),
      "one who has allowed its program: 'forge runs resume " + strange.run + " --allow-command'"));
  ::kill(-scene.last_pid(), SIGKILL);
  REQUIRE(until([&] { return !scene.run(own).is_running(); }));
  Queue(scene.path()).remove(own.run);
  run::allow_command(scene.run(strange).record().identity,
                     config::experiment_from_json(inputs.experiment));
  CHECK(scene.started() == Runs{strange.run});
  ::unsetenv("FORGE_CACHE_DIR");
}

TEST_CASE("a run whose lock another process shares stays in the queue",
          "[queue][dispatch][hostile]") {
  Scene scene(holds_the_lock);
  const QueueEntry locked = scene.add(1, 1);
  const QueueEntry free = scene.add(2, 1);
  write_file_atomic(scene.run(locked).lock_file(), "");
  std::optional<FileLock> shared = FileLock::try_share(scene.run(locked).lock_file());
  REQUIRE(shared);
  const DispatchResult done = scene.dispatch();
  REQUIRE(done.started.size() == 1);
  CHECK(done.started[0].run == free.run);
  CHECK(done.failed.empty());
  CHECK(scene.queued(locked));
  CHECK(contains(done.waiting.at(locked.run), "which another process has locked"));
  shared.reset();
  CHECK(scene.started() == Runs{locked.run});
}

TEST_CASE("somebody looks again after a run whose lock another process had", "[queue][dispatch]") {
  Scene scene(holds_the_lock);
  const QueueEntry locked = scene.add(1, 1);
  write_file_atomic(scene.run(locked).lock_file(), "");
  const std::optional<FileLock> shared = FileLock::try_share(scene.run(locked).lock_file());
  CHECK(scene.dispatch().needs_keeper);
}

TEST_CASE("no device is reserved for a run that nobody here starts", "[queue][dispatch][hostile]") {
  Scene scene(holds_the_lock);
  const TemporaryFolder cache;
  ::setenv("FORGE_CACHE_DIR", cache.path().c_str(), 1);
  const run::RunInputs inputs = inputs_with_program();
  const QueueEntry first = scene.add(1, 1);
  const QueueEntry strange = scene.add(2, 4, inputs);
  const QueueEntry own = scene.add(3, 1);
  const DispatchResult done = scene.dispatch();
  REQUIRE(done.started.size() == 2);
  CHECK(done.started[0].run == first.run);
  CHECK(done.started[1].run == own.run);
  CHECK(contains(done.waiting.at(strange.run), "one who has allowed its program"));
  ::unsetenv("FORGE_CACHE_DIR");
}

TEST_CASE("a run that waits for one device does not hold up those of another",
          "[queue][dispatch]") {
  Scene scene(holds_the_lock);
  const QueueEntry first = scene.add(1, 4);
  const QueueEntry second = scene.add(2, 4);
  QueueEntry elsewhere = scene.add(3, 24);
  elsewhere.devices = {{"cuda:0", 24}, {"cuda:1", 24}};
  scene.put(elsewhere);
  QueueEntry next = scene.add(4, 24);
  next.devices = elsewhere.devices;
  scene.put(next);
  const DispatchResult done = scene.dispatch();
  REQUIRE(done.started.size() == 3);
  REQUIRE(done.started[0].run == first.run);
  REQUIRE(done.started[1].device == "cuda:0");
  REQUIRE(done.started[2].device == "cuda:1");
}

TEST_CASE("a run that waits for its cores does not hold up those of a command with others",
          "[queue][dispatch][lease]") {
  Scene scene(holds_the_lock);
  const auto add = [&](uint64_t seed, const std::vector<int>& cores) {
    QueueEntry entry = scene.add(seed, 1);
    entry.devices = {{"cpu", int(cores.size()), "", cores}};
    scene.put(entry);
    return entry;
  };
  const QueueEntry first = add(1, {0}), second = add(2, {0}), third = add(3, {0, 1});
  const QueueEntry right = add(4, {2, 3}), next = add(5, {1, 2});
  const DispatchResult done = scene.dispatch();
  REQUIRE(done.started.size() == 2);
  CHECK(done.started[0].run == first.run);
  CHECK(done.started[1].run == right.run);
  // Behind one that waits for one of its cores.
  CHECK(contains(done.waiting.at(next.run), third.run + " starts first"));
  CHECK(contains(done.waiting.at(second.run), "held by " + first.run));
  CHECK_FALSE(contains(done.waiting.at(second.run), right.run));
}

TEST_CASE("a supervisor is told its device and holds its lease", "[queue][dispatch]") {
  Scene scene(holds_the_lock);
  QueueEntry entry = scene.add(1, 24);
  entry.devices = {{"cuda:1", 24}};
  scene.put(entry);
  REQUIRE(scene.started() == Runs{entry.run});
  const fs::path asked = scene.run(entry).path() / "asked";
  REQUIRE(until([&] { return fs::exists(asked) && !read_file(asked).empty(); }));
  REQUIRE(contains(read_file(asked), "--lease 3 --device cuda:1"));
  REQUIRE(used_units(leases_folder(scene.path()), {"cuda:1", 24}) == 24);
  ::kill(scene.last_pid(), SIGKILL);
  REQUIRE(until([&] { return used_units(leases_folder(scene.path()), {"cuda:1", 24}) == 0; }));
}

TEST_CASE("a lease is of the machine's GPU, whatever number a command has for it",
          "[queue][dispatch][lease]") {
  Scene scene(holds_the_lock);
  worker::Environment seen;
  seen.device_type = "cuda";
  seen.devices = {"cpu", "cuda:0"};
  const auto add = [&](uint64_t seed) {
    QueueEntry entry = scene.add(seed, 24);
    entry.devices = resource_request(seen, "cuda", 0, 8).devices;
    entry.group = "command-" + std::to_string(seed);
    scene.put(entry);
    Queue(scene.path()).add(entry);  // keeps its environment
    return entry;
  };
  ::setenv("CUDA_VISIBLE_DEVICES", "1", 1);
  const QueueEntry first = add(1);
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  seen.devices = {"cpu", "cuda:0", "cuda:1"};
  const QueueEntry second = add(2), third = add(3);
  const DispatchResult done = scene.dispatch();
  REQUIRE(done.started.size() == 2);
  CHECK(done.started[0].device == "cuda:1");
  CHECK(done.started[1].device == "cuda:0");
  const fs::path asked = scene.run(first).path() / "asked";
  REQUIRE(until([&] { return fs::exists(asked) && !read_file(asked).empty(); }));
  CHECK(contains(read_file(asked), "--device cuda:0"));  // as its command sees it
  CHECK(contains(done.waiting.at(third.run), "held by " + second.run));
}

TEST_CASE("a run whose environment is gone waits for a process that sees its GPU",
          "[queue][dispatch][lease]") {
  Scene scene(holds_the_lock);
  QueueEntry entry = scene.add(1, 24);
  entry.devices = {{"cuda:1", 24, "cuda:0"}};
  scene.put(entry);
  ::setenv("CUDA_VISIBLE_DEVICES", "0", 1);
  const DispatchResult done = scene.dispatch();
  CHECK(done.started.empty());
  CHECK(contains(done.waiting.at(entry.run), "a process that sees cuda:1"));
  ::setenv("CUDA_VISIBLE_DEVICES", "0,1", 1);
  CHECK(scene.started() == Runs{entry.run});
  ::unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST_CASE("a run of several GPUs gets all of them and their leases, or waits for all",
          "[queue][dispatch]") {
  Scene scene(holds_the_lock);
  const std::vector<LeaseDevice> gpus = {{"cuda:0", 24}, {"cuda:1", 24}, {"cuda:2", 24}};
  const auto add = [&](uint64_t seed, int count) {
    QueueEntry entry = scene.add(seed, 24);
    entry.devices = gpus;
    entry.count = count;
    scene.put(entry);
    return entry;
  };
  const QueueEntry pair = add(1, 2), other_pair = add(2, 2), single = add(3, 1);
  const DispatchResult done = scene.dispatch();
  REQUIRE(done.started.size() == 1);
  REQUIRE(done.started[0].device == "cuda:0,cuda:1");
  const fs::path asked = scene.run(pair).path() / "asked";
  REQUIRE(until([&] { return fs::exists(asked) && !read_file(asked).empty(); }));
  REQUIRE(contains(read_file(asked), "--lease 3 --device cuda:0,cuda:1"));
  const fs::path leases = leases_folder(scene.path());
  for (const auto& [device, units] : {std::pair(0, 24), std::pair(1, 24), std::pair(2, 0)})
    REQUIRE(used_units(leases, gpus[device]) == units);
  // The one behind it may not take the GPU that is left, or a pair would never be free.
  const std::string held =
      ": held by " + pair.run + " (pid " + std::to_string(done.started[0].supervisor) + ")";
  REQUIRE(done.waiting.at(other_pair.run) == "2 of cuda:0, cuda:1, cuda:2" + held);
  REQUIRE(done.waiting.at(single.run) ==
          "cuda:0 or cuda:1 or cuda:2" + held + "; " + other_pair.run + " starts first");
  ::kill(scene.last_pid(), SIGKILL);
  REQUIRE(
      until([&] { return used_units(leases, gpus[0]) == 0 && used_units(leases, gpus[1]) == 0; }));
}

TEST_CASE("a supervisor is told the step to stop after", "[queue][dispatch][halving]") {
  Scene scene(holds_the_lock);
  QueueEntry entry = scene.add(1, 1);
  entry.stop_after = 200;
  scene.put(entry);
  REQUIRE(scene.started() == Runs{entry.run});
  const fs::path asked = scene.run(entry).path() / "asked";
  REQUIRE(until([&] { return fs::exists(asked) && !read_file(asked).empty(); }));
  REQUIRE(contains(read_file(asked), "--stop-after 200"));
}

TEST_CASE("no more of a command run at once than it asked for", "[queue][dispatch]") {
  Scene scene(holds_the_lock);
  for (int seed = 1; seed <= 3; ++seed) {
    QueueEntry entry = scene.add(seed);
    entry.jobs = 2;
    scene.put(entry);
  }
  QueueEntry other = scene.add(4);
  other.group = "another";
  scene.put(other);
  REQUIRE(scene.started().size() == 3);
  REQUIRE(scene.run(other).state() == run::RunState::running);
}

TEST_CASE("a run that waits says for what", "[queue][dispatch]") {
  Scene scene(holds_the_lock);
  const QueueEntry first = scene.add(1, 3), second = scene.add(2, 2), third = scene.add(3, 2);
  QueueEntry urgent = scene.add(4, 2);
  urgent.priority = 5;
  QueueEntry limited = scene.add(5);
  limited.devices = {{"cuda:0", 24}, {"cuda:1", 24}};
  limited.group = "limited";
  limited.jobs = 1;
  scene.put(limited);
  QueueEntry next = scene.add(6);
  next.devices = limited.devices;
  next.group = limited.group;
  next.jobs = 1;
  scene.put(next);
  const DispatchResult done = scene.dispatch();
  REQUIRE(done.started.size() == 2);
  const std::string held =
      "cpu: held by " + first.run + " (pid " + std::to_string(done.started[0].supervisor) + ")";
  REQUIRE(done.waiting.at(second.run) == held);
  REQUIRE(done.waiting.at(third.run) == held + "; " + second.run + " starts first");
  REQUIRE(done.waiting.at(urgent.run) == held + "; 2 runs start first");
  REQUIRE(done.waiting.at(next.run) == "a run of its command to end (--jobs 1)");
  REQUIRE(done.waiting.count(first.run) == 0);

  scene.put(urgent);  // with its priority
  const auto waiting = scene.dispatch().waiting;
  REQUIRE(waiting.at(urgent.run) == held);
  REQUIRE(waiting.at(second.run) == held + "; " + urgent.run + " starts first (priority 5)");
}

/// Sets the times of all that the queue knows of a host's run back.
void silence(const Scene& scene, const QueueEntry& entry, double seconds) {
  const auto then = fs::file_time_type::clock::now() -
                    std::chrono::milliseconds(static_cast<int64_t>(1000 * seconds));
  for (const fs::path& file : {fs::path("entries") / entry.run, fs::path("hosts") / entry.host}) {
    const fs::path path = scene.path() / ".queue" / file;
    if (fs::exists(path)) fs::last_write_time(path, then);
  }
}

TEST_CASE("signs of hosts that are long gone are removed when a new host comes", "[queue][hosts]") {
  const TemporaryFolder runs;
  const fs::path hosts = runs.path() / ".queue" / "hosts";
  fs::create_directories(hosts);
  const auto now = fs::file_time_type::clock::now();
  for (const auto& [name, days] : {std::pair("old", 100), std::pair("young", 80)}) {
    write_file_atomic(hosts / name, "");
    fs::last_write_time(hosts / name, now - std::chrono::hours(24 * days));
  }
  REQUIRE(give_sign_of_life(runs.path()));
  REQUIRE_FALSE(fs::exists(hosts / "old"));
  REQUIRE(fs::exists(hosts / "young"));
  REQUIRE(fs::exists(hosts / run::host_name()));
}

TEST_CASE("runs of another host are left to it while it gives signs of life",
          "[queue][dispatch][hosts]") {
  Scene scene(holds_the_lock);
  QueueEntry entry = scene.add(1);
  entry.host = "another";
  entry.devices = {{"cpu", 64}};
  entry.units = 48;
  scene.put(entry);
  scene.make_token_files(entry);
  const auto waits = [&] {
    const DispatchResult done = scene.dispatch();
    REQUIRE(done.started.empty());
    REQUIRE(read_entries(scene.path()).at(0).host == "another");
    return done.waiting.at(entry.run);
  };
  silence(scene, entry, gone_after_seconds - 60);
  REQUIRE(contains(waits(), "host 'another', last seen 4m"));

  silence(scene, entry, gone_after_seconds + 1);
  SECTION("it is silent for too long: taken over") {
    REQUIRE(scene.started() == Runs{entry.run});
    const QueueEntry moved = read_entries(scene.path()).at(0);
    REQUIRE(moved.host == run::host_name());
    REQUIRE(moved.devices[0].units == usable_cores());
    REQUIRE(moved.units <= usable_cores());
  }
  SECTION("its sign of life is younger than the entry") {
    const fs::path sign = scene.path() / ".queue" / "hosts" / "another";
    write_file_atomic(sign, "");
    waits();
    silence(scene, entry, gone_after_seconds + 1);
    REQUIRE(scene.started() == Runs{entry.run});
  }
  SECTION("somebody runs it") {
    const auto lock = FileLock::try_acquire(scene.run(entry).lock_file());
    REQUIRE(scene.started().empty());
    REQUIRE(read_entries(scene.path()).at(0).host == "another");
  }
  SECTION("this host has no such device, until one was leased here") {
    entry.devices = {{"cuda:3", 24}};
    entry.units = 24;
    scene.put(entry);
    silence(scene, entry, gone_after_seconds + 1);
    waits();
    Lease::try_acquire(leases_folder(scene.path()), {"cuda:0", 24}, 24);
    silence(scene, entry, gone_after_seconds + 1);
    REQUIRE(scene.started() == Runs{entry.run});
    REQUIRE(read_entries(scene.path()).at(0).device == "cuda:0");
  }
  SECTION("its data is not here") {
    scene.remove_token_files();
    waits();
  }
  SECTION("it completed the run before it went") {
    scene.remove_token_files();
    tests::complete(scene.run(entry));
    REQUIRE(scene.started().empty());
    REQUIRE_FALSE(scene.queued(entry));
  }
}

TEST_CASE("the silence of a host whose sign of life lies in the future counts from now",
          "[queue][dispatch][hosts]") {
  Scene scene(holds_the_lock);
  QueueEntry entry = scene.add(1);
  entry.host = "another";
  scene.put(entry);
  scene.make_token_files(entry);
  const fs::path hosts = scene.path() / ".queue" / "hosts";
  fs::create_directories(hosts);
  write_file_atomic(hosts / "another", "");
  constexpr double days = 3 * 24 * 3600;
  silence(scene, entry, -days);
  REQUIRE(scene.started().empty());
  const auto soon = fs::file_time_type::clock::now() + std::chrono::minutes(1);
  CHECK(fs::last_write_time(hosts / "another") < soon);
  CHECK(fs::last_write_time(scene.path() / ".queue" / "entries" / entry.run) < soon);
  silence(scene, entry, gone_after_seconds + 1);
  REQUIRE(scene.started() == Runs{entry.run});
}

TEST_CASE("a run whose supervisor was killed is started again", "[queue][dispatch]") {
  Scene scene(holds_the_lock);
  const QueueEntry entry = scene.add(1);
  for (int start = 1; start <= max_starts; ++start) {
    REQUIRE(scene.started() == Runs{entry.run});
    REQUIRE(read_entries(scene.path()).at(0).starts == start);
    ::kill(scene.last_pid(), SIGKILL);
    REQUIRE(until([&] { return scene.run(entry).state() != run::RunState::running; }));
  }
  const DispatchResult given_up = scene.dispatch();
  REQUIRE(given_up.started.empty());
  REQUIRE(given_up.failed.size() == 1);
  REQUIRE(contains(given_up.failed[0].problem.message(), "killed 5 times"));
  REQUIRE_FALSE(scene.queued(entry));
  REQUIRE(scene.run(entry).state() == run::RunState::failed);
  REQUIRE(contains(scene.run(entry).status().reason, "killed 5 times"));
}

TEST_CASE("a run that is completed is not started again", "[queue][dispatch]") {
  Scene scene(holds_the_lock);
  const QueueEntry entry = scene.add(1);
  tests::complete(scene.run(entry));
  REQUIRE(scene.started().empty());
  REQUIRE_FALSE(scene.queued(entry));
}

TEST_CASE("a run that ended before its supervisor could say so is not started again",
          "[queue][dispatch]") {
  Scene scene(holds_the_lock);
  QueueEntry entry = scene.add(1);
  entry.starts = 1;
  entry.attempt = 0;
  scene.put(entry);
  end(scene.run(entry), "failed", 1);
  REQUIRE(scene.started().empty());
  REQUIRE_FALSE(scene.queued(entry));
}

TEST_CASE("a run that had failed before it was asked for again is started", "[queue][dispatch]") {
  Scene scene(holds_the_lock);
  const QueueEntry entry = scene.add(1);
  end(scene.run(entry), "failed", 1);
  REQUIRE(scene.started() == Runs{entry.run});
}

TEST_CASE("at the files of a run that waits nobody looks until a device has room",
          "[queue][dispatch]") {
  Scene scene(holds_the_lock);
  const QueueEntry first = scene.add(1, 4), second = scene.add(2, 4), third = scene.add(3, 4);
  REQUIRE(scene.started() == Runs{first.run});
  remove_tree(scene.run(second).path());
  const auto waiting = scene.dispatch().waiting;
  REQUIRE(scene.queued(second));
  REQUIRE(contains(waiting.at(third.run), "; " + second.run + " starts first"));
  finish_queued_run(scene.path(), first.run, false);
  ::kill(scene.last_pid(), SIGKILL);
  REQUIRE(until([&] { return used_units(leases_folder(scene.path()), {"cpu", 4}) == 0; }));
  REQUIRE(scene.started() == Runs{third.run});
  REQUIRE_FALSE(scene.queued(second));
}

TEST_CASE("a run that runs without the queue is not started beside itself", "[queue][dispatch]") {
  Scene scene(holds_the_lock);
  const QueueEntry entry = scene.add(1);
  const auto lock = FileLock::try_acquire(scene.run(entry).lock_file());
  REQUIRE(scene.started().empty());
  REQUIRE(scene.queued(entry));
}

TEST_CASE("a run whose folder is gone leaves the queue", "[queue][dispatch]") {
  Scene scene(holds_the_lock);
  const QueueEntry entry = scene.add(1);
  remove_tree(scene.run(entry).path());
  REQUIRE(scene.started().empty());
  REQUIRE_FALSE(scene.queued(entry));
}

TEST_CASE(
    "a supervisor that cannot start takes its run out of the queue, and the next has its turn",
    "[queue][dispatch]") {
  Scene scene("case \"$2\" in *bad*) echo 'error: no' >&2; exit 1;; esac\n" + holds_the_lock);
  const QueueEntry good = scene.add(1);
  QueueEntry bad = scene.add(2);
  const fs::path folder = scene.run(bad).path();
  rename_path(folder, folder.parent_path() / "bad");
  Queue(scene.path()).remove(bad.run);
  bad.run = "bad";
  bad.priority = 1;
  bad.fail_fast = GENERATE(false, true);
  scene.put(bad);
  const DispatchResult done = scene.dispatch();
  REQUIRE(done.failed.size() == 1);
  REQUIRE(done.failed[0].run == "bad");
  REQUIRE(scene.queued(good) == !bad.fail_fast);  // of one command
  REQUIRE(done.started.size() == (bad.fail_fast ? 0 : 1));
  REQUIRE_FALSE(scene.queued(bad));
}

TEST_CASE("runs that could not be read for a moment stay in the queue",
          "[queue][dispatch][hostile]") {
  // The first start of each meets a folder that is away.
  Scene scene("if mkdir \"$2/seen\" 2>/dev/null; then echo 'error: away' >&2; exit 6; fi\n" +
              holds_the_lock);
  const QueueEntry first = scene.add(1), second = scene.add(2);
  const DispatchResult done = scene.dispatch();
  CHECK(done.failed.empty());
  CHECK(done.started.empty());
  CHECK(done.needs_keeper);
  CHECK(contains(done.waiting.at(first.run), "another try: the supervisor of run"));
  CHECK(scene.queued(first));
  CHECK(scene.queued(second));
  CHECK(scene.dispatch().started.size() == 2);
}

TEST_CASE("after a failure the rest of a group that is to fail fast is not begun",
          "[queue][dispatch]") {
  Scene scene(holds_the_lock);
  std::vector<QueueEntry> entries;
  for (int seed = 1; seed <= 3; ++seed) {
    QueueEntry entry = scene.add(seed, 2);
    entry.fail_fast = true;
    scene.put(entry);
    entries.push_back(entry);
  }
  QueueEntry other = scene.add(4);
  other.group = "another";
  other.submitted = "2026-11-21T11:00:00.000Z";
  scene.put(other);
  REQUIRE(scene.started() == Runs{entries[0].run, entries[1].run});
  SECTION("failed") {
    finish_queued_run(scene.path(), entries[0].run, true);
    REQUIRE_FALSE(scene.queued(entries[0]));
    REQUIRE_FALSE(scene.queued(entries[2]));
    REQUIRE(scene.queued(other));
    REQUIRE(scene.queued(entries[1]));
    REQUIRE(read_file(scene.run(entries[1]).stop_file()) == "save\n");
  }
  SECTION("completed") {
    finish_queued_run(scene.path(), entries[0].run, false);
    REQUIRE_FALSE(scene.queued(entries[0]));
    REQUIRE(scene.queued(entries[2]));
    REQUIRE_FALSE(fs::exists(scene.run(entries[1]).stop_file()));
  }
}

TEST_CASE("who dispatches again and again does not wait for another process", "[queue][dispatch]") {
  Scene scene(holds_the_lock);
  const QueueEntry entry = scene.add(1);
  {
    const Queue locked(scene.path());
    const DispatchResult done = scene.dispatch_unless_locked();
    REQUIRE(done.queue_was_locked);
    REQUIRE(done.started.empty());
  }
  remove_tree(scene.run(entry).path());
  REQUIRE_FALSE(scene.dispatch_unless_locked().queue_was_locked);
  REQUIRE_FALSE(scene.queued(entry));
}

TEST_CASE("what has not begun can be withdrawn", "[queue][dispatch]") {
  Scene scene(holds_the_lock);
  const QueueEntry first = scene.add(1, 4), second = scene.add(2, 4);
  REQUIRE(scene.started() == Runs{first.run});
  Queue queue(scene.path());
  REQUIRE(cancel_queued(queue, {first.run, second.run, "none"}) == Runs{second.run});
  REQUIRE(scene.queued(first));
  REQUIRE_FALSE(scene.queued(second));
  REQUIRE(scene.run(second).state() == run::RunState::not_started);
}

MadeRuns made_by_us(const Scene& scene, const Runs& runs) {
  MadeRuns made;
  for (const std::string& run : runs) made[run] = request_stamp(run::RunFolder(scene.path() / run));
  return made;
}

TEST_CASE("a run that another command has prepared keeps its folder",
          "[queue][dispatch][hostile]") {
  Scene scene(holds_the_lock);
  const QueueEntry ours = scene.add(1), prepared = scene.add(2);
  const Runs all = {ours.run, prepared.run};
  for (const std::string& run : all)
    write_file_atomic(run::RunFolder(scene.path() / run).request_file(), "{}\n");
  const MadeRuns made = made_by_us(scene, all);
  write_file_atomic(scene.run(prepared).request_file(), "{}\n");  // the same once more
  Queue queue(scene.path());
  CHECK(cancel_queued(queue, all, made) == all);
  CHECK_FALSE(path_exists(scene.run(ours).path()));
  CHECK(path_exists(scene.run(prepared).record_file()));
  remove_unqueued(queue, made);
  CHECK(path_exists(scene.run(prepared).record_file()));
}

TEST_CASE("of a run that is withdrawn by the command that made it only what is of value stays",
          "[queue][dispatch]") {
  Scene scene(holds_the_lock);
  const QueueEntry empty = scene.add(1), noted = scene.add(2), begun = scene.add(3);
  run::write_annotations(scene.run(noted), {false, "compare with the paper", {}});
  end(scene.run(begun), "stopped", 1);
  const Runs all = {empty.run, noted.run, begun.run};
  Queue queue(scene.path());
  REQUIRE(cancel_queued(queue, all, made_by_us(scene, all)) == all);
  REQUIRE(read_entries(scene.path()).empty());
  REQUIRE_FALSE(fs::exists(scene.run(empty).path()));
  REQUIRE(scene.run(noted).state() == run::RunState::not_started);
  REQUIRE(scene.run(begun).state() == run::RunState::stopped);
}

TEST_CASE("runs are withdrawn though the folder of one was removed by hand", "[queue][dispatch]") {
  Scene scene(holds_the_lock);
  const QueueEntry gone = scene.add(1), other = scene.add(2);
  remove_tree(scene.run(gone).path());
  const Runs all = {gone.run, other.run};
  Queue queue(scene.path());
  REQUIRE(cancel_queued(queue, all, made_by_us(scene, all)) == all);
  REQUIRE(read_entries(scene.path()).empty());
  REQUIRE_FALSE(fs::exists(scene.run(other).path()));
}

TEST_CASE("a queue that no process serves is known by its silence", "[queue][dispatch]") {
  Scene scene("exit 1");
  REQUIRE(unserved_run(scene.path()) == "");
  const QueueEntry entry = scene.add(1);
  const auto give_signs = [&](std::chrono::minutes ago) {
    for (const fs::path& sign : folder_entries(scene.path() / ".queue/hosts"))
      fs::last_write_time(sign, fs::file_time_type::clock::now() - ago);
  };
  REQUIRE(unserved_run(scene.path()) == entry.run);
  REQUIRE(give_sign_of_life(scene.path()));
  REQUIRE(unserved_run(scene.path()) == "");
  give_signs(std::chrono::minutes(1));
  REQUIRE(unserved_run(scene.path()) == entry.run);
  // A clock was set back since the last one.
  give_signs(std::chrono::hours(-72));
  CHECK(unserved_run(scene.path()) == entry.run);
  // Another user's forge starts no run of this user's.
  for (const char* place : {"", "@12345678"})
    write_file_atomic(scene.path() / ".queue/hosts" / ("12345@" + run::host_name() + place), "");
  CHECK(unserved_run(scene.path()) == entry.run);
  give_signs(std::chrono::minutes(1));
  const auto running = FileLock::try_acquire(scene.run(entry).lock_file());
  REQUIRE(unserved_run(scene.path()) == "");
}

TEST_CASE("a run is started in the environment of the command that asked for it", "[queue]") {
  Scene scene("echo \"$FORGE_TEST_WHO $FORGE_TEST_OTHER\" > \"$2/who\"\n" + holds_the_lock);
  const auto with = [](const char* who, const char* other, const std::function<void()>& work) {
    ::setenv("FORGE_TEST_WHO", who, 1);
    if (other) ::setenv("FORGE_TEST_OTHER", other, 1);
    work();
    ::unsetenv("FORGE_TEST_WHO");
    ::unsetenv("FORGE_TEST_OTHER");
  };
  const QueueEntry entry = scene.add(1);
  with("first\nof two", nullptr, [&] { Queue(scene.path()).add(entry); });
  const fs::path file = environments_folder(scene.path() / ".queue") / entry.group;
  REQUIRE((fs::status(file.parent_path()).permissions() & fs::perms::all) == fs::perms::owner_all);
  with("second", "other", [&] { REQUIRE(scene.started() == std::vector<std::string>{entry.run}); });
  REQUIRE(until([&] { return path_exists(scene.run(entry).path() / "who"); }));
  REQUIRE(read_file(scene.run(entry).path() / "who") == "first\nof two \n");
  // It is kept as long as a run of the group is there.
  QueueEntry again = entry;
  again.group = "again";
  Queue(scene.path()).add(again);
  REQUIRE(folder_entries(file.parent_path()).size() == 2);
  Queue(scene.path()).remove(entry.run);
  REQUIRE(folder_entries(file.parent_path()).empty());
}

TEST_CASE("a run that another cache's process starts has its own command's numerics",
          "[queue][hostile]") {
  Scene scene("echo \"$OPENBLAS_CORETYPE $MKL_CBWR $LD_AUDIT $FORGE_TEST_WHO\" > \"$2/who\"\n" +
              holds_the_lock);
  QueueEntry entry = scene.add(1);
  entry.variables = {{"OPENBLAS_CORETYPE", "Haswell"}, {"LD_AUDIT", "/tmp/theirs.so"}};
  entry.place = own_place();
  {
    Queue queue(scene.path());
    queue.remove(entry.run);
    queue.add(entry);
  }
  remove_tree(environments_folder(scene.path() / ".queue"));
  ::setenv("MKL_CBWR", "AVX2", 1);
  ::setenv("FORGE_TEST_WHO", "second", 1);
  REQUIRE(scene.started() == std::vector<std::string>{entry.run});
  REQUIRE(until([&] { return path_exists(scene.run(entry).path() / "who"); }));
  ::unsetenv("MKL_CBWR");
  ::unsetenv("FORGE_TEST_WHO");
  REQUIRE(read_file(scene.run(entry).path() / "who") == "Haswell   second\n");
  CHECK(contains(read_file(scene.run(entry).supervisor_log()),
                 "the environment and limits of the command that queued this run are gone"));
}

/// This process with another cache, for the life of the object.
class OtherCache {
 public:
  OtherCache() {
    if (const char* const value = std::getenv(name)) before_ = value;
    ::setenv(name, folder_.path().c_str(), 1);
  }
  ~OtherCache() { before_ ? ::setenv(name, before_->c_str(), 1) : ::unsetenv(name); }

 private:
  static constexpr const char* name = "FORGE_CACHE_DIR";
  tests::TemporaryFolder folder_;
  std::optional<std::string> before_;
};

TEST_CASE("a run of a command with another cache is left to a process with that cache",
          "[queue][dispatch]") {
  Scene scene(holds_the_lock);
  const QueueEntry busy = scene.add(1, 4);
  REQUIRE(scene.started() == Runs{busy.run});
  REQUIRE(Queue(scene.path()).find(busy.run)->supervisor_place == own_place());
  QueueEntry waiting = scene.add(2, 4);
  {
    const OtherCache other;
    waiting.place = own_place();
    scene.put(waiting);
    // The supervisor that runs has the first cache: it would know neither what the command allowed
    // nor its environment.
    CHECK(scene.dispatch_unless_locked().needs_keeper);
  }
  REQUIRE(waiting.place != own_place());
  ::kill(-scene.last_pid(), SIGKILL);
  REQUIRE(until([&] { return !scene.run(busy).is_running(); }));
  Queue(scene.path()).remove(busy.run);
  const DispatchResult left = scene.dispatch();
  CHECK(left.started.empty());
  CHECK(contains(left.waiting.at(waiting.run), "which starts it"));
  for (const fs::path& sign : folder_entries(scene.path() / ".queue" / "hosts"))
    if (ends_with(sign.filename().string(), waiting.place))  // nobody with that cache is left
      fs::last_write_time(sign, fs::file_time_type::clock::now() - std::chrono::minutes(1));
  CHECK(scene.started() == Runs{waiting.run});
}

TEST_CASE("a run is started with the limits and in the folder of the command that asked for it",
          "[queue][hostile]") {
  Scene scene(
      "{ pwd; umask; ulimit -f; nice; taskset -cp $$ | sed 's/.*: //'; } > \"$2/settings\"\n" +
      holds_the_lock);
  const QueueEntry entry = scene.add(1);
  const tests::TemporaryFolder folder;
  Queue(scene.path()).add(entry);
  const fs::path kept = environments_folder(scene.path() / ".queue") / entry.group;
  // As written by a command of other settings, none of which is beyond this process's own.
  worker::ProcessSettings settings = worker::own_settings();
  settings.umask = 077;
  settings.nice += 3;
  settings.cores.resize(1);
  for (worker::ResourceLimit& limit : settings.limits)
    if (limit.resource == RLIMIT_FSIZE) limit.soft = 512 * 1000000;
  const auto keep = [&](const fs::path& where) {
    std::string text = read_file(kept);
    const size_t host = text.find('\0') + 1, variables = text.find('\0', text.find('\0', host) + 1);
    text.replace(host, variables - host, worker::to_text(settings) + '\0' + where.string());
    write_file_atomic(kept, text);
    fs::permissions(kept, fs::perms::owner_read | fs::perms::owner_write);
  };
  keep(folder.path());
  SECTION("all of them") {
    REQUIRE(scene.started() == Runs{entry.run});
    const fs::path file = scene.run(entry).path() / "settings";
    REQUIRE(until([&] { return path_exists(file) && split(read_file(file), '\n').size() > 5; }));
    CHECK(split(read_file(file), '\n') == Runs{fs::canonical(folder.path()).string(),
                                               "0077",
                                               std::to_string(1000000),
                                               std::to_string(settings.nice),
                                               std::to_string(settings.cores.at(0)),
                                               ""});
  }
  SECTION("a folder that is gone is the root's") {
    keep(folder / "gone");
    REQUIRE(scene.started() == Runs{entry.run});
    const fs::path file = scene.run(entry).path() / "settings";
    REQUIRE(until([&] { return path_exists(file) && split(read_file(file), '\n').size() > 5; }));
    CHECK(split(read_file(file), '\n')[0] == "/");
  }
  SECTION("what this process may not give waits, and holds up nobody") {
    settings.groups.push_back(4242424);
    keep(folder.path());
    QueueEntry other = scene.add(2, 4);
    other.group = "other";
    scene.put(other);
    const DispatchResult done = scene.dispatch();
    REQUIRE(done.started.size() == 1);
    CHECK(done.started[0].run == other.run);
    CHECK(done.waiting.at(entry.run).find("with the limits of its command") != std::string::npos);
    CHECK(scene.queued(entry));
    const auto lacks = [&](const QueueEntry& waiting) {
      return lacks_limits(scene.path(), read_entries(scene.path()), waiting);
    };
    CHECK(lacks(entry));
    CHECK_FALSE(lacks(other));
    {
      const auto keeper = FileLock::try_acquire(keeper_file(scene.path(), entry.place, settings));
      CHECK_FALSE(lacks(entry));
    }
    // Another command whose settings are no hindrance asks for it, too.
    finish_queued_run(scene.path(), other.run, false);
    QueueEntry again = entry;
    again.group = "again";
    Queue(scene.path()).add(again);
    ::kill(-scene.last_pid(), SIGKILL);
    ::waitpid(scene.last_pid(), nullptr, 0);
    CHECK(scene.started() == Runs{entry.run});
  }
}

TEST_CASE("a run that two commands ask for stays for the one when the other withdraws it",
          "[queue][dispatch][hostile]") {
  Scene scene(holds_the_lock);
  const QueueEntry running = scene.add(1, 4), waiting = scene.add(2, 4), alone = scene.add(3, 4);
  REQUIRE(scene.started() == Runs{running.run});
  Queue queue(scene.path());
  QueueEntry again = waiting;
  again.group = "later";
  again.jobs = 7;
  queue.add(again);
  again.run = running.run;
  queue.ask_for_active(again);
  CHECK(queue.find(running.run)->starts == 1);  // it runs on
  again.run = "none";
  queue.ask_for_active(again);
  CHECK_FALSE(queue.holds("none"));
  const Runs all = {running.run, waiting.run, alone.run};
  SECTION("by Ctrl-C") {
    CHECK(is_asked_by_others(scene.path(), running.run, "group"));
    CHECK(cancel_queued(queue, all, made_by_us(scene, all), "group") == Runs{alone.run});
    CHECK(queue.find(waiting.run)->group == "later");
    CHECK(queue.find(waiting.run)->jobs == 7);
    CHECK_FALSE(is_asked_by_others(scene.path(), waiting.run, "later"));
    CHECK(queue.find(running.run)->group == "later");
    CHECK(path_exists(scene.run(waiting).path()));
    // A second Ctrl-C takes nothing from the other command, and its own withdraws the run.
    CHECK(cancel_queued(queue, all, made_by_us(scene, all), "group").empty());
    CHECK(cancel_queued(queue, all, {}, "later") == Runs{waiting.run});
  }
  SECTION("by 'forge runs stop', for all") {
    CHECK(cancel_queued(queue, all) == Runs{waiting.run, alone.run});
  }
}

TEST_CASE("a failure takes nothing from another command", "[queue][dispatch][hostile]") {
  Scene scene(holds_the_lock);
  const QueueEntry failing = scene.add(1, 4), shared = scene.add(2, 4), alone = scene.add(3, 4);
  const std::string by_whom = GENERATE("group", "later");
  {
    Queue queue(scene.path());
    for (const QueueEntry& added : {failing, shared, alone}) {
      QueueEntry entry = added;
      entry.fail_fast = by_whom == "group";
      queue.put(entry);
    }
    QueueEntry again = shared;
    again.group = "later";
    again.fail_fast = by_whom == "later";
    queue.add(again);
    again.run = failing.run;
    queue.add(again);
  }
  finish_queued_run(scene.path(), failing.run, true);
  CHECK_FALSE(scene.queued(failing));
  CHECK(scene.queued(shared));
  CHECK(scene.queued(alone) == (by_whom == "later"));
}

TEST_CASE("a run that stopped at a rung stays queued where more of it was asked for meanwhile",
          "[queue][dispatch][halving]") {
  Scene scene(holds_the_lock);
  QueueEntry entry = scene.add(1, 4);
  entry.stop_after = 200;
  scene.put(entry);
  REQUIRE(scene.started() == Runs{entry.run});
  const int64_t more = GENERATE(0, 200, 600);
  QueueEntry again = entry;
  again.group = "later";
  again.stop_after = more;
  Queue(scene.path()).ask_for_active(again);
  run::EventLog(scene.run(entry).events_file()).append(run::AttemptStarted{}, 1);
  run::AttemptEnded end;
  end.status = run::RunState::stopped;
  if (GENERATE(true, false)) end.stop_after = 200;  // else by the user's word
  run::EventLog(scene.run(entry).events_file()).append(end, 1);
  const bool goes_on = end.stop_after && more != 200;
  CAPTURE(more, goes_on);
  SECTION("its supervisor says so") {
    finish_queued_run(scene.path(), entry.run, false);
    CHECK(scene.queued(entry) == goes_on);
    if (goes_on) CHECK(read_entries(scene.path()).at(0).device == "");
  }
  SECTION("its supervisor was killed before it could") {
    ::kill(-scene.last_pid(), SIGKILL);
    ::waitpid(scene.last_pid(), nullptr, 0);
    CHECK(scene.started() == (goes_on ? Runs{entry.run} : Runs{}));
  }
}

TEST_CASE("a run that is asked for while it stops waits again after that",
          "[queue][dispatch][hostile]") {
  Scene scene(holds_the_lock);
  const QueueEntry entry = scene.add(1, 4);
  REQUIRE(scene.started() == Runs{entry.run});
  scene.run(entry).request_stop(run::StopRequest::after_checkpoint);
  QueueEntry again = entry;
  again.group = "later";
  Queue(scene.path()).ask_for_active(again);
  const bool stopped_for_all = GENERATE(false, true);
  if (stopped_for_all) {
    Queue queue(scene.path());
    CHECK(cancel_queued(queue, {entry.run}).empty());  // 'forge runs stop'
  }
  end(scene.run(entry), "stopped", 1);
  finish_queued_run(scene.path(), entry.run, false);
  CHECK(scene.queued(entry) == !stopped_for_all);
}

TEST_CASE("the environment of another machine is none here", "[queue]") {
  const TemporaryFolder folder;
  const fs::path queue = folder / ".queue";
  keep_own_environment(queue, "group");
  REQUIRE(kept_environment(queue, "group").value().variables.count("PATH") == 1);
  const fs::path file = environments_folder(queue) / "group";
  std::string text = read_file(file);
  write_file_atomic(file, "elsewhere" + text.substr(text.find('\0')));
  REQUIRE_FALSE(kept_environment(queue, "group"));
  keep_own_environment(queue, "../group");
  REQUIRE_FALSE(path_exists(file.parent_path().parent_path() / "group"));
  forget_environments(queue, [](const std::string&) { return false; });
  REQUIRE_FALSE(path_exists(file));
}

TEST_CASE("an environment is kept from another queue under the same path", "[queue][hostile]") {
  const TemporaryFolder folder;
  const fs::path queue = folder / ".queue", away = folder / "away";
  const auto is_needed_by_none = [](const std::string&) { return false; };
  make_directories(queue);
  keep_own_environment(queue, "group");
  // As another host sees it, or a container: another folder in its place.
  rename_path(queue, away);
  make_directories(queue);
  keep_own_environment(queue, "other");
  REQUIRE_FALSE(kept_environment(queue, "group"));
  forget_environments(queue, is_needed_by_none);
  REQUIRE_FALSE(kept_environment(queue, "other"));
  remove_tree(queue);
  rename_path(away, queue);
  const char* const host = std::getenv(run::host_name_variable);
  const std::string own = host ? host : "";
  ::setenv(run::host_name_variable, "another", 1);
  REQUIRE_FALSE(kept_environment(queue, "group"));
  forget_environments(queue, is_needed_by_none);
  host ? ::setenv(run::host_name_variable, own.c_str(), 1) : ::unsetenv(run::host_name_variable);
  REQUIRE(kept_environment(queue, "group"));
  forget_environments(queue, is_needed_by_none);
  REQUIRE_FALSE(kept_environment(queue, "group"));
}

TEST_CASE("an environment that somebody else could have written is none", "[queue][hostile]") {
  const TemporaryFolder folder;
  const fs::path queue = folder / ".queue";
  // In a runs folder that came from somebody.
  const std::string theirs = run::host_name() + '\0' + "LD_PRELOAD=/tmp/theirs.so" + '\0';
  make_directories(queue / "environments");
  write_file_atomic(queue / "environments" / "group", theirs);
  REQUIRE_FALSE(kept_environment(queue, "group"));
  keep_own_environment(queue, "group");
  REQUIRE(kept_environment(queue, "group").value().variables.count("PATH") == 1);
  fs::permissions(
      environments_folder(queue) / "group", fs::perms::group_write, fs::perm_options::add);
  REQUIRE_FALSE(kept_environment(queue, "group"));
  forget_environments(queue, [](const std::string&) { return false; });
}

}  // namespace
}  // namespace forge::queue

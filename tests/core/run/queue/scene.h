// Supervisors are shell scripts here, which take the run's lock as the real one does.
#pragma once

#include <signal.h>
#include <sys/wait.h>

#include <string>
#include <vector>

#include "core/run/host.h"
#include "core/run/queue/dispatch.h"
#include "core/run/request.h"
#include "tests/core/run/fixture.h"
#include "tests/support/support.h"

namespace forge::queue {

/// A runs folder with a queue, and a program that stands in for forge.
class Scene {
 public:
  /// What `program supervise RUN_DIR …` does.
  explicit Scene(const std::string& script) {
    program_ = folder_.write("forge", "#!/bin/sh\n" + script);
    fs::permissions(program_, fs::perms(0755));
  }
  ~Scene() {
    for (const int pid : pids_) {
      ::kill(-pid, SIGKILL);  // its session, and so its group
      ::waitpid(pid, nullptr, 0);
    }
  }

  QueueEntry add(int seed, int units = 1, run::RunInputs inputs = tests::small_inputs()) {
    inputs.experiment["seed"] = seed;
    const run::PlannedRun planned = run::plan_run(inputs, folder_.path(), false);
    run::write_run_folder(planned, inputs);
    QueueEntry entry;
    entry.run = planned.record.id;
    entry.group = "group";
    entry.submitted = "2026-11-21T10:00:00.000Z";
    entry.position = position_++;
    entry.host = run::host_name();
    entry.devices = {{"cpu", 4}};
    entry.units = units;
    put(entry);
    return entry;
  }
  void put(const QueueEntry& entry) { Queue(folder_.path()).put(entry); }

  DispatchResult dispatch() {
    DispatchResult done = queue::dispatch(folder_.path(), program_, IfLocked::wait);
    for (const StartedRun& started : done.started) pids_.push_back(started.supervisor);
    return done;
  }
  DispatchResult dispatch_unless_locked() {
    return queue::dispatch(folder_.path(), program_, IfLocked::skip);
  }
  std::vector<std::string> started() {
    std::vector<std::string> runs;
    for (const StartedRun& started : dispatch().started) runs.push_back(started.run);
    return runs;
  }
  run::RunFolder run(const QueueEntry& entry) const {
    return run::RunFolder(folder_.path() / entry.run);
  }
  const fs::path& path() const { return folder_.path(); }
  const fs::path& program() const { return program_; }
  /// The files that the run's request names, in a folder of the test.
  void make_token_files(const QueueEntry& entry) {
    worker::Request request = run::read_request(run(entry));
    request.train_tokens = {{folder_.write("data/train.tokens", "").string(), 10}};
    request.evaluation_tokens = {{folder_.write("data/evaluation.tokens", "").string(), 2}};
    write_file_atomic(run(entry).request_file(), worker::to_line(request) + "\n");
  }
  void remove_token_files() { remove_tree(folder_ / "data"); }
  int last_pid() const { return pids_.back(); }
  bool queued(const QueueEntry& entry) const { return is_queued(folder_.path(), entry.run); }

 private:
  tests::TemporaryFolder folder_;
  fs::path program_;
  std::vector<int> pids_;
  int64_t position_ = 0;
};

inline const std::string holds_the_lock =
    "exec 9>\"$2/lock\"\nflock 9\necho \"$*\" > \"$2/asked\"\nexec sleep 100\n";

}  // namespace forge::queue

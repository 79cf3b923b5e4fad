#include "core/run/run_folder.h"

#include "core/base/files.h"
#include "core/base/json_file.h"
#include "core/model/weights/checkpoint.h"
#include "core/run/annotations.h"
#include "core/run/event_log.h"
#include "core/run/queue/queue.h"
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

const std::string attempt_line = R"({"attempt":1,"event":"attempt","time":1})"
                                 "\n";

std::string ended_line(const std::string& status) {
  return R"({"attempt":2,"event":"ended","time":2,"status":")" + status +
         R"(","exit_status":1,"signal":0,"reason":"why","hint":"how","stderr":["a","b"],"retry":false})"
         "\n";
}

std::string evaluation_line(int step, const std::string& loss, const std::string& rows) {
  return R"({"attempt":1,"event":"evaluation","time":1,"step":)" + std::to_string(step) +
         R"(,"loss":)" + loss + R"(,"tokens":8,"seconds":1)" + rows + "}\n";
}

std::string replaced(std::string text, const std::string& part, const std::string& other) {
  REQUIRE(contains(text, part));
  return text.replace(text.find(part), part.size(), other);
}

TEST_CASE("a run that never began is queued only while it is in the queue", "[run][run_folder]") {
  const TemporaryFolder runs;
  const RunFolder run = new_run(runs.path());
  REQUIRE(run.state() == RunState::not_started);
  queue::QueueEntry entry;
  entry.run = run.id();
  entry.devices = {{"cpu", 1}};
  queue::Queue(runs.path()).put(entry);
  REQUIRE(run.state() == RunState::queued);
  // Metrics of the run that it is to continue are no attempt of its own.
  write_file_atomic(run.events_file(),
                    R"({"attempt":0,"event":"train","time":1})"
                    "\n");
  REQUIRE(run.state() == RunState::queued);
  queue::Queue(runs.path()).remove(run.id());
  REQUIRE(run.state() == RunState::not_started);
  REQUIRE(run.status().reason == "");
}

TEST_CASE("a run whose supervisor was killed is queued while it is in the queue",
          "[run][run_folder]") {
  const TemporaryFolder runs;
  const RunFolder run = new_run(runs.path());
  write_file_atomic(run.events_file(), attempt_line);
  CHECK(run.state() == RunState::failed);
  queue::QueueEntry entry;
  entry.run = run.id();
  entry.devices = {{"cpu", 1}};
  queue::Queue(runs.path()).put(entry);
  CHECK(run.state() == RunState::queued);
  CHECK(run.status().interrupted);
  CHECK(plan_run(tests::small_inputs(), runs.path(), false).action == Action::resume);
  write_file_atomic(run.events_file(), attempt_line + ended_line("failed"));
  CHECK(run.state() == RunState::failed);  // why it ended is not hidden
}

TEST_CASE("a run that removed its own folder is not said to have lost its supervisor",
          "[run][run_folder]") {
  const TemporaryFolder runs;
  const RunFolder run = new_run(runs.path());
  remove_tree(run.path());
  make_directories(run.checkpoints());  // by a worker that writes on
  CHECK(supervisor_error(run) == "its folder was removed or renamed while it ran");
}

TEST_CASE("processes of a run that are stopped are named with what continues them",
          "[run][run_folder]") {
  REQUIRE(StoppedProcesses{}.text() == "");
  REQUIRE(StoppedProcesses{12, {}}.text() ==
          "the supervisor (process 12) is stopped: 'kill -CONT 12' continues it");
  REQUIRE(StoppedProcesses{0, {13}}.text() ==
          "the worker (process 13) is stopped: 'kill -CONT 13' continues it");
  REQUIRE(StoppedProcesses{12, {13, 14}}.text() ==
          "the supervisor (process 12) and the worker's processes 13, 14 are stopped: 'kill -CONT "
          "12 13 14' continues them");
  const TemporaryFolder runs;
  REQUIRE_FALSE(new_run(runs.path()).stopped_processes().any());
}

TEST_CASE("a supervisor whose run folder was renamed was not killed", "[run][run_folder]") {
  const TemporaryFolder runs;
  const RunFolder run = new_run(runs.path());
  fs::rename(run.path(), runs / "elsewhere");
  REQUIRE(supervisor_error(run) == "its folder was removed or renamed while it ran");
}

TEST_CASE("a run's state is derived from its files alone", "[run][run_folder]") {
  const TemporaryFolder runs;
  const RunFolder run = new_run(runs.path());
  write_file_atomic(run.events_file(), attempt_line);
  REQUIRE(run.state() == RunState::failed);
  REQUIRE(run.status().reason == "its supervisor was killed");
  {
    const auto lock = FileLock::try_acquire(run.lock_file());
    REQUIRE(run.state() == RunState::running);
  }
  for (const RunState state : {RunState::stopped, RunState::failed}) {
    write_file_atomic(run.events_file(), attempt_line + ended_line(name_of(state)));
    REQUIRE(run.state() == state);
  }
  const RunStatus status = run.status();
  REQUIRE(status.attempt == 2);
  REQUIRE(status.reason == "why");
  REQUIRE(status.hint == "how");
  REQUIRE(status.exit_status == 1);
  REQUIRE(status.stderr_lines == std::vector<std::string>{"a", "b"});
}

TEST_CASE("a run is completed where its log ends so", "[run][run_folder]") {
  const TemporaryFolder runs;
  const RunFolder run = new_run(runs.path());
  tests::complete(run);
  REQUIRE(run.state() == RunState::completed);
  fs::remove(run.done_file());  // the supervisor was killed before it could write it
  REQUIRE(run.state() == RunState::completed);
}

TEST_CASE("a run whose log does not tell its end any more is damaged", "[run][run_folder]") {
  const TemporaryFolder runs;
  const RunFolder run = new_run(runs.path());
  const auto require_damaged = [&](const std::string& reason) {
    const RunStatus status = run.status();
    INFO(status.reason);
    REQUIRE(status.state == RunState::failed);
    REQUIRE(status.damaged);
    REQUIRE(contains(status.reason, reason));
    REQUIRE(contains(status.hint, "forge run train_x --force"));
  };
  tests::complete(run);
  const std::string log = read_file(run.events_file());
  const std::string missing = "events.jsonl' is damaged: the run was completed, and the end";
  SECTION("cut at a line") {
    write_file_atomic(run.events_file(), log.substr(0, log.find("{", 1)));
    require_damaged(missing);
  }
  SECTION("cut within a line") {
    write_file_atomic(run.events_file(), log.substr(0, log.size() - 9));
    require_damaged(missing);
  }
  SECTION("empty") {
    write_file_atomic(run.events_file(), "");
    require_damaged(missing);
  }
  SECTION("removed") {
    fs::remove(run.events_file());
    require_damaged(missing);
  }
  SECTION("of fewer steps than the config") {
    tests::complete(run, 2);
    require_damaged("it ends at step 2, and config.json asks for 3 steps");
  }
  SECTION("with a loss that cannot be") {
    write_file_atomic(run.events_file(), replaced(log, "\"eval_loss\":2.5", "\"eval_loss\":-5"));
    require_damaged("'eval_loss' is negative: -5");
  }
  SECTION("with another loss than its evaluation") {
    write_file_atomic(run.events_file(), evaluation_line(3, "2.5", "") + log);
    REQUIRE(run.state() == RunState::completed);
    write_file_atomic(run.events_file(), evaluation_line(2, "4.5", "") + log);
    REQUIRE(run.state() == RunState::completed);
    write_file_atomic(run.events_file(), evaluation_line(3, "4.5", "") + log);
    require_damaged("'finished' says that eval_loss is 2.5, and the evaluation of step 3 said 4.5");
    // That of an attempt that was given up is another one's.
    write_file_atomic(run.events_file(),
                      evaluation_line(3, "4.5", "") + evaluation_line(3, "2.5", "") + log);
    REQUIRE(run.state() == RunState::completed);
  }
  SECTION("with an evaluation whose rows are of another") {
    write_file_atomic(run.events_file(),
                      evaluation_line(3, "2.5", R"(,"row_losses":[9],"row_tokens":[8])") + log);
    require_damaged("row_losses of the evaluation of step 3 have the mean 9");
  }
  SECTION("of a config that cannot be read") {
    write_file_atomic(run.config_file(), "{");
    require_damaged("config.json' is damaged");
  }
}

TEST_CASE("a log that was cut keeps no run from its checkpoints", "[run][run_folder]") {
  const TemporaryFolder runs;
  const RunFolder run = new_run(runs.path());
  const fs::path first = tests::save_checkpoint(run.checkpoints(), 1);
  write_file_atomic(run.events_file(), attempt_line);
  const fs::path second = tests::save_checkpoint(run.checkpoints(), 2);
  weights::CheckpointState state;
  state.step = 2;
  weights::acknowledge_checkpoint(second, state);
  const FoundCheckpoint found = run.find_checkpoint();
  REQUIRE(found.folder == second.string());
  REQUIRE(found.recorded);
}

TEST_CASE("a checkpoint that cannot be read is not taken for a damaged one",
          "[run][run_folder][hostile]") {
  const TemporaryFolder runs;
  fs::permissions(runs.path(), fs::perms::all);
  const RunFolder run = new_run(runs.path());
  tests::save_checkpoint(run.checkpoints(), 1);
  const fs::path newest = tests::save_checkpoint(run.checkpoints(), 2);
  for (const auto& file : fs::recursive_directory_iterator(runs.path()))
    fs::permissions(file, fs::perms::all);
  const auto found = [&] {
    return tests::words_of_other_user([&] { return run.find_checkpoint().folder; });
  };
  CHECK(found() == newest.string());
  for (const char* name : {"manifest.json", "weights.safetensors"}) {
    fs::permissions(newest / name, fs::perms::none);
    const std::string said = found();
    CHECK(contains(said, "cannot be read: "));
    CHECK(contains(said, "Permission denied"));
    fs::permissions(newest / name, fs::perms::all);
  }
  fs::resize_file(newest / "weights.safetensors", 1);
  CHECK(contains(found(), "000000001"));
}

TEST_CASE("a run whose log cannot be read is not said to have failed",
          "[run][run_folder][hostile]") {
  const TemporaryFolder runs;
  fs::permissions(runs.path(), fs::perms::all);
  const RunFolder run = new_run(runs.path());
  tests::complete(run);
  for (const fs::path& file : {run.events_file(), run.config_file()}) {
    fs::permissions(file, fs::perms::none);
    const std::string said = tests::words_of_other_user([&] {
      const RunStatus status = run.status();
      return std::to_string(status.unreadable == EACCES) + (status.damaged ? " damaged " : " ") +
             error_of([&] { run.require_undamaged(status); });
    });
    fs::permissions(file, fs::perms::all);
    INFO(said);
    CHECK(contains(
        said,
        "1 error: run '" + run.id() + "' cannot be read: cannot read '" + file.string() + "'"));
    CHECK(run.status().unreadable == 0);
  }
}

TEST_CASE("checkpoints of a worker that got ahead of its supervisor have no record",
          "[run][run_folder]") {
  const TemporaryFolder runs;
  const RunFolder run = new_run(runs.path());
  tests::save_checkpoint(run.checkpoints(), 1);
  write_file_atomic(run.events_file(), attempt_line);
  REQUIRE_FALSE(run.find_checkpoint().recorded);  // the supervisor was killed before its line
  tests::save_checkpoint(run.checkpoints(), 2);   // or was suspended long before
  REQUIRE_FALSE(run.find_checkpoint().recorded);
}

TEST_CASE("a supervisor that gave up leaves its reason", "[run][run_folder]") {
  const TemporaryFolder runs;
  const RunFolder run = new_run(runs.path());
  write_file_atomic(run.events_file(), attempt_line);
  write_file_atomic(run.supervisor_log(),
                    "error: cannot write: No space left on device\nhint: x\n");
  REQUIRE(contains(run.status().reason, "No space left on device"));
}

TEST_CASE("rubbish in the events makes a failed run and no crash", "[run][run_folder]") {
  const TemporaryFolder runs;
  const RunFolder run = new_run(runs.path());
  for (const std::string rubbish :
       {"???\n",
        "{}\n",
        "[[[[\n",
        "{\"event\":\"ended\",\"time\":1,\"attempt\":1}\n",
        "{\"event\":\"ended\",\"time\":1,\"attempt\":1,\"status\":\"well\"}\n"}) {
    write_file_atomic(run.events_file(), rubbish);
    REQUIRE(run.state() == RunState::failed);
    REQUIRE(contains(run.status().reason, "is damaged"));
  }
}

TEST_CASE("the newest whole checkpoint is found", "[run][run_folder]") {
  const TemporaryFolder runs;
  const RunFolder run = new_run(runs.path());
  REQUIRE(run.newest_checkpoint().empty());
  const fs::path whole = tests::save_checkpoint(run.checkpoints(), 100);
  REQUIRE(run.newest_checkpoint() == whole.string());
  const fs::path damaged = tests::save_checkpoint(run.checkpoints(), 200);
  REQUIRE(run.newest_checkpoint() == damaged.string());
  write_file_atomic(damaged / "weights.safetensors", "not what was written");
  fs::create_directories(run.checkpoints() / "000000300");
  REQUIRE(run.newest_checkpoint() == whole.string());
}

TEST_CASE("a checkpoint that the events do not know of is taken only where there is no other",
          "[run][run_folder]") {
  const TemporaryFolder runs;
  const RunFolder run = new_run(runs.path());
  const fs::path recorded = tests::save_checkpoint(run.checkpoints(), 100);
  const fs::path ahead = tests::save_checkpoint(run.checkpoints(), 200);
  REQUIRE(run.newest_checkpoint() == ahead.string());
  EventLog log(run.events_file());
  log.append(worker::to_json(worker::CheckpointSaved{100, "checkpoints/000000100", 1, 0}), 1);
  // Only in a string: not an event.
  log.append({{"event", "attempt"}, {"host", R"("event":"checkpoint")"}}, 1);
  write_file_atomic(
      run.events_file(),
      read_file(run.events_file()) + R"({"attempt":1,"event":"checkpoint","step":200)");
  REQUIRE(recorded_checkpoints(run.events_file()) == std::map<int64_t, int>{{100, 1}});
  REQUIRE(run.newest_checkpoint() == recorded.string());
  write_file_atomic(recorded / "weights.safetensors", "not what was written");
  const FoundCheckpoint found = run.find_checkpoint();
  REQUIRE(found.folder == ahead.string());
  REQUIRE(found.damaged.size() == 1);
}

TEST_CASE("a run's record reads back and a damaged one names its file", "[run][run_folder]") {
  const TemporaryFolder runs;
  const RunFolder run = new_run(runs.path());
  const RunRecord record = run.record();
  REQUIRE(record.id == run.id());
  REQUIRE(record.config == "train_x");
  REQUIRE(record.project == "projects/canon");
  REQUIRE(record.revision == "0123456789ab");
  REQUIRE(run_key(record.identity) == record.key);
  REQUIRE(to_json(record_from_json(to_json(record))) == to_json(record));

  write_file_atomic(run.record_file(), "{\"id\":");
  REQUIRE(contains(error_of([&] { run.record(); }), "run.json: "));
  write_file_atomic(run.record_file(), "{}");
  REQUIRE(contains(error_of([&] { run.record(); }), "'id' is missing"));
}

TEST_CASE("a record or config that was changed is not that of the run",
          "[run][run_folder][hostile]") {
  const TemporaryFolder runs;
  const RunFolder run = new_run(runs.path());
  nlohmann::json config = run.config();
  config["name"] = "another name decides nothing";
  write_file_atomic(run.config_file(), config.dump());
  REQUIRE(run.config() == config);
  config["train"]["max_steps"] = 4;
  write_file_atomic(run.config_file(), config.dump());
  REQUIRE(contains(error_of([&] { run.config(); }), "train.max_steps was 3 and is 4"));

  nlohmann::json record = to_json(run.record());
  record["identity"]["experiment"]["train"]["max_steps"] = 4;
  write_file_atomic(run.record_file(), record.dump());
  REQUIRE(contains(error_of([&] { run.record(); }), "the file was changed"));
}

TEST_CASE("a folder that no checkpoint is named like is none", "[run][run_folder][hostile]") {
  const TemporaryFolder runs;
  const RunFolder run = new_run(runs.path());
  tests::save_checkpoint(run.checkpoints(), 3);
  for (const char* name : {"99999999999999999999999", "0000000000000000004", "12", "-00000001"})
    make_directories(run.checkpoints() / name);
  REQUIRE(run.newest_checkpoint() == (run.checkpoints() / "000000003").string());
  REQUIRE(weights::list_checkpoints(run.checkpoints()).size() == 1);
}

TEST_CASE("a folder in the place of the events makes a failed run and no crash",
          "[run][run_folder][hostile]") {
  const TemporaryFolder runs;
  const RunFolder run = new_run(runs.path());
  make_directories(run.events_file());
  REQUIRE(run.state() == RunState::failed);
  REQUIRE(contains(run.status().reason, "it is a folder, not a file"));
  REQUIRE(contains(error_of([&] { read_events(run.events_file()); }), "not a file"));
}

TEST_CASE("a run of a config whose name no config can have is damaged",
          "[run][run_folder][hostile]") {
  const TemporaryFolder runs;
  const RunFolder run = new_run(runs.path());
  nlohmann::json record = nlohmann::json::parse(read_file(run.record_file()));
  for (const char* name :
       {"-rf", "", "../../x", "/etc/x", "a//b", "a/../b", ".", "a/", "a\nb", "a\x1b[2Jb"}) {
    INFO(name);
    record["config"] = name;
    write_file_atomic(run.record_file(), record.dump());
    REQUIRE(contains(error_of([&] { run.record(); }), "no config can have the name '"));
  }
  record["config"] = "folder/train_x.y";
  write_file_atomic(run.record_file(), record.dump());
  REQUIRE(run.record().config == "folder/train_x.y");
}

TEST_CASE("the id of a run tells its config and key", "[run][run_folder]") {
  RunRecord record;
  record.config = "folder/train_x";
  record.key = "3f21";
  for (const char* id :
       {"folder_train_x-3f21", "folder_train_x-3f21-2", "folder_train_x-3f21-17"}) {
    record.id = id;
    CHECK(names_its_config(record));
  }
  for (const char* id : {"",
                         "train_x-3f21",
                         "folder_train_x-3f2",
                         "folder_train_x-3f21-",
                         "folder_train_x-3f21-a",
                         "folder_train_x-3f212"}) {
    record.id = id;
    CHECK_FALSE(names_its_config(record));
  }
}

TEST_CASE("notes and requests are not written to what is only linked here",
          "[run][run_folder][hostile]") {
  const TemporaryFolder runs, elsewhere;
  const RunFolder run = new_run(elsewhere.path());
  fs::create_directory_symlink(run.path(), runs / "link");
  const RunFolder link(runs / "link");
  for (const auto& action :
       std::vector<std::function<void()>>{[&] {
                                            write_annotations(link, {true, "", {}});
                                          },
                                          [&] { link.request_stop(StopRequest::immediately); },
                                          [&] { link.request_save(); }})
    CHECK(contains(error_of(action), "is a symbolic link"));
  REQUIRE_FALSE(fs::exists(run.annotations_file()));
  REQUIRE_FALSE(fs::exists(run.stop_file()));
  REQUIRE_FALSE(fs::exists(run.save_file()));
}

TEST_CASE("files of a run that are full of something else are refused at once",
          "[run][run_folder][hostile]") {
  const TemporaryFolder runs;
  RunFolder folder(runs / "a-1");
  runs.write("a-1/events.jsonl", "");
  fs::resize_file(folder.events_file(), uintmax_t{1} << 40);  // sparse
  REQUIRE(folder.state() == RunState::failed);
  REQUIRE(contains(error_of([&] { recorded_checkpoints(folder.events_file()); }),
                   "has a line of more than 64"));
  runs.write("a-1/config.json", std::string(1'000'000, '['));
  REQUIRE(contains(error_of([&] { folder.config(RunRecord{}); }), "nested more than 100 deep"));
  fs::resize_file(folder.config_file(), uintmax_t{1} << 40);
  REQUIRE(contains(error_of([&] { folder.config(RunRecord{}); }), "is too large"));
  runs.write("a-1/remarks.json", "{");
  const std::string remarks = error_of([&] { read_annotations(folder); });
  REQUIRE(contains(remarks, "it is not JSON"));
  REQUIRE_FALSE(contains(remarks, "json.exception"));
}

TEST_CASE("a run's lock is taken from nobody, and who only shares it is named", "[run][hostile]") {
  const tests::TemporaryFolder runs;
  const RunFolder run = tests::make_completed_run(runs.path(), {});
  std::optional<FileLock> held = run.try_lock();
  REQUIRE(held);
  CHECK(run.is_running());
  CHECK_FALSE(run.try_lock());
  held.reset();
  {
    const std::optional<FileLock> shared = FileLock::try_share(run.lock_file());
    REQUIRE(shared);
    CHECK_FALSE(run.is_running());
    const std::string said = tests::error_of([&] { run.try_lock(0.1); });
    CHECK(tests::contains(said, "is locked by another process, which does not run it"));
    CHECK(tests::contains(said, "fuser -v"));
  }
  CHECK(run.try_lock());
}

TEST_CASE("a run that was made when the path of a grammar counted is read as it is",
          "[run][run_folder]") {
  const TemporaryFolder runs;
  RunInputs inputs = tests::small_inputs();
  inputs.experiment["data"]["task"] = {{"grammar", "/a/g.json"}};
  const RunFolder folder = tests::new_run(runs.path(), inputs);
  nlohmann::json record = read_json_file(folder.record_file());
  record["identity"]["experiment"]["data"]["task"]["grammar"] = "/a/g.json";
  write_file_atomic(folder.record_file(), record.dump());
  CHECK_NOTHROW(folder.config(record_from_json(record)));
}

}  // namespace
}  // namespace forge::run

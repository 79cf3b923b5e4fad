// What marks a run of all that its steps were trained under: of its attempts, and of the run whose
// steps it took over.

#include <nlohmann/json.hpp>

#include "core/results/store/result_store.h"
#include "core/run/plan.h"
#include "core/run/runs_dir.h"
#include "tests/core/results/store/workplace.h"
#include "tests/support/catch.h"

namespace forge::store {
namespace {

/// Another attempt on another device by another number of processes.
void append_next_attempt(const run::RunFolder& folder,
                         int attempt,
                         const std::string& resume_from,
                         int64_t first_step,
                         const std::string& device = "GPU B") {
  const nlohmann::json line = {{"event", "attempt"},
                               {"attempt", attempt},
                               {"host", "atlas"},
                               {"recompute", "mlp"},
                               {"variables", {{"A", "1"}}},
                               {"resume_from", resume_from},
                               {"time", 1795168900}};
  append_line(folder, line.dump() + "\n");
  append_event(folder, worker::Hello{1, "libtorch", "0.2.0", 1}, attempt);
  worker::Environment environment;
  environment.device_type = "cpu";
  environment.device_name = device;
  environment.threads = 2;
  environment.libraries = {{"torch", "2.4"}};
  append_event(folder, environment, attempt);
  worker::Started started{4434176, first_step, 40, 1024};
  started.processes = 2;
  started.micro_batch_size = 4;
  append_event(folder, started, attempt);
}

/// A run of 30 steps that is marked in every way.
run::RunFolder make_marked_run(const Workplace& place) {
  Outcome outcome;
  outcome.busy_elsewhere = 0.4;
  outcome.shared_device = true;
  outcome.changed_inputs = {"train.tokens"};
  MadeRun run = made("base");
  run.device_name = "CPU A";
  return make_completed_run(place.runs, run, outcome);
}

RunSummary summary_of(Workplace& place, const run::RunFolder& folder) {
  place.store.sync(place.runs);
  return place.store.run(folder.id()).value();
}

void check_marks(const RunSummary& run) {
  CHECK(run.busy_elsewhere == 0.4);
  CHECK(run.shared_device == 1);
  CHECK(run.changed_inputs == "train.tokens");
}

/// A run of 40 steps that continues the other from a checkpoint that its attempt 1 saved.
run::RunFolder make_continued_run(const Workplace& place,
                                  const run::RunFolder& base,
                                  int64_t step = 30) {
  MadeRun run = made("longer");
  run.experiment.train.max_steps = 40;
  const run::RunFolder folder = make_unstarted_run(place.runs, run);
  const fs::path checkpoint = base.checkpoints() / "000000030";
  append_line(folder, run::copied_events({checkpoint, base.events_file(), step, 1, 10}));
  return folder;
}

TEST_CASE("a run that continues another takes over all that marks its steps", "[store]") {
  Workplace place;
  const run::RunFolder base = make_marked_run(place);
  const run::RunFolder folder = make_continued_run(place, base);
  const RunSummary waiting = summary_of(place, folder);
  check_marks(waiting);
  CHECK(waiting.status == run::RunState::not_started);
  CHECK(waiting.max_steps == 40);
  CHECK(waiting.step == 30);
  CHECK(waiting.attempts == 0);
  CHECK(waiting.kept_step == 0);
  CHECK(waiting.first_loss.empty());  // those that it took over are the other one's
  append_next_attempt(folder, 1, "a checkpoint", 30);
  const RunSummary run = summary_of(place, folder);
  check_marks(run);
  CHECK(run.processes == "1 and 2");
  CHECK(processes_text(run) == "1 and 2 processes");
  CHECK(run.micro_batch_size == 4);
  CHECK(run.device_name == "CPU A and GPU B");
  CHECK(run.backend_version == "0.1.0 and 0.2.0");
  CHECK(run.libraries == R"({"torch":"1.13.1 and 2.4"})");
  CHECK(run.attempts == 1);
  CHECK(run.failed_attempts == 0);
  CHECK_FALSE(run.exit_status);
  CHECK(run.metric("tokens_per_second") == 4250);
  // A run that continues this one takes them over, too.
  check_marks(summary_of(place, make_continued_run(place, folder)));
  CHECK(place.store.sync(place.runs).left_out.empty());
}

TEST_CASE("a run that is resumed keeps all that marks its steps", "[store]") {
  Workplace place;
  const run::RunFolder folder = make_marked_run(place);
  append_next_attempt(folder, 2, "a checkpoint", 30);
  const RunSummary resumed = summary_of(place, folder);
  check_marks(resumed);
  CHECK(resumed.processes == "1 and 2");
  CHECK(resumed.device_name == "CPU A and GPU B");
  append_next_attempt(folder, 3, "", 0);
  const RunSummary anew = summary_of(place, folder);
  CHECK_FALSE(anew.busy_elsewhere);
  CHECK(anew.shared_device == 0);
  CHECK(anew.changed_inputs.empty());
  CHECK(anew.processes == "2");
  CHECK(anew.device_name == "GPU B");
}

TEST_CASE("attempts behind the checkpoint that is continued mark nothing of it", "[store]") {
  Workplace place;
  const run::RunFolder base = make_failed_run(place.runs, made("base"), 30, "killed");
  append_next_attempt(base, 2, "a checkpoint", 30);
  const RunSummary run = summary_of(place, make_continued_run(place, base));
  CHECK(run.processes == "1");
  CHECK(run.device_name == "Test CPU");
}

TEST_CASE("evaluations that a base told anew count for the run that continues it", "[store]") {
  Workplace place;
  const run::RunFolder base = make_unstarted_run(place.runs, made("base"));
  for (const int attempt : {1, 2}) {
    append_next_attempt(base, attempt, "", 0);
    append_event(base, worker::Evaluation{20, 2.5 - 0.1 * attempt, 100, 1}, attempt);
  }
  const run::RunFolder longer = make_unstarted_run(place.runs, made("longer"));
  write_file_atomic(longer.events_file(), run::copied_events({"", base.events_file(), 20, 2}));
  CHECK(summary_of(place, base).redone_losses == 1);
  CHECK(summary_of(place, longer).redone_losses == 1);
}

TEST_CASE("the load is known of an attempt whose supervisor was killed", "[store]") {
  Workplace place;
  const FileLock lock = make_running_run(place.runs, made("killed"), 20);
  const run::RunFolder folder = run::list_runs(place.runs).at(0);
  nlohmann::json saved =
      worker::to_json(worker::CheckpointSaved{20, "checkpoints/000000020", 1000});
  saved.update(
      {{"attempt", 1}, {"time", 1795168900}, {"busy_elsewhere", 0.3}, {"stopped_seconds", 7.5}});
  append_line(folder, saved.dump() + "\n");
  CHECK(summary_of(place, folder).busy_elsewhere == 0.3);
  CHECK(summary_of(place, folder).stopped_seconds == 7.5);
  const RunSummary continued = summary_of(place, make_continued_run(place, folder));
  CHECK(continued.busy_elsewhere == 0.3);
  CHECK(continued.stopped_seconds == 7.5);
}

}  // namespace
}  // namespace forge::store

// What a store knows of the runs of a folder, and when it reads them again.

#include "core/results/store/result_store.h"

#include <filesystem>

#include "core/base/files.h"
#include "core/run/queue/queue.h"
#include "tests/core/results/store/store_dump.h"
#include "tests/core/results/store/workplace.h"
#include "tests/support/catch.h"

namespace forge::store {
namespace {

TEST_CASE("a completed run is taken up with everything its folder says", "[store]") {
  Workplace place;
  MadeRun run = made("train_canon_ac");
  run.experiment.name = "Canon-AC";
  run.experiment.description = "Canon at A and C";
  make_completed_run(place.runs, run, {3.125, 4321.5, 1234567});
  const SyncReport report = place.store.sync(place.runs);
  REQUIRE(report.added == 1);
  REQUIRE(report.warnings.empty());

  const RunSummary summary = place.store.run(run.id).value();
  REQUIRE(summary.config == "train_canon_ac");
  REQUIRE(summary.project == "projects/canon");
  REQUIRE(summary.name == "Canon-AC");
  REQUIRE(summary.description == "Canon at A and C");
  REQUIRE(summary.command == "forge run train_canon_ac");
  REQUIRE(summary.created == "2026-11-20T10:00:00.000Z");
  REQUIRE(summary.updated == "2026-11-20T10:01:15.000Z");
  REQUIRE(summary.first_loss == "2026-11-20T10:00:00.000Z");
  REQUIRE(summary.profile == "quick");
  REQUIRE(summary.backend == "libtorch");
  REQUIRE(summary.backend_version == "0.1.0");
  REQUIRE(summary.device_type == "cpu");
  REQUIRE(summary.device_name == "Test CPU");
  REQUIRE(summary.threads == 2);
  REQUIRE(summary.seed == 42);
  REQUIRE(summary.data_fingerprint == "d1d1d1d1d1d1");
  REQUIRE(summary.tokenizer_fingerprint == "e2e2e2e2e2e2");
  REQUIRE(summary.evaluation == "64 rows of 128 tokens");
  REQUIRE(summary.status == run::RunState::completed);
  REQUIRE(summary.attempts == 1);
  REQUIRE(summary.step == 30);
  REQUIRE(summary.max_steps == 30);
  REQUIRE(summary.tokens == 30 * 1024);
  REQUIRE(summary.parameters == 4434176);
  REQUIRE(summary.eval_step == 30);
  REQUIRE(summary.metric("eval_loss") == 3.125);
  REQUIRE(summary.metric("train_loss") == 3.5);
  REQUIRE(summary.metric("tokens_per_second") == 4321.5);
  REQUIRE(summary.metric("wall_seconds") == 75.0);
  REQUIRE(summary.metric("peak_memory_bytes") == 1234567);
  REQUIRE(summary.exit_status == 0);
  REQUIRE(summary.failure_reason.empty());

  REQUIRE(place.store.config(run.id)["train"]["eval_rows"] == 64);
  REQUIRE(place.store.configured_runs()[0].environment["device_name"] == "Test CPU");
  const auto metrics = place.store.train_metrics(run.id);
  REQUIRE(metrics.size() == 3);
  REQUIRE(metrics[1].step == 20);
  REQUIRE(metrics[1].loss == 6.8);
  REQUIRE(metrics[1].elapsed_seconds == 5.0);
  const auto evaluations = place.store.evaluations(run.id);
  REQUIRE(evaluations.size() == 1);
  REQUIRE(evaluations[0].loss == 3.125);
  REQUIRE(evaluations[0].tokens == 8192);
}

TEST_CASE("states of runs come from their folders", "[store]") {
  Workplace place;
  make_queued_run(place.runs, made("queued"));
  make_unstarted_run(place.runs, made("unstarted"));
  make_failed_run(place.runs, made("failed"), 20, "worker killed by SIGKILL");
  make_stopped_run(place.runs, made("stopped"), 10);
  const FileLock lock = make_running_run(place.runs, made("running"), 10);
  place.store.sync(place.runs);

  REQUIRE(place.store.run("queued-20")->status == run::RunState::queued);
  REQUIRE(place.store.run("unstarted-20")->status == run::RunState::not_started);
  queue::Queue(place.runs).remove("queued-20");
  place.store.sync(place.runs);
  REQUIRE(place.store.run("queued-20")->status == run::RunState::not_started);
  const RunSummary failed = place.store.run("failed-20").value();
  REQUIRE(failed.status == run::RunState::failed);
  REQUIRE(failed.failure_reason == "worker killed by SIGKILL");
  REQUIRE(failed.exit_status == 1);
  REQUIRE(place.store.run("stopped-20")->status == run::RunState::stopped);
  const RunSummary running = place.store.run("running-20").value();
  REQUIRE(running.status == run::RunState::running);
  REQUIRE(running.step == 10);
  REQUIRE(progress_percent(running) == 33);
  REQUIRE_FALSE(running.metric("eval_loss").has_value());
}

TEST_CASE("a run whose supervisor dies becomes failed though no file changes", "[store]") {
  Workplace place;
  {
    const FileLock lock = make_running_run(place.runs, made("x"), 10);
    place.store.sync(place.runs);
    REQUIRE(place.store.run("x-20")->status == run::RunState::running);
  }
  REQUIRE(place.store.sync(place.runs).updated == 1);
  REQUIRE(place.store.run("x-20")->status == run::RunState::failed);
  REQUIRE(contains(place.store.run("x-20")->failure_reason, "supervisor was killed"));
  REQUIRE(place.store.sync(place.runs).updated == 0);
}

TEST_CASE("only what is new in an event log is read", "[store]") {
  Workplace place;
  const MadeRun run = made("x");
  const FileLock lock = make_running_run(place.runs, run, 10);
  const run::RunFolder folder(place.runs / run.id);
  place.store.sync(place.runs);
  REQUIRE(place.store.train_metrics(run.id).size() == 1);

  append_event(folder, metrics_at(20));
  append_line(folder, R"({"event":"train","step":30,)");  // still being written
  REQUIRE(place.store.sync(place.runs).updated == 1);
  REQUIRE(place.store.train_metrics(run.id).size() == 2);
  REQUIRE(place.store.run(run.id)->step == 20);

  append_line(folder,
              R"("time":1,"attempt":1,"tokens":1,"loss":1.5,"learning_rate":0,"gradient_norm":0,)"
              R"("tokens_per_second":1,"elapsed_seconds":1})"
              "\n");
  const SyncReport report = place.store.sync(place.runs);
  REQUIRE(report.warnings.empty());
  REQUIRE(place.store.train_metrics(run.id).size() == 3);
  REQUIRE(place.store.train_metrics(run.id)[2].loss == 1.5);
}

TEST_CASE("a resumed run forgets the steps that it repeats", "[store]") {
  Workplace place;
  const MadeRun run = made("x");
  const run::RunFolder folder = make_failed_run(place.runs, run, 30, "worker killed by SIGBUS");
  append_event(folder, worker::Evaluation{30, 3.0, 100, 1});
  place.store.sync(place.runs);
  REQUIRE(place.store.train_metrics(run.id).size() == 3);

  const FileLock lock = FileLock::acquire(folder.lock_file());
  append_attempt(folder, 2);
  append_event(folder, worker::Started{4434176, 10, 30, 1024}, 2);
  worker::TrainMetrics repeated = metrics_at(20);
  repeated.loss = 2.5;
  append_event(folder, repeated, 2);
  place.store.sync(place.runs);
  const auto metrics = place.store.train_metrics(run.id);
  REQUIRE(metrics.size() == 2);
  REQUIRE(metrics[1].loss == 2.5);
  REQUIRE(place.store.evaluations(run.id).empty());
  const RunSummary summary = place.store.run(run.id).value();
  REQUIRE(summary.attempts == 2);
  REQUIRE(summary.failed_attempts == 1);
  REQUIRE(summary.resumptions == 1);
  REQUIRE(summary.lost_windows == 2);
  REQUIRE(summary.redone_losses == 1);
  REQUIRE(summary.status == run::RunState::running);
  REQUIRE(summary.failure_reason.empty());
  REQUIRE_FALSE(summary.exit_status.has_value());
}

TEST_CASE("a run is begun by the attempt that told its first loss", "[store]") {
  Workplace place;
  MadeRun run = made("x");
  run.begun = "2026-11-21T10:00:00.000Z";
  const auto begun = [&] {
    place.store.sync(place.runs);
    return place.store.run(run.id).value().begun;
  };
  const run::RunFolder folder = make_unstarted_run(place.runs, run);
  CHECK(begun().empty());
  append_attempt(folder, 1, "", time_of_day(21));
  CHECK(begun() == run.begun);
  append_attempt(folder, 2, "", time_of_day(22));  // the first one ended before it told any
  CHECK(begun() == "2026-11-22T10:00:00.000Z");
  append_event(folder, worker::Started{4434176, 0, 30, 1024}, 2);
  append_event(folder, metrics_at(10), 2);
  append_attempt(folder, 3, "", time_of_day(23));
  CHECK(begun() == "2026-11-22T10:00:00.000Z");
}

TEST_CASE("a run is continued whose first steps another one trained", "[store]") {
  Workplace place;
  const MadeRun run = made("x");
  const auto continued = [&] {
    place.store.sync(place.runs);
    return place.store.run(run.id).value().continued;
  };
  const run::RunFolder folder = make_unstarted_run(place.runs, run);
  append_event(folder, metrics_at(10), 0);  // taken over
  append_attempt(folder, 1, "checkpoints/000000010", time_of_day(21));
  append_event(folder, metrics_at(20), 1);
  CHECK(continued() == 1);
  append_attempt(folder, 2, "", time_of_day(22));  // from the start
  append_event(folder, metrics_at(10), 2);
  CHECK(continued() == 0);
}

TEST_CASE("an evaluation that an earlier attempt told with another loss is counted", "[store]") {
  Workplace place;
  const MadeRun run = made("x");
  const run::RunFolder folder = make_failed_run(place.runs, run, 30, "worker killed by SIGBUS");
  append_event(folder, worker::Evaluation{20, 2.0, 100, 1});
  append_event(folder, worker::Evaluation{30, 3.0, 100, 1});
  const FileLock lock = FileLock::acquire(folder.lock_file());
  const auto redone_by = [&](int attempt, double at_20, double at_30) {
    append_attempt(folder, attempt);
    append_event(folder, worker::Started{4434176, 10, 30, 1024}, attempt);
    append_event(folder, worker::Evaluation{20, at_20, 100, 1}, attempt);
    append_event(folder, worker::Evaluation{30, at_30, 100, 1}, attempt);
    place.store.sync(place.runs);
    return place.store.run(run.id).value().redone_losses;
  };
  CHECK(redone_by(2, 2.0, 3.0) == 0);  // as a device that computes the same bits tells it
  CHECK(redone_by(3, 2.0, 2.9) == 1);
  CHECK(redone_by(4, 1.9, 2.8) == 2);
  CHECK(redone_by(5, 1.9, 3.0) == 1);  // the first loss counts
}

TEST_CASE("training that an attempt told and lost is counted, and what it told otherwise",
          "[store]") {
  Workplace place;
  const MadeRun run = made("x");
  const run::RunFolder folder = make_unstarted_run(place.runs, run);
  const FileLock lock = FileLock::acquire(folder.lock_file());
  const auto train =
      [&](int attempt, int64_t from, const std::vector<std::pair<int, double>>& told) {
        append_attempt(folder, attempt);
        append_event(folder, worker::Started{4434176, from, 60, 1024}, attempt);
        for (const auto& [step, loss] : told) {
          worker::TrainMetrics metrics = metrics_at(step);
          metrics.loss = loss;
          append_event(folder, metrics, attempt);
        }
        place.store.sync(place.runs);
        return place.store.run(run.id).value();
      };
  const auto counts = [](const RunSummary& summary) {
    return std::vector<int64_t>{summary.resumptions, summary.lost_windows, summary.redone_losses};
  };
  using Counts = std::vector<int64_t>;
  CHECK(counts(train(1, 0, {{10, 4.0}, {20, 3.5}, {30, 3.0}})) == Counts{0, 0, 0});
  CHECK(counts(train(2, 0, {{10, 4.0}, {20, 3.5}})) == Counts{1, 3, 0});  // the same bits
  CHECK(counts(train(3, 0, {{10, 4.0}, {20, 3.4}, {30, 2.9}, {40, 2.5}})) == Counts{2, 3, 2});
  // The window that ends with 40 began within the checkpoint at 35, or does so now.
  CHECK(counts(train(4, 35, {{40, 2.6}, {50, 2.0}})) == Counts{3, 4, 2});
  CHECK(counts(train(5, 40, {{50, 2.0}})) == Counts{4, 5, 2});
}

/// The run as the store knows it, and as one that reads all of its log at once does.
RunSummary synced(Workplace& place, const std::string& run_id) {
  place.store.sync(place.runs);
  const std::filesystem::path anew = place.folder / "anew.sqlite";
  remove_tree(anew);
  ResultStore(anew).sync(place.runs);
  REQUIRE(dump_store(anew) == dump_store(place.database));
  return place.store.run(run_id).value();
}

TEST_CASE("a run that went back to its start has the losses of no lost attempt", "[store]") {
  Workplace place;
  const MadeRun run = made("x");
  const run::RunFolder folder = make_failed_run(place.runs, run, 30, "worker killed by SIGKILL");
  append_event(folder, worker::Evaluation{30, 3.0, 100, 1});
  const bool synced_between = GENERATE(true, false);
  if (synced_between) place.store.sync(place.runs);
  append_attempt(folder, 2);
  append_event(folder, worker::Started{4434176, 0, 30, 1024}, 2);
  worker::Finished finished;
  finished.step = 5;
  append_event(folder, finished, 2);
  append_ended(folder, "stopped");
  const RunSummary summary = synced(place, run.id);
  CHECK(summary.step == 5);
  CHECK_FALSE(summary.eval_step.has_value());
  for (const char* name : {"eval_loss", "train_loss", "tokens_per_second"}) {
    CAPTURE(name);
    CHECK_FALSE(summary.metric(name).has_value());
  }
}

TEST_CASE("a run that went back has the newest values that its weights have passed", "[store]") {
  Workplace place;
  const MadeRun run = made("x");
  const run::RunFolder folder = make_failed_run(place.runs, run, 20, "worker killed by SIGKILL");
  append_attempt(folder, 2);
  append_event(folder, worker::Started{4434176, 0, 60, 1024}, 2);
  worker::TrainMetrics slow = metrics_at(20);
  slow.tokens_per_second = 0;  // not measured
  append_event(folder, metrics_at(10), 2);
  worker::Evaluation kept{10, 4.0, 100, 1}, later{40, 3.0, 100, 1};
  kept.validation_loss = 4.1;
  later.validation_loss = 3.1;
  append_event(folder, kept, 2);
  append_event(folder, slow, 2);
  append_event(folder, metrics_at(30), 2);
  append_event(folder, later, 2);
  worker::Finished finished;
  finished.step = 40;
  finished.peak_memory_bytes = 1000;
  append_event(folder, finished, 2);
  append_ended(folder, "stopped");
  CHECK(synced(place, run.id).metric("validation_loss") == 3.1);
  CHECK(place.store.run(run.id)->metric("peak_memory_bytes") == 1000);

  append_attempt(folder, 3);
  append_event(folder, worker::Started{4434176, 25, 60, 1024}, 3);
  const RunSummary summary = synced(place, run.id);
  CHECK(summary.step == 25);
  CHECK(summary.eval_step == 10);
  CHECK(summary.metric("eval_loss") == 4.0);
  CHECK(summary.metric("train_loss") == slow.loss);
  CHECK(summary.metric("wall_seconds") == slow.elapsed_seconds);
  CHECK(summary.metric("tokens_per_second") == metrics_at(10).tokens_per_second);
  CHECK(summary.metric("validation_loss") == 4.1);
  CHECK_FALSE(summary.metric("peak_memory_bytes").has_value());
}

TEST_CASE("a run that was killed has the last values of its newest checkpoint", "[store]") {
  Workplace place;
  const MadeRun run = made("x");
  const run::RunFolder folder = make_failed_run(place.runs, run, 20, "worker killed by SIGKILL");
  append_attempt(folder, 2);
  append_event(folder, worker::Started{4434176, 0, 60, 1024}, 2);
  append_event(folder, metrics_at(10), 2);
  append_event(folder, worker::Evaluation{10, 4.0, 100, 1}, 2);
  append_event(folder, worker::CheckpointSaved{12, "checkpoints/000000012", 1000}, 2);
  append_event(folder, metrics_at(20), 2);
  append_event(folder, worker::Evaluation{20, 3.0, 100, 1}, 2);
  const bool has_end = GENERATE(false, true);  // without one its supervisor was killed
  if (has_end) append_ended(folder, "failed");
  const RunSummary summary = synced(place, run.id);
  CHECK(summary.status == run::RunState::failed);
  CHECK(summary.step == 20);
  CHECK(summary.kept_step == 12);
  CHECK(summary.eval_step == 10);
  CHECK(summary.metric("eval_loss") == 4.0);
  CHECK(summary.metric("train_loss") == metrics_at(10).loss);
  CHECK(place.store.train_metrics(run.id).back().step == 20);  // the curve tells what it came to
  append_attempt(folder, 3);
  append_event(folder, worker::Started{4434176, 12, 60, 1024}, 3);
  CHECK(synced(place, run.id).metrics == summary.metrics);
}

TEST_CASE("a run that goes on where it was stopped keeps what it had", "[store]") {
  Workplace place;
  const MadeRun run = made("x");
  const run::RunFolder folder = make_stopped_run(place.runs, run, 20);
  place.store.sync(place.runs);
  const RunSummary stopped = place.store.run(run.id).value();
  append_attempt(folder, 2);
  append_event(folder, worker::Started{4434176, 20, 60, 1024}, 2);
  CHECK(synced(place, run.id).metrics == stopped.metrics);
}

TEST_CASE("what a run ran on is that of all attempts that its weights come from", "[store]") {
  Workplace place;
  const MadeRun run = made("x");
  const run::RunFolder folder = make_failed_run(place.runs, run, 30, "worker killed by SIGBUS");
  const auto attempt = [&](int number, const char* rest, const char* device, const char* torch) {
    append_line(folder,
                R"({"event":"attempt","time":1764000000,"attempt":)" + std::to_string(number) +
                    rest + "}\n");
    append_event(folder, worker::Hello{1, "libtorch", "0.1.0", 1}, number);
    worker::Environment environment;
    environment.device_type = "cpu";
    environment.device_name = device;
    environment.libraries = {{"torch", torch}, {"simd", "avx512"}, {"cxx", torch}};
    append_event(folder, environment, number);
    place.store.sync(place.runs);
    return place.store.run(run.id).value();
  };
  RunSummary summary = attempt(
      2, R"(,"recompute":"none","variables":{"DNNL_MAX_CPU_ISA":"SSE41"})", "Xeon", "1.13.0");
  CHECK(summary.device_name == "Xeon");  // from its start
  CHECK(summary.variables == "DNNL_MAX_CPU_ISA=SSE41");
  CHECK(summary.recompute == "none");
  for (const int number : {3, 4}) {
    summary = attempt(number,
                      R"(,"resume_from":"checkpoints/1","recompute":"blocks","variables":{})",
                      "EPYC",
                      "2.5.1");
    CHECK(summary.device_name == "Xeon and EPYC");
    CHECK(summary.backend_version == "0.1.0");
    CHECK(summary.variables == "DNNL_MAX_CPU_ISA=SSE41 and no variables");
    CHECK(summary.libraries == R"({"simd":"avx512","torch":"1.13.0 and 2.5.1"})");
    CHECK(summary.recompute == "none and blocks");
  }
  summary = attempt(5, R"(,"recompute":"blocks","variables":{})", "EPYC", "2.5.1");
  CHECK(summary.device_name == "EPYC");
  CHECK(summary.variables == no_variables);
  CHECK(summary.libraries == R"({"simd":"avx512","torch":"2.5.1"})");
  CHECK(summary.recompute == "blocks");
}

TEST_CASE("a run is one that diverged until another attempt of it ends", "[store]") {
  Workplace place;
  const run::RunFolder folder = make_diverged_run(place.runs, made("x"), 10);
  make_failed_run(place.runs, made("y"), 10, "out of memory");
  place.store.sync(place.runs);
  CHECK(place.store.run("x-20")->diverged == 1);
  CHECK(place.store.run("x-20")->status == run::RunState::failed);
  CHECK(place.store.run("y-20")->diverged == 0);
  append_attempt(folder, 2);
  append_ended(folder, "failed", "out of memory");
  place.store.sync(place.runs);
  CHECK(place.store.run("x-20")->diverged == 0);
}

TEST_CASE("what a worker reports of its own accord stays in the events alone", "[store]") {
  Workplace place;
  const run::RunFolder folder = make_queued_run(place.runs, made("x"));
  append_event(folder, worker::Result{{{"accuracy", 0.5}}});
  const SyncReport report = place.store.sync(place.runs);
  REQUIRE(report.added == 1);
  REQUIRE(report.warnings.empty());
}

TEST_CASE("a run whose folder is gone is gone with all its rows", "[store]") {
  Workplace place;
  make_completed_run(place.runs, made("x"));
  make_completed_run(place.runs, made("y"));
  place.store.sync(place.runs);
  remove_tree(place.runs / "x-20");
  REQUIRE(place.store.sync(place.runs).removed == 1);
  REQUIRE(place.store.runs().size() == 1);
  REQUIRE_FALSE(contains(dump_store(place.database), "x-20"));
  // In tables that the dump does not know of, too.
  const SQLite::Database database(place.database.string(), SQLite::OPEN_READONLY);
  SQLite::Statement dangling(database, "PRAGMA foreign_key_check");
  REQUIRE_FALSE(dangling.executeStep());
}

TEST_CASE("a runs folder that is gone leaves an empty store", "[store]") {
  Workplace place;
  make_completed_run(place.runs, made("x"));
  place.store.sync(place.runs);
  remove_tree(place.runs);
  REQUIRE(place.store.sync(place.runs).removed == 1);
  REQUIRE(place.store.runs().empty());
}

TEST_CASE("of the runs that a query selects alone the configs are read", "[store]") {
  Workplace place;
  make_completed_run(place.runs, made("a"));
  make_completed_run(place.runs, made("b"));
  place.store.sync(place.runs);
  SQLite::Database(place.database.string(), SQLite::OPEN_READWRITE)
      .exec("DELETE FROM configs WHERE run_id = 'b-20'");
  RunQuery query;
  query.patterns = {"a*"};
  query.conditions = {"status=completed"};
  query.order = {"-eval_loss"};
  REQUIRE(names_columns_only(query));
  const auto chosen = place.store.with_configs(select(place.store.runs(), query));
  REQUIRE(chosen.size() == 1);
  REQUIRE(chosen[0].config.at("train").at("eval_rows") == 64);
  REQUIRE(contains(error_of([&] { place.store.configured_runs(); }), "is damaged"));
}

TEST_CASE("a run that was removed since it was found is no damage", "[store]") {
  Workplace place;
  make_completed_run(place.runs, made("a"));
  make_completed_run(place.runs, made("b"));
  place.store.sync(place.runs);
  const std::vector<RunSummary> found = place.store.runs();
  remove_tree(place.runs / "b-20");
  ResultStore(place.database).sync(place.runs);
  const std::vector<ConfiguredRun> there = place.store.with_configs(found);
  REQUIRE(there.size() == 1);
  CHECK(there[0].summary.id == "a-20");
}

TEST_CASE("a store brings back no runs folder that was moved away", "[store]") {
  const TemporaryFolder folder;
  const fs::path runs = folder / "runs";
  make_completed_run(runs, made("x"));
  ResultStore store(runs / "forge.sqlite");
  store.sync(runs);
  rename_path(runs, folder / "moved");
  CHECK(contains(error_of([&] { store.sync(runs); }), "is not there any more"));
  CHECK(contains(error_of([&] { ResultStore(runs / "forge.sqlite"); }), "is not there any more"));
  CHECK_FALSE(fs::exists(runs));
}

TEST_CASE("a run folder made anew under the same name is read anew", "[store]") {
  Workplace place;
  make_completed_run(place.runs, made("x"), {3.5, 4000, 1000});
  place.store.sync(place.runs);
  remove_tree(place.runs / "x-20");
  MadeRun again = made("x");
  again.experiment.name = "another name";
  make_failed_run(place.runs, again, 10, "no");
  place.store.sync(place.runs);
  const RunSummary run = place.store.run("x-20").value();
  REQUIRE(run.name == "another name");
  REQUIRE_FALSE(run.metric("eval_loss").has_value());
  REQUIRE(place.store.train_metrics("x-20").size() == 1);
  REQUIRE(place.store.evaluations("x-20").empty());
}

TEST_CASE("reading many runs for the first time tells how far it is", "[store]") {
  Workplace place;
  for (int i = 0; i < 70; ++i) make_completed_run(place.runs, made("run_" + std::to_string(i)));
  std::vector<size_t> done;
  SyncWatch watch;
  watch.progress = [&](size_t read, size_t all) {
    CHECK(all == 70);
    done.push_back(read);
  };
  const SyncReport report = place.store.sync(place.runs, watch);
  CHECK(report.added == 70);
  REQUIRE(done.size() > 1);
  CHECK(std::is_sorted(done.begin(), done.end()));
  CHECK(done.back() == 70);
  watch.progress = [](size_t, size_t) { FAIL("nothing is left to be read"); };
  place.store.sync(place.runs, watch);
}

TEST_CASE("nothing is written where nothing has changed", "[store]") {
  Workplace place;
  make_completed_run(place.runs, made("x"));
  make_failed_run(place.runs, made("y"), 10, "no");
  place.store.sync(place.runs);
  SQLite::Database other(place.database.string(), SQLite::OPEN_READWRITE);
  const auto data_version = [&] { return other.execAndGet("PRAGMA data_version").getInt(); };
  const int before = data_version();
  const SyncReport report = place.store.sync(place.runs);
  REQUIRE(report.added + report.updated + report.removed == 0);
  REQUIRE(data_version() == before);
}

TEST_CASE("runs are found by config and project and profile and status", "[store]") {
  Workplace place;
  make_completed_run(place.runs, made("a", "2026-11-01T10:00:00.000Z"));
  make_completed_run(place.runs, made("a", "2026-11-03T10:00:00.000Z"));
  make_failed_run(place.runs, made("a", "2026-11-05T10:00:00.000Z"), 10, "no");
  MadeRun full = made("b", "2026-11-02T10:00:00.000Z");
  full.experiment.profile = "full";
  full.project = "projects/other";
  make_completed_run(place.runs, full);
  place.store.sync(place.runs);

  const auto ids = [&](const RunFilter& filter) {
    std::string text;
    for (const RunSummary& run : place.store.runs(filter)) text += run.id + " ";
    return text;
  };
  REQUIRE(ids({}) == "a-05 a-03 b-02 a-01 ");
  REQUIRE(ids({{"a"}, "", "", {}}) == "a-05 a-03 a-01 ");
  REQUIRE(ids({{"a", "b"}, "", "", run::RunState::completed}) == "a-03 b-02 a-01 ");
  REQUIRE(ids({{}, "projects/other", "", {}}) == "b-02 ");
  REQUIRE(ids({{}, "", "full", {}}) == "b-02 ");
  REQUIRE(ids({{"a' OR 1 --"}, "", "", {}}).empty());

  REQUIRE(place.store.configured_runs({{"b"}, "", "", {}})[0].config["profile"] == "full");
}

TEST_CASE("a store that cannot be made names its path", "[store]") {
  TemporaryFolder folder;
  folder.write("file", "");
  const std::string error = error_of([&] { ResultStore(folder / "file" / "forge.sqlite"); });
  REQUIRE(contains(error, (folder / "file").string()));
}

}  // namespace
}  // namespace forge::store

#include "core/results/store/result_store.h"

#include "core/results/store/compare_store.h"

#include <unistd.h>
#include <algorithm>
#include <fstream>
#include <future>

#include "core/base/files.h"
#include "core/base/text.h"
#include "core/run/host.h"
#include "core/run/queue/queue.h"
#include "tests/core/results/store/store_dump.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/fake_runs.h"
#include "tests/support/other_user.h"
#include "tests/support/support.h"

namespace forge::store {
namespace {

using namespace tests;

struct Workplace {
  TemporaryFolder folder;
  std::filesystem::path runs = folder / "runs";
  std::filesystem::path database = folder / "forge.sqlite";
  ResultStore store{database};

  Workplace() { make_directories(runs); }
};

MadeRun made(const std::string& config, const std::string& created = "2026-11-20T10:00:00.000Z") {
  MadeRun run;
  run.config = config;
  run.id = config + "-" + created.substr(8, 2);
  run.created = created;
  return run;
}

TEST_CASE("who waits for another writer of the store is told for whom", "[store]") {
  Workplace place;
  make_completed_run(place.runs, made("llama"));
  std::optional<FileLock> other = FileLock::acquire(place.database.string() + ".writers");
  other->sign("node3");
  SyncWatch watch;
  watch.patience = std::chrono::milliseconds(0);
  std::string reason;
  watch.waiting = [&](const std::string& text) {
    reason = text;
    other.reset();
  };
  REQUIRE(place.store.sync(place.runs, watch).added == 1);
  CHECK(contains(
      reason,
      "forge.sqlite': process " + std::to_string(::getpid()) + " on node3 is writing to it"));
  // That writer has left its own name for those who wait next.
  other = FileLock::acquire(place.database.string() + ".writers");
  CHECK(FileLock::holder(place.database.string() + ".writers") ==
        "process " + std::to_string(::getpid()) + " on " + run::host_name());
}

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

TEST_CASE("damaged lines are skipped with a warning", "[store]") {
  Workplace place;
  const MadeRun run = made("x");
  const run::RunFolder folder = make_queued_run(place.runs, run);
  append_attempt(folder, 1);
  const auto offset = std::filesystem::file_size(folder.events_file());
  append_line(folder, "Segmentation fault\n");
  append_line(folder,
              R"({"event":"train","step":"ten","time":1,"attempt":1})"
              "\n");
  append_line(folder,
              R"({"event":"telepathy","time":1,"attempt":1})"
              "\n");
  append_line(folder, std::string("\0\xff\x01[[[[", 7) + "\n");
  append_line(folder, std::string(200'000, '[') + "\n");
  append_event(folder, metrics_at(10));
  const SyncReport report = place.store.sync(place.runs);
  REQUIRE(report.warnings.size() == 5);
  REQUIRE(contains(report.warnings[0], "byte " + std::to_string(offset)));
  REQUIRE(contains(report.warnings[0], folder.events_file().string()));
  REQUIRE(place.store.train_metrics(run.id).size() == 1);
  REQUIRE(place.store.sync(place.runs).warnings.empty());  // each object says it once
}

TEST_CASE("damage is told as long as it is there", "[store][hostile]") {
  Workplace place;
  const run::RunFolder folder = make_completed_run(place.runs, made("x"));
  const std::string whole = read_file(folder.events_file());
  write_file_atomic(folder.events_file(), "rubbish\n" + whole);
  write_file_atomic(folder.annotations_file(), "{");
  write_file_atomic(folder.environment_file(), "[]");
  const auto warnings = [&] {
    return join(ResultStore(place.database).sync(place.runs).warnings, "\n");
  };
  for (int look = 0; look < 2; ++look) {
    const std::string told = warnings();
    CHECK(contains(told, "events.jsonl', byte 0: "));
    CHECK(contains(told, "remarks.json"));
    CHECK(contains(told, "what the run ran on is unknown"));
  }
  write_file_atomic(folder.annotations_file(), "{}");
  CHECK_FALSE(contains(warnings(), "remarks.json"));
  write_file_atomic(folder.environment_file(), "{}");
  write_file_atomic(folder.events_file(), whole);
  CHECK(warnings().empty());
}

TEST_CASE("a log that is written anew in place is read anew", "[store][hostile]") {
  Workplace place;
  const run::RunFolder folder = make_completed_run(place.runs, made("x"));
  place.store.sync(place.runs);
  const std::string whole = read_file(folder.events_file());
  std::ofstream(folder.events_file()) << "rubbish\n" << whole;  // the same file, and longer
  const std::vector<std::string> warnings = place.store.sync(place.runs).warnings;
  REQUIRE(warnings.size() == 1);
  REQUIRE(contains(warnings[0], "events.jsonl', byte 0: "));
}

TEST_CASE("a log of rubbish is told in a few lines", "[store][hostile]") {
  Workplace place;
  const run::RunFolder folder = make_completed_run(place.runs, made("x"));
  std::string rubbish;
  for (int line = 0; line < 100; ++line) rubbish += "rubbish\n";
  write_file_atomic(folder.events_file(), rubbish + read_file(folder.events_file()));
  const std::vector<std::string> warnings = place.store.sync(place.runs).warnings;
  REQUIRE(warnings.size() == 21);
  REQUIRE(contains(warnings.back(), "has more such lines from byte 160 on"));
}

TEST_CASE("numbers beyond all bounds in an event do no harm", "[store]") {
  Workplace place;
  const run::RunFolder folder = make_queued_run(place.runs, made("x"));
  constexpr int64_t largest = int64_t{1} << 53;
  append_event(folder, worker::Started{1, largest, largest, largest});
  append_line(folder,
              R"({"event":"attempt","attempt":1,"time":1e300})"
              "\n");
  append_line(folder,
              R"({"event":"ended","attempt":1,"exit_status":18446744073709551615,"time":-5})"
              "\n");
  place.store.sync(place.runs);
  REQUIRE(place.store.run("x-20")->tokens == INT64_MAX);
  REQUIRE(progress_percent(*place.store.run("x-20")) == 100);
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
  REQUIRE(summary.status == run::RunState::running);
  REQUIRE(summary.failure_reason.empty());
  REQUIRE_FALSE(summary.exit_status.has_value());
}

TEST_CASE("the rows of the last evaluation are kept, and those that are no numbers are not",
          "[store]") {
  Workplace place;
  const MadeRun run = made("x");
  const run::RunFolder folder = make_failed_run(place.runs, run, 30, "worker killed by SIGBUS");
  worker::Evaluation evaluation{10, 4.5, 100, 1};
  append_event(folder, evaluation);
  place.store.sync(place.runs);
  REQUIRE(place.store.evaluation_rows(run.id).losses.empty());
  evaluation = {20, 3.875, 100, 1};
  evaluation.row_losses = {3.5, 4.25};
  evaluation.row_tokens = {50, 50};
  append_event(folder, evaluation);
  place.store.sync(place.runs);
  REQUIRE(place.store.evaluation_rows(run.id).losses == std::vector<double>{3.5, 4.25});
  REQUIRE(place.store.evaluation_rows(run.id).tokens == std::vector<int64_t>{50, 50});
  evaluation.row_losses = {NAN, 4.25};
  append_event(folder, evaluation);
  place.store.sync(place.runs);
  REQUIRE(place.store.evaluation_rows(run.id).losses.empty());
  evaluation.row_losses = {4.25};
  append_event(folder, evaluation);
  place.store.sync(place.runs);
  REQUIRE(place.store.evaluation_rows(run.id).losses.empty());
  REQUIRE(place.store.evaluation_rows("nobody").losses.empty());
}

TEST_CASE("scores stand with their evaluation and the last ones with their run", "[store]") {
  Workplace place;
  const MadeRun run = made("x");
  const run::RunFolder folder = make_failed_run(place.runs, run, 30, "worker killed by SIGBUS");
  append_event(folder,
               worker::Evaluation{
                   10,
                   4.5,
                   100,
                   1,
                   {{"token_accuracy", {0.25, 640}}, {"answer_accuracy.hop_8", {1.0 / 3, 30}}}});
  append_event(folder, worker::Evaluation{20, 4.0, 100, 1, {{"token_accuracy", {0.5, 640}}}});
  make_completed_run(place.runs, made("y"));
  place.store.sync(place.runs);

  const auto evaluations = place.store.evaluations(run.id);
  REQUIRE(evaluations.size() == 2);
  REQUIRE(evaluations[0].scores.size() == 2);
  REQUIRE(evaluations[0].scores.at("answer_accuracy.hop_8").value == 1.0 / 3);
  REQUIRE(evaluations[0].scores.at("answer_accuracy.hop_8").count == 30);
  REQUIRE(evaluations[1].scores.size() == 1);
  REQUIRE(evaluations[1].scores.at("token_accuracy").value == 0.5);
  REQUIRE(place.store.run(run.id)->scores.size() == 1);
  REQUIRE(place.store.run(run.id)->scores.at("token_accuracy").count == 640);
  REQUIRE(place.store.run("y-20")->scores.empty());
  for (const RunSummary& listed : place.store.runs()) {
    REQUIRE(listed.scores.size() == (listed.config == "x" ? 1 : 0));
  }
  const RunFilter only_x = {{"x"}, "projects/canon", "quick", run::RunState::failed};
  REQUIRE(place.store.configured_runs(only_x)[0].summary.scores.size() == 1);
}

TEST_CASE("scores go with the steps that a resumed run repeats", "[store]") {
  Workplace place;
  const MadeRun run = made("x");
  const run::RunFolder folder = make_failed_run(place.runs, run, 30, "worker killed by SIGBUS");
  append_event(folder, worker::Evaluation{10, 4.5, 100, 1, {{"a", {0.5, 2}}, {"b", {0.5, 2}}}});
  append_event(folder, worker::Evaluation{20, 4.0, 100, 1, {{"a", {1, 2}}}});
  append_attempt(folder, 2);
  append_event(folder, worker::Started{4434176, 9, 30, 1024}, 2);
  place.store.sync(place.runs);
  REQUIRE(count_rows(place.database, "scores") == 0);
  // A resume may begin at the step of an evaluation, which is then made once more.
  append_event(folder, worker::Evaluation{10, 4.5, 100, 1, {{"a", {0.5, 2}}, {"b", {0.5, 2}}}}, 2);
  append_attempt(folder, 3);
  append_event(folder, worker::Started{4434176, 10, 30, 1024}, 3);
  append_event(folder, worker::Evaluation{10, 4.5, 100, 1, {{"a", {0.25, 4}}}}, 3);
  place.store.sync(place.runs);
  REQUIRE(place.store.evaluations(run.id)[0].scores.size() == 1);
  REQUIRE(place.store.run(run.id)->scores.at("a").value == 0.25);
  remove_tree(folder.path());
  place.store.sync(place.runs);
  REQUIRE(count_rows(place.database, "scores") == 0);
}

TEST_CASE("a score that is not a number stays one", "[store]") {
  Workplace place;
  const run::RunFolder folder = make_queued_run(place.runs, made("x"));
  append_event(folder, worker::Evaluation{10, 4.5, 100, 1, {{"kl_divergence", {NAN, 9}}}});
  place.store.sync(place.runs);
  REQUIRE(std::isnan(place.store.run("x-20")->scores.at("kl_divergence").value));
  REQUIRE(std::isnan(place.store.evaluations("x-20")[0].scores.at("kl_divergence").value));
}

TEST_CASE("a loss that is not a number stays one", "[store]") {
  Workplace place;
  const MadeRun run = made("x");
  make_completed_run(place.runs, run, {std::nan(""), 4000, 1000});
  place.store.sync(place.runs);
  REQUIRE(std::isnan(place.store.run(run.id)->metric("eval_loss").value()));
  REQUIRE(std::isnan(place.store.evaluations(run.id)[0].loss));
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

TEST_CASE("a run that was damaged after it was listed is listed no more until it is mended",
          "[store][hostile]") {
  TemporaryFolder folder;
  const fs::path runs = folder / "runs";
  const run::RunFolder run = make_completed_run(runs, {});
  ResultStore store(folder / "forge.sqlite");
  store.sync(runs);
  REQUIRE(store.runs().size() == 1);
  const std::string record = read_file(run.record_file());
  write_file_atomic(run.record_file(), "{");
  for (int look = 0; look < 2; ++look) {
    const SyncReport report = store.sync(runs);
    CHECK(report.left_out.size() == 1);
    CHECK(store.runs().empty());
  }
  write_file_atomic(run.record_file(), record);
  CHECK(store.sync(runs).left_out.empty());
  CHECK(store.runs().size() == 1);
}

TEST_CASE("a completed run whose log was cut is told each time and counts as failed",
          "[store][hostile]") {
  TemporaryFolder folder;
  const fs::path runs = folder / "runs";
  const run::RunFolder run = make_completed_run(runs, {});
  ResultStore(folder / "forge.sqlite").sync(runs);
  const std::string log = read_file(run.events_file());
  write_file_atomic(run.events_file(), log.substr(0, log.rfind('{')));
  for (int look = 0; look < 2; ++look) {
    ResultStore store(folder / "forge.sqlite");
    const SyncReport report = store.sync(runs);
    REQUIRE(report.warnings.size() == 1);
    INFO(report.warnings[0]);
    CHECK(contains(report.warnings[0], "tables leave out run '" + run.id()));
    CHECK(contains(report.warnings[0], "events.jsonl' is damaged"));
    CHECK(store.run(run.id())->status == run::RunState::failed);
  }
  write_file_atomic(run.events_file(), log);
  ResultStore store(folder / "forge.sqlite");
  CHECK(store.sync(runs).warnings.empty());
  CHECK(store.run(run.id())->status == run::RunState::completed);
}

TEST_CASE("many damaged runs share one warning", "[store]") {
  Workplace place;
  for (const char* config : {"a", "b", "c", "d"})
    write_file_atomic(make_completed_run(place.runs, made(config)).events_file(), "");
  const SyncReport report = place.store.sync(place.runs);
  REQUIRE(report.damaged.size() == 4);
  REQUIRE(report.warnings.size() == 1);
  CHECK(contains(report.warnings[0], "tables leave out 4 runs"));
  CHECK(contains(report.warnings[0], "(a-20, b-20, c-20, …)"));
}

TEST_CASE("a run folder without run.json is told", "[store]") {
  Workplace place;
  const run::RunFolder run = make_completed_run(place.runs, made("good"));
  fs::remove(run.record_file());
  const SyncReport report = place.store.sync(place.runs);
  REQUIRE(report.warnings.size() == 1);
  CHECK(contains(report.warnings[0], "run 'good-20' is left out: the folder has no run.json"));
}

TEST_CASE("a run folder that this user may not read is left out and told by name",
          "[store][closed]") {
  TemporaryFolder folder;
  const fs::path runs = folder / "runs";
  make_completed_run(runs, made("good"));
  const run::RunFolder closed = make_completed_run(runs, made("closed"));
  for (const fs::path& path : {folder.path(), runs}) fs::permissions(path, fs::perms::all);
  fs::permissions(closed.path(), fs::perms::none);
  const std::string warning =
      "run 'closed-20' is left out: its folder cannot be read: Permission denied";
  const std::string said = words_of_other_user([&] {
    ResultStore store(folder / "forge.sqlite");
    std::string text = join(store.sync(runs).warnings, "\n") + "\n";
    text += std::to_string(store.runs().size()) + " listed\n";
    const StoreComparison compared = compare_store(folder / "forge.sqlite", runs);
    text += join(compared.warnings, "\n") + "\n";
    text += std::to_string(compared.differences.size()) + " differences\n";
    text += std::to_string(run::list_runs(runs).size()) + " folders\n";
    return text + error_of([&] { run::find_run(runs, "closed-20"); }) + "\n" +
           error_of([&] { run::find_run(runs, "clo"); });
  });
  fs::permissions(closed.path(), fs::perms::owner_all);
  CHECK(starts_with(said, warning + "\n1 listed\n" + warning + "\n0 differences\n1 folders\n"));
  const size_t first = said.find("cannot read the run folder '");
  REQUIRE(first != std::string::npos);
  CHECK(contains(said, "closed-20': Permission denied\nhint: its owner can make it readable"));
  CHECK(said.find("cannot read the run folder '", first + 1) != std::string::npos);
}

TEST_CASE("a folder with a name that no run can have is left out and told", "[store][hostile]") {
  Workplace place;
  make_completed_run(place.runs, made("good"));
  const std::vector<std::string> names = {
      "--help", "-rf", "*", "forge.sqlite-x", "a\nb", "\x1b[31mX"};
  for (const std::string& name : names)
    fs::copy(place.runs / "good-20", place.runs / name, fs::copy_options::recursive);
  const SyncReport report = place.store.sync(place.runs);
  REQUIRE(place.store.runs().size() == 1);
  REQUIRE(report.warnings.size() == 1);
  REQUIRE(contains(report.warnings[0], "6 runs are left out ("));
  REQUIRE(contains(report.warnings[0], "): no run can have such a name"));
  REQUIRE(place.store.sync(place.runs).warnings.empty());
  REQUIRE(run::list_runs(place.runs).size() == 1);
  for (const std::string& name : names) REQUIRE_FALSE(run::find_run(place.runs, name));
  REQUIRE(run::find_run(place.runs, "g"));
}

TEST_CASE("a run that cannot be read is left out and told", "[store]") {
  Workplace place;
  make_completed_run(place.runs, made("good"));
  make_queued_run(place.runs, made("bad"));
  write_file_atomic(place.runs / "bad-20" / "config.json", "{\"train\":");
  const SyncReport report = place.store.sync(place.runs);
  REQUIRE(report.added == 1);
  REQUIRE(report.warnings.size() == 1);
  REQUIRE(contains(report.warnings[0], "bad-20"));
  REQUIRE(contains(report.warnings[0], "config.json"));
  REQUIRE_FALSE(place.store.run("bad-20").has_value());
  REQUIRE(place.store.run("good-20").has_value());
}

TEST_CASE("a run stays in the tables without what it ran on, and leaves them with another config",
          "[store][hostile]") {
  Workplace place;
  const run::RunFolder kept = make_completed_run(place.runs, made("train_a"));
  write_file_atomic(kept.environment_file(), "\x1b{");
  const run::RunFolder changed = make_completed_run(place.runs, made("train_b"));
  nlohmann::json config = changed.config();
  config["optimizer"]["lr"] = 0.5;
  write_file_atomic(changed.config_file(), config.dump());
  const SyncReport report = place.store.sync(place.runs);
  REQUIRE(report.warnings.size() == 2);
  REQUIRE(place.store.run(kept.id()).has_value());
  REQUIRE_FALSE(place.store.run(changed.id()).has_value());
}

TEST_CASE("runs of another version of forge share one sentence and hold nothing up", "[store]") {
  Workplace place;
  make_completed_run(place.runs, made("good"));
  for (const char* name : {"a", "b", "c", "d"}) {
    make_completed_run(place.runs, made(name));
    const run::RunFolder folder(place.runs / (std::string(name) + "-20"));
    nlohmann::json config = folder.config();
    config["model"]["family"] = "llama";
    rewrite_config(folder, config);
  }
  const SyncReport report = place.store.sync(place.runs);
  REQUIRE(report.added == 1);
  REQUIRE(report.warnings.size() == 1);
  REQUIRE(report.warnings[0] ==
          "4 runs are left out (a-20, b-20, c-20, …): another version of forge wrote the config: "
          "unknown key 'model.family'");
  REQUIRE(place.store.run("good-20").has_value());
  REQUIRE(place.store.sync(place.runs).warnings.empty());  // said once
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

TEST_CASE("a store built anew equals one that grew", "[store]") {
  Workplace place;
  const MadeRun run = made("x");
  const run::RunFolder folder = make_failed_run(place.runs, run, 20, "worker killed by SIGBUS");
  append_line(folder, "rubbish\n");
  make_completed_run(place.runs, made("y"));
  place.store.sync(place.runs);
  append_attempt(folder, 2);
  append_event(folder, worker::Started{4434176, 10, 30, 1024}, 2);
  place.store.sync(place.runs);
  append_event(folder, metrics_at(20), 2);
  append_event(folder, worker::Result{{{"x", 1}}}, 2);
  append_ended(folder, "stopped");
  make_completed_run(place.runs, made("z"));
  place.store.sync(place.runs);

  const std::string grown = dump_store(place.database);
  REQUIRE(contains(grown, "x-20|"));
  const SyncReport report = reindex(place.database, place.runs);
  REQUIRE(report.added == 3);
  REQUIRE(report.warnings.size() == 1);
  REQUIRE(dump_store(place.database) == grown);
}

TEST_CASE("rows that say something else than the run folders are found", "[store][hostile]") {
  Workplace place;
  make_completed_run(place.runs, made("x"));
  make_completed_run(place.runs, made("y"));
  make_queued_run(place.runs, made("z"));
  place.store.sync(place.runs);
  const auto differences = [&] {
    std::string text;
    for (const StoreDifference& found : compare_store(place.database, place.runs).differences)
      text += found.run + ": " + found.what + "\n";
    return text;
  };
  REQUIRE(differences().empty());
  REQUIRE(compare_store(place.database, place.runs).compared == 2);
  REQUIRE(compare_store(place.database, place.runs).active == 1);
  const auto change = [&](const std::string& sql) {
    SQLite::Database(place.database.string(), SQLite::OPEN_READWRITE).exec(sql);
  };
  change("UPDATE runs SET eval_loss = 0.5 WHERE id = 'x-20'");
  CHECK(place.store.run("x-20")->metric(results::eval_loss_name) == 0.5);  // rows are believed
  CHECK(differences() == "x-20: eval_loss is 0.5 and by the folder 3.25\n");
  change("UPDATE train_metrics SET loss = 1 WHERE run_id = 'y-20' AND step = 10");
  change("UPDATE configs SET config = '{}' WHERE run_id = 'y-20'");
  change("DELETE FROM evaluations WHERE run_id = 'y-20'");
  CHECK(differences() ==
        "x-20: eval_loss is 0.5 and by the folder 3.25\n"
        "y-20: the config: not what the files say\n"
        "y-20: the training metrics: not what the files say\n"
        "y-20: the evaluations: not what the files say\n");
  reindex(place.database, place.runs);
  CHECK(differences().empty());
  for (const fs::path& entry : folder_entries(place.folder.path()))
    CHECK_FALSE(is_aside_name(entry.filename().string()));
}

TEST_CASE("runs that change while the store is compared are no differences", "[store][compare]") {
  Workplace place;
  const run::RunFolder noted = make_completed_run(place.runs, made("x"));
  for (int round = 0; round < 10; ++round) {
    // It is over long before the last look.
    auto writer = std::async(std::launch::async, [&] {
      for (int i = 0; i < 15; ++i) {
        run::write_annotations(noted, {false, "note " + std::to_string(i), {}});
        const run::RunFolder other = make_completed_run(place.runs, made("y"));
        fs::rename(other.path(), place.runs / ".gone");
        remove_tree(place.runs / ".gone");
      }
    });
    const StoreComparison compared = compare_store(place.database, place.runs);
    writer.get();
    std::string found;
    for (const StoreDifference& difference : compared.differences)
      found += difference.run + ": " + difference.what + "\n";
    CHECK(found.empty());
  }
}

TEST_CASE("reindex mends a damaged store and one of a newer program", "[store]") {
  TemporaryFolder folder;
  const auto runs = folder / "runs";
  make_completed_run(runs, made("x"));
  folder.write("forge.sqlite", std::string(5000, 'x'));
  folder.write("forge.sqlite-wal", "what is left of the old log");
  reindex(folder / "forge.sqlite", runs);
  REQUIRE(ResultStore(folder / "forge.sqlite").runs().size() == 1);

  SQLite::Database((folder / "forge.sqlite").string(), SQLite::OPEN_READWRITE)
      .exec("PRAGMA user_version = 99");
  reindex(folder / "forge.sqlite", runs);
  REQUIRE(ResultStore(folder / "forge.sqlite").runs().size() == 1);
  // Nothing is left lying about.
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    REQUIRE_FALSE(contains(entry.path().string(), "reindex"));
  }
}

TEST_CASE("a store that cannot be made names its path", "[store]") {
  TemporaryFolder folder;
  folder.write("file", "");
  const std::string error = error_of([&] { ResultStore(folder / "file" / "forge.sqlite"); });
  REQUIRE(contains(error, (folder / "file").string()));
}

}  // namespace
}  // namespace forge::store

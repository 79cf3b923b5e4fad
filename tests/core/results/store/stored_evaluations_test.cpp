// Evaluations in a store: rows, scores, and numbers that are none.

#include "core/results/store/result_store.h"

#include <cmath>

#include "tests/core/results/store/store_dump.h"
#include "tests/core/results/store/workplace.h"
#include "tests/support/catch.h"

namespace forge::store {
namespace {

TEST_CASE("the rows of the last evaluation are kept, and one whose rows cannot be its own is none",
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
  for (const std::vector<double>& others : {std::vector<double>{NAN, 4.25}, {4.25}}) {
    evaluation.row_losses = others;
    append_event(folder, evaluation);
    place.store.sync(place.runs);
    REQUIRE(place.store.evaluation_rows(run.id).losses == std::vector<double>{3.5, 4.25});
  }
  evaluation.loss = NAN;
  evaluation.row_losses = {NAN, 4.25};
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
  append_event(folder, worker::CheckpointSaved{20, "checkpoints/000000020", 1000});
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
  append_event(folder, worker::CheckpointSaved{10, "checkpoints/000000010", 1000});
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

TEST_CASE("a validation loss that is not a number is no missing one", "[store]") {
  Workplace place;
  Outcome outcome{2.5, 4000, 1000};
  const MadeRun without = made("x");
  make_completed_run(place.runs, without, outcome);
  MadeRun diverged = made("y");
  outcome.validation_loss = std::nan("");
  make_completed_run(place.runs, diverged, outcome);
  place.store.sync(place.runs);
  REQUIRE_FALSE(place.store.run(without.id)->metric("validation_loss"));
  REQUIRE(std::isnan(place.store.run(diverged.id)->metric("validation_loss").value()));
  REQUIRE(place.store.run(diverged.id)->metric("eval_loss") == 2.5);
}

}  // namespace
}  // namespace forge::store

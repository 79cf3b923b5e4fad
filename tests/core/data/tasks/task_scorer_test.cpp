#include "core/data/tasks/task_scorer.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "core/data/common.h"
#include "core/data/tasks/task_rows.h"
#include "core/data/tasks/task_spec.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::data::tasks {
namespace {

using tests::contains;
using tests::error_of;
using Json = nlohmann::json;
using Ids = std::vector<int32_t>;

Json spec_of(const std::string& name, const Json& sizes, const std::string& variant = "paper") {
  Json spec = {{"name", name}, {"seed", 7}, {"variant", variant}};
  spec.update(sizes);
  return spec;
}

/// An examination, and the rows that it is of.
struct TaskExam {
  TaskExam(const Json& spec, int seq_len, int64_t rows_)
      : task(task_of(spec)), rows(*task, seed_of(spec), Split::evaluation, seq_len) {
    ScorerOptions options;
    options.seq_len = seq_len;
    options.rows = rows_;
    scorer = make_scorer(spec, options);
  }

  /// What a model that knows everything takes for the likeliest.
  Ids right_ids(int64_t row) const {
    Ids inputs(static_cast<size_t>(rows.seq_len()));
    Ids targets = inputs;
    rows.fill(row, inputs.data(), targets.data());
    targets.erase(std::remove(targets.begin(), targets.end(), unscored_target), targets.end());
    return targets;
  }
  double mean(const std::string& figure) const {
    const std::optional<double> found = scorer->finish().mean(figure);
    REQUIRE(found);
    return *found;
  }

  std::unique_ptr<const Task> task;
  TaskRows rows;
  std::unique_ptr<Scorer> scorer;
};

std::vector<Json> teacher_forced_specs() {
  return {spec_of("depo1", {{"max_nodes", 9}, {"max_hops", 4}}),
          spec_of("depo2", {{"max_nodes", 9}, {"max_hops", 4}}, "code"),
          spec_of("mano", {{"max_operators", 5}}),
          spec_of("mano", {{"max_operators", 5}}, "code"),
          spec_of("copy", {{"length", 40}, {"scored_tokens", 0}}),
          spec_of("copy", {{"length", 40}, {"scored_tokens", 2}})};
}

TEST_CASE("right ids give one in every figure of a task that is asked teacher forced") {
  for (const Json& spec : teacher_forced_specs()) {
    INFO(spec.dump());
    const TaskExam exam(spec, 200, 6);
    const std::set<AnswerKind> requested = exam.scorer->requested();
    REQUIRE(requested.count(AnswerKind::likeliest) == 1);
    REQUIRE(requested.count(AnswerKind::loss) == 0);
    REQUIRE(requested.count(AnswerKind::log_probabilities) == 0);
    REQUIRE(requested.count(AnswerKind::continuation) == 0);
    for (int64_t row = 5; row >= 0; --row)
      exam.scorer->add({AnswerKind::likeliest, row, exam.right_ids(row), {}});
    const Scores scores = exam.scorer->finish();
    REQUIRE(scores.sums().size() >= 2);
    for (const auto& [figure, sum] : scores.sums()) {
      INFO(figure);
      REQUIRE(sum.mean() == 1);
      REQUIRE(sum.count > 0);
    }
  }
}

TEST_CASE("wrong ids give none in every figure") {
  for (const Json& spec : teacher_forced_specs()) {
    INFO(spec.dump());
    const TaskExam exam(spec, 200, 6);
    for (int64_t row = 0; row < 6; ++row) {
      Ids ids = exam.right_ids(row);
      for (int32_t& id : ids) id = (id + 1) % exam.task->vocab_size();
      exam.scorer->add({AnswerKind::likeliest, row, ids, {}});
    }
    const Scores scores = exam.scorer->finish();
    for (const auto& [figure, sum] : scores.sums()) {
      INFO(figure);
      REQUIRE(sum.mean() == 0);
    }
  }
}

TEST_CASE("the right ids of another row are mostly wrong") {
  const TaskExam exam(spec_of("copy", {{"length", 40}, {"scored_tokens", 0}}), 100, 6);
  for (int64_t row = 0; row < 6; ++row) {
    exam.scorer->add({AnswerKind::likeliest, row, exam.right_ids((row + 1) % 6), {}});
  }
  const Scores scores = exam.scorer->finish();
  REQUIRE(*scores.mean("token_accuracy") < 0.2);
  REQUIRE(*scores.mean("sequence_accuracy") == 0);
}

TEST_CASE("a mixture of right and wrong copies gives the figures that it has") {
  // A row is one text: bos, four numbers, query, four numbers.
  const TaskExam exam(spec_of("copy", {{"length", 4}, {"scored_tokens", 0}}), 9, 3);
  Ids first_wrong = exam.right_ids(1);
  REQUIRE(first_wrong.size() == 4);
  first_wrong.front() = (first_wrong.front() + 1) % 4;
  Ids last_wrong = exam.right_ids(2);
  last_wrong.back() = (last_wrong.back() + 1) % 4;
  exam.scorer->add({AnswerKind::likeliest, 0, exam.right_ids(0), {}});
  exam.scorer->add({AnswerKind::likeliest, 1, first_wrong, {}});
  exam.scorer->add({AnswerKind::likeliest, 2, last_wrong, {}});
  const Scores scores = exam.scorer->finish();
  REQUIRE(scores.sums().size() == 5);
  REQUIRE(*scores.mean("token_accuracy") == Approx(10.0 / 12));
  REQUIRE(*scores.mean("sequence_accuracy") == Approx(1.0 / 3));
  REQUIRE(*scores.mean("token_accuracy.first_1") == Approx(2.0 / 3));
  REQUIRE(*scores.mean("token_accuracy.first_2") == Approx(5.0 / 6));
  REQUIRE(*scores.mean("token_accuracy.first_4") == Approx(10.0 / 12));
}

TEST_CASE("a model that fails at one number of hops loses that figure alone") {
  const TaskExam exam(spec_of("depo1", {{"max_nodes", 9}, {"max_hops", 4}}), 200, 5);
  int64_t answers = 0;
  int64_t failed = 0;
  for (int64_t row = 0; row < 5; ++row) {
    // Scored are the marker and the name of each answer; the name's last token is made wrong.
    Ids ids = exam.right_ids(row);
    size_t at = 0;
    for (const PlacedInstance& placed : exam.rows.instances(row)) {
      for (const Answer& answer : placed.instance.answers) {
        at += static_cast<size_t>(answer.end - answer.loss_begin);
        ++answers;
        if (answer.group != 2) continue;
        ++failed;
        ids.at(at - 1) = 0;
        if (placed.instance.tokens[static_cast<size_t>(answer.end) - 1] == 0) ids[at - 1] = 1;
      }
    }
    REQUIRE(at == ids.size());
    exam.scorer->add({AnswerKind::likeliest, row, ids, {}});
  }
  REQUIRE((failed > 0 && failed < answers));
  const Scores scores = exam.scorer->finish();
  REQUIRE(*scores.mean("answer_accuracy.hop_2") == 0);
  REQUIRE(scores.sums().at("answer_accuracy.hop_2").count == failed);
  REQUIRE(*scores.mean("answer_accuracy.hop_1") == 1);
  REQUIRE(*scores.mean("answer_accuracy.hop_4") == 1);
  REQUIRE(*scores.mean("answer_accuracy") == Approx(1 - double(failed) / double(answers)));
}

TEST_CASE("a scorer begins anew once it was asked for its figures") {
  const TaskExam exam(spec_of("copy", {{"length", 4}, {"scored_tokens", 0}}), 9, 3);
  REQUIRE(exam.scorer->finish().sums().empty());
  exam.scorer->add({AnswerKind::likeliest, 0, {0, 0, 0, 0}, {}});
  REQUIRE(exam.scorer->finish().sums().size() == 5);
  REQUIRE(exam.scorer->finish().sums().empty());
  exam.scorer->add({AnswerKind::likeliest, 0, exam.right_ids(0), {}});
  REQUIRE(exam.mean("token_accuracy") == 1);
}

TEST_CASE("answers that cannot be or that nobody asked for are refused") {
  const TaskExam exam(spec_of("copy", {{"length", 4}, {"scored_tokens", 0}}), 9, 3);
  Scorer& copy = *exam.scorer;
  const Ids right = exam.right_ids(0);
  REQUIRE(contains(error_of([&] {
                     copy.add({AnswerKind::likeliest, 0, {1, 2, 3}, {}});
                   }),
                   "answered row 0 with 3 ids instead of 4"));
  REQUIRE(contains(error_of([&] {
                     copy.add({AnswerKind::likeliest, 0, {1, 2, 3, 0, 1}, {}});
                   }),
                   "with 5 ids"));
  REQUIRE(contains(error_of([&] { copy.add({AnswerKind::likeliest, 0, {}, {}}); }), "with 0 ids"));
  REQUIRE(contains(error_of([&] {
                     copy.add({AnswerKind::likeliest, 3, right, {}});
                   }),
                   "for row 3 of 3"));
  REQUIRE(contains(error_of([&] {
                     copy.add({AnswerKind::likeliest, -1, right, {}});
                   }),
                   "for row -1 of 3"));
  REQUIRE(contains(error_of([&] {
                     copy.add({AnswerKind::loss, 0, {}, {1, 1, 1, 1}});
                   }),
                   "answered losses, which this task does not ask for"));
  REQUIRE(contains(error_of([&] {
                     copy.add({AnswerKind::log_probabilities, 0, {}, {}});
                   }),
                   "answered log probabilities, which"));
  REQUIRE(contains(error_of([&] {
                     copy.add({AnswerKind::continuation, 0, right, {}});
                   }),
                   "answered continuations, which"));
  REQUIRE(copy.finish().sums().empty());

  const TaskExam brevo(spec_of("brevo1", {{"max_nodes", 8}}), 60, 3);
  REQUIRE(contains(error_of([&] {
                     brevo.scorer->add({AnswerKind::likeliest, 0, {}, {}});
                   }),
                   "answered likeliest ids, which"));
  REQUIRE(contains(error_of([&] {
                     brevo.scorer->add({AnswerKind::log_probabilities, 0, {}, {}});
                   }),
                   "answered log probabilities, which"));
  REQUIRE(contains(error_of([&] {
                     brevo.scorer->add({AnswerKind::continuation, 3, {}, {}});
                   }),
                   "row 3 of 3"));
}

TEST_CASE("Brevo is measured by what the model writes behind the question") {
  for (const Json& spec :
       {spec_of("brevo1", {{"max_nodes", 8}}), spec_of("brevo2", {{"max_nodes", 8}}, "code")}) {
    INFO(spec.dump());
    const TaskExam exam(spec, 200, 4);
    const std::set<AnswerKind> requested = exam.scorer->requested();
    REQUIRE(requested.count(AnswerKind::continuation) == 1);
    REQUIRE(requested.count(AnswerKind::likeliest) == 0);
    REQUIRE(requested.count(AnswerKind::log_probabilities) == 0);
    const auto right = [&](int64_t row) {
      const Instance text = exam.rows.first_instance(row);
      return Ids(text.tokens.begin() + text.answers.at(0).begin, text.tokens.end());
    };
    for (int64_t row = 0; row < 4; ++row)
      exam.scorer->add({AnswerKind::continuation, row, right(row), {}});
    const Scores scores = exam.scorer->finish();
    for (const auto& [figure, sum] : scores.sums()) REQUIRE(sum.mean() == 1);

    Ids twice = right(1);  // its first word again
    const size_t word = static_cast<size_t>(
        1 + std::distance(twice.begin(), std::find_if(twice.begin(), twice.end(), [&](int32_t id) {
                            return spec.at("name") == "brevo1" || id >= 4;
                          })));
    const Ids first(twice.begin(), twice.begin() + static_cast<int64_t>(word));
    twice.insert(twice.begin(), first.begin(), first.end());
    exam.scorer->add({AnswerKind::continuation, 1, twice, {}});
    REQUIRE(exam.mean("answer_accuracy") == 0);

    exam.scorer->add({AnswerKind::continuation, 0, right(0), {}});
    exam.scorer->add({AnswerKind::continuation, 1, twice, {}});
    exam.scorer->add({AnswerKind::continuation, 2, {}, {}});
    exam.scorer->add({AnswerKind::continuation, 3, {-5, 1 << 30}, {}});
    REQUIRE(exam.mean("answer_accuracy") == 0.25);
  }
}

/// Of two sentences, 1 2 3 and 1 3, equally probable.
Json two_sentences() { return spec_of("lano", {{"grammar", {{"4", {{1, 2, 3}, {1, 3}}}}}}); }

/// What comes next according to that grammar: [positions, 4].
std::vector<double> truth_of(const Ids& tokens) {
  std::vector<double> truth = {0, 1, 0, 0, 0, 0, 0.5, 0.5};
  if (tokens.size() == 4) truth.insert(truth.end(), {0, 0, 0, 1});
  truth.insert(truth.end(), {1, 0, 0, 0});
  return truth;
}

TEST_CASE("Lano is measured by sentences that the model draws") {
  const TaskExam exam(two_sentences(), 30, 8);
  const std::set<AnswerKind> requested = exam.scorer->requested();
  REQUIRE(requested.count(AnswerKind::continuation) == 1);
  REQUIRE(requested.count(AnswerKind::log_probabilities) == 1);
  REQUIRE(requested.count(AnswerKind::likeliest) == 0);
  REQUIRE(requested.count(AnswerKind::loss) == 0);
  exam.scorer->add({AnswerKind::continuation, 0, {1, 2, 3, 0}, {}});
  REQUIRE(exam.mean("sentence_validity") == 1);
  exam.scorer->add({AnswerKind::continuation, 0, {1, 2, 3}, {}});
  REQUIRE(exam.mean("sentence_validity") == 0);
  exam.scorer->add({AnswerKind::continuation, 0, {1, 2, 3, 0}, {}});
  exam.scorer->add({AnswerKind::continuation, 1, {1, 3, 0}, {}});
  exam.scorer->add({AnswerKind::continuation, 2, {1, 2, 0}, {}});
  exam.scorer->add({AnswerKind::continuation, 3, {}, {}});
  REQUIRE(exam.mean("sentence_validity") == 0.5);
  REQUIRE(contains(error_of([&] {
                     exam.scorer->add({AnswerKind::likeliest, 0, {}, {}});
                   }),
                   "answered likeliest ids, which"));
}

TEST_CASE("Lano's divergence is none for the grammar's own probabilities") {
  const TaskExam exam(two_sentences(), 30, 8);
  for (int64_t row = 0; row < 8; ++row) {
    std::vector<double> values = truth_of(exam.rows.first_instance(row).tokens);
    for (double& value : values) value = std::log(value);
    exam.scorer->add({AnswerKind::log_probabilities, row, {}, values});
  }
  const Scores scores = exam.scorer->finish();
  REQUIRE(*scores.mean("kl_divergence") == Approx(0).margin(1e-9));
  REQUIRE(scores.sums().count("sentence_validity") == 0);
}

TEST_CASE("Lano's divergence of even guesses is that of the formula") {
  // Where one id is sure and where two are equally probable; 1e-5 is added to every probability.
  const double sure = std::log(1.00001 / 0.25001);
  const double even = std::log(0.50001 / 0.25001);
  std::set<size_t> lengths;
  const auto divergence = [&](int seq_len, int64_t row) {
    const TaskExam exam(two_sentences(), seq_len, row + 1);
    const size_t length = exam.rows.first_instance(row).tokens.size();
    lengths.insert(length);
    const size_t positions = std::min<size_t>(length, static_cast<size_t>(seq_len));
    exam.scorer->add({AnswerKind::log_probabilities,
                      row,
                      {},
                      std::vector<double>(4 * positions, std::log(0.25))});
    const Scores scores = exam.scorer->finish();
    REQUIRE(scores.sums().at("kl_divergence").count == static_cast<int64_t>(positions));
    const double expected = ((double(positions) - 1) * sure + even) / double(positions);
    REQUIRE(*scores.mean("kl_divergence") == Approx(expected).epsilon(1e-9));
  };
  for (int64_t row = 0; row < 8; ++row) divergence(30, row);
  REQUIRE(lengths == std::set<size_t>{3, 4});
  divergence(2, 0);  // the row holds no more of the sentence
}

TEST_CASE("Lano's probabilities are of every id at each place of the first sentence") {
  const TaskExam exam(two_sentences(), 30, 8);
  const size_t right = 4 * exam.rows.first_instance(2).tokens.size();
  for (const size_t length : {right - 1, right + 4, size_t{0}, size_t{120}}) {
    const std::vector<double> values(length);
    REQUIRE(contains(error_of([&] {
                       exam.scorer->add({AnswerKind::log_probabilities, 2, {}, values});
                     }),
                     "answered row 2 with " + std::to_string(length) +
                         " log probabilities instead of " + std::to_string(right)));
  }
  const std::vector<double> values(right);
  for (const int64_t row : {-1, 8}) {
    REQUIRE(contains(error_of([&] {
                       exam.scorer->add({AnswerKind::log_probabilities, row, {}, values});
                     }),
                     "for row " + std::to_string(row) + " of 8"));
  }
  REQUIRE(exam.scorer->finish().sums().empty());
}

}  // namespace
}  // namespace forge::data::tasks

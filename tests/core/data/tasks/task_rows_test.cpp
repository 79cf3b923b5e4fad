#include "core/data/tasks/task_rows.h"

#include <numeric>
#include <set>

#include "core/data/rows/dataset.h"
#include "tests/core/data/tasks/published.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::data::tasks {
namespace {

struct Row {
  std::vector<int32_t> inputs;
  std::vector<int32_t> targets;
};

Row row_of(const TaskRows& rows, int64_t index) {
  Row row;
  row.inputs.assign(rows.seq_len(), -7);
  row.targets.assign(rows.seq_len(), -7);
  rows.fill(index, row.inputs.data(), row.targets.data());
  return row;
}

TEST_CASE("a row is whole instances from its first token on, the last one cut") {
  const auto task = make_task(depo1(12, 4));
  const TaskRows rows(*task, 5, Split::training, 300);
  for (const int64_t index : {int64_t{0}, int64_t{3}, int64_t{1} << 35}) {
    const Row row = row_of(rows, index);
    std::vector<int32_t> ids;
    const std::vector<PlacedInstance> placed = rows.instances(index);
    for (size_t i = 0; i < placed.size(); ++i) {
      REQUIRE(placed[i].offset == static_cast<int32_t>(ids.size()));
      if (i + 1 < placed.size()) REQUIRE(published::fault(*task, placed[i].instance) == "");
      const auto& tokens = placed[i].instance.tokens;
      ids.insert(ids.end(), tokens.begin(), tokens.end());
      for (size_t t = 0; t < tokens.size(); ++t) {
        const size_t at = placed[i].offset + t;
        if (at == 0) continue;
        const bool scored = placed[i].instance.scored[t] != 0;
        REQUIRE(row.targets[at - 1] == (scored ? tokens[t] : unscored_target));
      }
    }
    REQUIRE(ids.size() == 301);
    ids.pop_back();
    REQUIRE(row.inputs == ids);
  }
}

TEST_CASE("rows share no instance, and a row's first one is its own") {
  const auto task = make_task(ManoConfig{2, Variant::paper, true});
  const TaskRows rows(*task, 5, Split::training, 69);  // 10 instances of 7 tokens
  for (int64_t index = 0; index < 20; ++index) {
    const std::vector<PlacedInstance> placed = rows.instances(index);
    for (size_t j = 0; j < placed.size(); ++j) {
      Instance expected;
      task->generate(5, Split::training, index * 10 + j, expected);
      expected.tokens.resize(placed[j].instance.tokens.size());
      REQUIRE(placed[j].instance.tokens == expected.tokens);
      REQUIRE(j < 10);
    }
  }
}

TEST_CASE("an answer that the window cuts carries no loss and is not measured") {
  const auto task = make_task(depo2(8, 4));
  std::set<size_t> answers;
  Instance whole;
  task->generate(1, Split::evaluation, 0, whole);
  REQUIRE(whole.answers.size() == 8);
  const int shortest = whole.answers[2].loss_begin - 2;
  const int longest = whole.answers[4].end + 3;
  for (int seq_len = shortest; seq_len < longest; ++seq_len) {
    const TaskRows rows(*task, 1, Split::evaluation, seq_len);
    const Row row = row_of(rows, 0);
    const std::vector<PlacedInstance> placed = rows.instances(0);
    REQUIRE(placed.size() == 1);
    size_t there = 0;
    for (const Answer& answer : whole.answers) {
      const bool fits = answer.end <= seq_len + 1;
      there += fits;
      for (int32_t t = answer.loss_begin; t < std::min(answer.end, seq_len + 1); ++t) {
        REQUIRE(row.targets[t - 1] == (fits ? whole.tokens[t] : unscored_target));
      }
    }
    REQUIRE(placed[0].instance.answers.size() == there);
    answers.insert(there);
    // Where loss is on all tokens a cut answer's neighbours keep theirs.
    std::vector<int32_t> predicted(row.inputs.begin() + 1, row.inputs.end());
    predicted.push_back(-1);
    Scores scores;
    rows.score(0, predicted.data(), scores);
    REQUIRE(scores.sums().at("answer_accuracy").count == static_cast<int64_t>(there));
  }
  REQUIRE(answers == std::set<size_t>{2, 3, 4, 5});
}

TEST_CASE("a row is scored by what follows each input") {
  const auto task = make_task(ManoConfig{3, Variant::paper, true});
  const TaskRows rows(*task, 9, Split::evaluation, 34);  // three texts of 11 tokens and 2 more
  const Row row = row_of(rows, 4);
  std::vector<int32_t> predicted = row.targets;
  Scores right;
  rows.score(4, predicted.data(), right);
  REQUIRE(*right.mean("value_accuracy") == 1);
  REQUIRE(right.sums().at("value_accuracy").count == 3);
  predicted[2 * 11 - 2] = 0;  // what follows the second text's answer marker
  Scores wrong;
  rows.score(4, predicted.data(), wrong);
  REQUIRE(*wrong.mean("value_accuracy") == Approx(2.0 / 3));
}

TEST_CASE("a text longer than the row is cut") {
  const auto task = make_task(CopyConfig{500, 0});
  const TaskRows rows(*task, 1, Split::training, 1024);
  const Row row = row_of(rows, 0);
  REQUIRE(std::count(row.targets.begin(), row.targets.end(), unscored_target) == 1024 - 500);
  const TaskRows shorter(*task, 1, Split::training, 1000);
  const Row cut = row_of(shorter, 0);  // one copied token is missing: the copy is an answer
  REQUIRE(std::count(cut.targets.begin(), cut.targets.end(), unscored_target) == 1000);
  REQUIRE(tests::error_of([&] { TaskRows(*task, 1, Split::training, 0); }).find("seq_len") !=
          std::string::npos);
}

TEST_CASE("a row's first text is that of its first instance, whole") {
  const auto task = make_task(CopyConfig{50, 0});
  const TaskRows rows(*task, 3, Split::evaluation, 20);  // one instance begins in a row
  for (const int64_t row : {0, 1, 6}) {
    Instance expected;
    task->generate(3, Split::evaluation, static_cast<uint64_t>(row), expected);
    const Instance first = rows.first_instance(row);
    REQUIRE(first.tokens == expected.tokens);
    REQUIRE(first.tokens.size() == 102);
    REQUIRE(first.answers.size() == 1);
    const std::vector<int32_t> inputs = row_of(rows, row).inputs;
    REQUIRE(std::equal(inputs.begin(), inputs.end(), first.tokens.begin()));
  }
  const auto shorter = make_task(ManoConfig{2, Variant::paper, true});
  const TaskRows several(*shorter, 3, Split::training, 69);  // 10 instances of 7 tokens
  Instance expected;
  shorter->generate(3, Split::training, 20, expected);
  REQUIRE(several.first_instance(2).tokens == expected.tokens);
}

TEST_CASE("a prompt of Brevo is its text up to the answer, where the whole text fits the row") {
  const auto task = make_task(brevo1(12));
  const auto row_of_length = [&](int seq_len) {
    return TaskRows(*task, 3, Split::evaluation, seq_len);
  };
  const Instance first = row_of_length(500).first_instance(0);
  const auto length = static_cast<int>(first.tokens.size());
  const int32_t behind_marker = first.answers.at(0).begin;
  for (const int seq_len : {500, length}) {
    const std::optional<Prompt> prompt = row_of_length(seq_len).prompt(0);
    REQUIRE(prompt);
    REQUIRE(prompt->tokens ==
            std::vector<int32_t>(first.tokens.begin(), first.tokens.begin() + behind_marker));
    REQUIRE(prompt->max_new_tokens == length - behind_marker);
    REQUIRE(prompt->stop == first.tokens.back());
  }
  for (const int seq_len : {length - 1, behind_marker, 5, 1}) {
    REQUIRE_FALSE(row_of_length(seq_len).prompt(0));
  }
}

TEST_CASE("a prompt of Lano is a bos with room for a sentence or up to the row's end") {
  const auto task = make_task(LanoConfig{Grammar::parse(R"({"4": [[1, 2, 3], [1, 3]]})", "g")});
  const auto room = [&](int seq_len) {
    const std::optional<Prompt> prompt = TaskRows(*task, 3, Split::evaluation, seq_len).prompt(2);
    REQUIRE(prompt);
    REQUIRE(prompt->tokens == std::vector<int32_t>{0});
    REQUIRE(prompt->stop == 0);
    return prompt->max_new_tokens;
  };
  REQUIRE(room(100) == 4);  // the longest sentence and the bos behind it
  REQUIRE(room(5) == 4);
  REQUIRE(room(4) == 3);
  REQUIRE(room(2) == 1);
  REQUIRE_FALSE(TaskRows(*task, 3, Split::evaluation, 1).prompt(2));
}

TEST_CASE("rows of a task that is asked teacher forced have no prompt") {
  for (const TaskConfig& config :
       {TaskConfig(depo1(5, 2)), TaskConfig(ManoConfig{2}), TaskConfig(CopyConfig{5, 0})}) {
    const auto task = make_task(config);
    const TaskRows rows(*task, 3, Split::evaluation, 100);
    REQUIRE(tests::error_of([&] { rows.prompt(0); }).find("is scored teacher forced") !=
            std::string::npos);
  }
}

}  // namespace
}  // namespace forge::data::tasks

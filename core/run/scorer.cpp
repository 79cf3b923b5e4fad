#include "core/run/scorer.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/model/parameters.h"

namespace forge::run {
namespace {

std::unique_ptr<data::tasks::Scorer> make_scorer(const config::Experiment& experiment,
                                                 const worker::TokenSource& rows,
                                                 const std::filesystem::path& tokenizer) {
  data::tasks::ScorerOptions options;
  options.seq_len = experiment.train.seq_len;
  options.rows = rows.rows;
  options.padded = rows.pad_id.has_value();
  options.tokens = rows.path;
  options.tokenizer = tokenizer;
  options.parameters = model::parameter_count(experiment.model);
  return data::tasks::make_scorer(rows.task, options);
}

}  // namespace

void request_answers(const config::Experiment& experiment, worker::Request& request) {
  const worker::TokenSource rows = worker::first_source(request.evaluation_tokens);
  request.answers.clear();
  if (rows.task.empty()) return;
  for (const worker::AnswerKind kind : make_scorer(experiment, rows, "")->requested()) {
    request.answers.push_back(kind);
  }
  request.answer_rows = std::min<int64_t>(rows.rows, experiment.train.eval_prompts);
}

Scorer::Scorer(const worker::Request& request, const std::filesystem::path& tokenizer) {
  if (request.answers.empty()) return;
  const config::Experiment experiment = config::experiment_from_json(request.experiment);
  const worker::TokenSource rows = first_source(request.evaluation_tokens);
  scorer_ = make_scorer(experiment, rows, tokenizer);
  for (const worker::AnswerKind kind : request.answers)
    rows_[kind] = kind == worker::AnswerKind::continuation ? request.answer_rows : rows.rows;
}

void Scorer::add(const worker::Answers& answers) {
  if (!scorer_) throw Error("the worker sent unrequested answers");
  if (!answered_.empty() && answers.step != step_)
    throw Error("the worker answered of step " + std::to_string(answers.step) + " behind step " +
                std::to_string(step_) + ", whose evaluation it has not sent");
  const std::string said = hash_hex(worker::to_line(answers));
  const std::pair key(answers.kind, answers.row);
  const auto earlier = answered_.find(key);
  if (earlier != answered_.end()) {
    if (earlier->second == said) return;
    throw Error("the worker answered row " + std::to_string(answers.row) +
                " twice, with other values");
  }
  scorer_->add({answers.kind, answers.row, answers.ids, answers.values});
  answered_.emplace(key, said);
  step_ = answers.step;
}

void Scorer::forget() {
  answered_.clear();
  if (scorer_) scorer_->finish();
}

std::map<std::string, worker::Score> Scorer::finish(std::optional<int64_t> step) {
  std::map<std::string, worker::Score> scores;
  if (answered_.empty()) return scores;
  if (step && *step != step_)
    throw Error("the worker answered of step " + std::to_string(step_) +
                ", and evaluated after step " + std::to_string(*step));
  for (const auto& [kind, rows] : rows_) {
    const auto answered =
        std::count_if(answered_.begin(), answered_.end(), [&, &asked = kind](const auto& each) {
          return each.first.first == asked;
        });
    if (answered < rows)
      throw Error("the worker answered for " + std::to_string(answered) + " of " +
                  counted(static_cast<size_t>(rows), "row") + " (" +
                  worker::names_of(kind)[static_cast<size_t>(kind)] + ")");
  }
  answered_.clear();
  const data::tasks::Scores made = scorer_->finish();
  for (const auto& [name, sum] : made.sums()) {
    scores[name] = {sum.mean(), sum.count};
  }
  return scores;
}

}  // namespace forge::run

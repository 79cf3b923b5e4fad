#include "core/run/scorer.h"

#include <algorithm>

#include "core/base/error.h"
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
  scorer_ = make_scorer(experiment, first_source(request.evaluation_tokens), tokenizer);
}

void Scorer::add(const worker::Answers& answers) {
  if (!scorer_) throw Error("the worker sent unrequested answers");
  scorer_->add({answers.kind, answers.row, answers.ids, answers.values});
}

std::map<std::string, worker::Score> Scorer::finish() {
  std::map<std::string, worker::Score> scores;
  if (!scorer_) return scores;
  const data::tasks::Scores made = scorer_->finish();
  for (const auto& [name, sum] : made.sums()) {
    scores[name] = {sum.mean(), sum.count};
  }
  return scores;
}

}  // namespace forge::run

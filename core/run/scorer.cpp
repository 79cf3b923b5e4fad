#include "core/run/scorer.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/config/experiment.h"
#include "core/model/parameters.h"

namespace forge::run {
namespace {

using worker::AnswerKind;

std::unique_ptr<data::tasks::Examination> examination_of(const config::Experiment& experiment,
                                                         const worker::TokenSource& rows,
                                                         const std::filesystem::path& tokenizer) {
  data::tasks::ExaminationOptions options;
  options.seq_len = experiment.train.seq_len;
  options.rows = rows.rows;
  options.padded = rows.pad_id.has_value();
  options.tokens = rows.path;
  options.tokenizer = tokenizer;
  options.parameters = model::parameter_count(experiment.model);
  return data::tasks::examination_of(rows.task, options);
}

}  // namespace

void request_answers(const config::Experiment& experiment, worker::Request& request) {
  const worker::TokenSource rows = worker::first_source(request.evaluation_tokens);
  request.answers.clear();
  if (rows.task.empty()) return;
  const data::tasks::Wanted wanted = examination_of(experiment, rows, "")->wanted();
  const auto ask = [&](bool is_wanted, AnswerKind kind) {
    if (is_wanted) request.answers.push_back(kind);
  };
  ask(wanted.likeliest, AnswerKind::likeliest);
  ask(wanted.losses, AnswerKind::loss);
  ask(wanted.log_probabilities, AnswerKind::log_probabilities);
  ask(wanted.continuation, AnswerKind::continuation);
  request.answer_rows = std::min<int64_t>(rows.rows, experiment.train.eval_prompts);
}

Scorer::Scorer(const worker::Request& request, const std::filesystem::path& tokenizer) {
  if (request.answers.empty()) return;
  const config::Experiment experiment = config::experiment_from_json(request.experiment);
  examination_ = examination_of(experiment, first_source(request.evaluation_tokens), tokenizer);
}

void Scorer::add(const worker::Answers& answers) {
  if (!examination_) throw Error("the worker sent unrequested answers");
  switch (answers.kind) {
    case AnswerKind::likeliest: examination_->take_likeliest(answers.row, answers.ids); return;
    case AnswerKind::loss: examination_->take_losses(answers.row, answers.values); return;
    case AnswerKind::log_probabilities:
      examination_->take_log_probabilities(answers.row, answers.values);
      return;
    case AnswerKind::continuation: examination_->take_continuation(answers.row, answers.ids);
  }
}

std::map<std::string, worker::Score> Scorer::finish() {
  std::map<std::string, worker::Score> scores;
  if (!examination_) return scores;
  const data::tasks::Scores made = examination_->finish();
  for (const auto& [name, sum] : made.sums()) {
    scores[name] = {sum.mean(), sum.count};
  }
  return scores;
}

}  // namespace forge::run

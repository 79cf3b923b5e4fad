#include "core/data/prepare_task.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/target.h"
#include "core/data/tasks/rows.h"
#include "core/data/tasks/spec.h"

namespace forge::data {
namespace {

constexpr int64_t most_instances = int64_t{1} << 44;  // that a task can tell apart
constexpr int64_t looked_at = 8;  // rows: where texts are long, not every row has a target

void require_fitting_model(const tasks::Task& task, const config::ModelConfig& model) {
  if (task.vocab_size() <= model.vocab_size) return;
  throw Error("the task " + task.name() + " has " + with_thousands(task.vocab_size()) +
                  " ids, but model.vocab_size is " + with_thousands(model.vocab_size),
              {},
              "set model.vocab_size to " + std::to_string(task.vocab_size()));
}

void require_scored_targets(const tasks::Task& task, uint64_t seed, Split split, int seq_len) {
  const tasks::TaskRows rows(task, seed, split, seq_len);
  std::vector<int32_t> inputs(static_cast<size_t>(seq_len));
  std::vector<int32_t> targets(inputs.size());
  for (int64_t row = 0; row < looked_at; ++row) {
    rows.fill(row, inputs.data(), targets.data());
    for (const int32_t target : targets) {
      if (target != unscored_target) return;
    }
  }
  throw Error("no text of the task " + task.name() + " fits a row of train.seq_len " +
                  with_thousands(seq_len) + (split == Split::evaluation ? " for evaluation" : ""),
              {},
              "raise train.seq_len, or make the task smaller");
}

/// Rows of training that the run consumes. No more instances begin in a row than it has tokens.
int64_t consumed_rows(const config::TrainConfig& train) {
  const int64_t steps = std::max<int64_t>(1, train.max_steps);
  const int64_t step_tokens = train.batch_size * (int64_t{train.seq_len} + 1);
  if (steps > most_instances / step_tokens) {
    throw Error("train.max_steps " + with_thousands(steps) + " of " + with_thousands(step_tokens) +
                    " tokens each need more text of a task than " + with_thousands(most_instances) +
                    " tokens",
                {},
                "lower train.max_steps");
  }
  return steps * train.batch_size;
}

}  // namespace

PreparedData prepare_task(const config::Experiment& experiment) {
  PreparedData prepared;
  prepared.task = tasks::make_spec(experiment.data);
  const auto task = tasks::task_of(prepared.task);
  require_fitting_model(*task, experiment.model);
  for (const Split split : {Split::training, Split::evaluation}) {
    require_scored_targets(*task, experiment.data.seed, split, experiment.train.seq_len);
  }
  prepared.data_fingerprint = tasks::spec_fingerprint(prepared.task);
  prepared.train.push_back({"", 1, "", consumed_rows(experiment.train)});
  const int64_t reported = experiment.train.eval_rows;
  prepared.evaluation.push_back({"", 1, "", reported});
  if (experiment.train.selection_rows > 0)
    prepared.selection.push_back({"", 1, "", experiment.train.selection_rows, reported});
  return prepared;
}

}  // namespace forge::data

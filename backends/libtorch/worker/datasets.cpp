#include "backends/libtorch/worker/datasets.h"

#include "core/base/error.h"
#include "core/data/tasks/spec.h"

namespace forge::worker {
namespace {

/// Rows of several files are alike: the first of them says how all are made.
data::Dataset rows_of(const std::vector<protocol::TokenSource>& sources,
                      const config::Experiment& experiment,
                      data::Split split,
                      data::RowOptions options) {
  if (sources.empty()) throw Error("the request names no rows");
  const config::TrainConfig& train = experiment.train;
  const protocol::TokenSource& first = sources[0];
  if (first.path.empty() && !first.task.empty()) {
    return {data::tasks::task_of(first.task),
            data::tasks::seed_of(first.task),
            split,
            train.seq_len,
            first.rows,
            first.first_row};
  }
  if (train.document_mask && !first.document_start) {
    throw Error("train.document_mask is true, but the request does not say what begins a document",
                {},
                "give document_start with the token file");
  }
  options.seq_len = train.seq_len;
  options.seed = experiment.data.seed;
  if (train.document_mask) options.document_start = first.document_start;
  options.pad_id = first.pad_id;
  std::vector<data::RowSource> rows;
  for (const protocol::TokenSource& source : sources) {
    rows.push_back({source.path, source.rows, source.name, source.weight, source.first_row});
  }
  return {rows, options};
}

}  // namespace

data::Dataset training_rows(const protocol::Request& request,
                            const config::Experiment& experiment) {
  data::RowOptions options;
  options.order = experiment.data.order;
  return rows_of(request.train_tokens, experiment, data::Split::training, options);
}

data::Dataset held_out_rows(const std::vector<protocol::TokenSource>& sources,
                            const config::Experiment& experiment) {
  data::RowOptions options;
  options.turns = data::Turns::one_after_another;
  if (!sources.empty() && sources[0].short_last_row) {
    options.last_row = data::LastRow::may_be_short;
  }
  return rows_of(sources, experiment, data::Split::evaluation, options);
}

}  // namespace forge::worker

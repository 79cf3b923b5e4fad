#include "backends/libtorch/worker/datasets.h"

#include "core/base/error.h"
#include "core/data/tasks/spec.h"

namespace forge::worker {
namespace {

data::Dataset rows_of(const protocol::TokenSource& source,
                      const config::Experiment& experiment,
                      data::Split split,
                      config::RowOrder order,
                      data::LastRow last_row) {
  const config::TrainConfig& train = experiment.train;
  if (source.path.empty() && !source.task.empty()) {
    return {data::tasks::task_of(source.task),
            data::tasks::seed_of(source.task),
            split,
            train.seq_len,
            source.rows};
  }
  if (train.document_mask && !source.document_start) {
    throw Error("train.document_mask is true, but the request does not say what begins a document",
                {},
                "give document_start with the token file");
  }
  data::RowOptions options;
  options.seq_len = train.seq_len;
  options.order = order;
  options.seed = experiment.data.seed;
  options.rows = source.rows;
  if (train.document_mask) options.document_start = source.document_start;
  options.last_row = last_row;
  options.pad_id = source.pad_id;
  return {source.path, options};
}

}  // namespace

data::Dataset training_rows(const protocol::Request& request,
                            const config::Experiment& experiment) {
  return rows_of(request.train_tokens,
                 experiment,
                 data::Split::training,
                 experiment.data.order,
                 data::LastRow::whole);
}

data::Dataset evaluation_rows(const protocol::Request& request,
                              const config::Experiment& experiment) {
  const protocol::TokenSource& source = request.evaluation_tokens;
  return rows_of(source,
                 experiment,
                 data::Split::evaluation,
                 config::RowOrder::sequential,
                 source.short_last_row ? data::LastRow::may_be_short : data::LastRow::whole);
}

}  // namespace forge::worker

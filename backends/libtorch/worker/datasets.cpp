#include "backends/libtorch/worker/datasets.h"

#include "core/base/error.h"

namespace forge::worker {
namespace {

data::Dataset rows_of(const protocol::TokenSource& source,
                      const config::Experiment& experiment,
                      config::RowOrder order,
                      data::LastRow last_row) {
  const config::TrainConfig& train = experiment.train;
  if (train.document_mask && !source.document_start) {
    throw Error("train.document_mask is true, but the request does not say what begins a document",
                {},
                "give document_start with the token file");
  }
  return {source.path,
          train.seq_len,
          order,
          experiment.data.seed,
          source.rows,
          train.document_mask ? source.document_start : std::nullopt,
          last_row};
}

}  // namespace

data::Dataset training_rows(const protocol::Request& request,
                            const config::Experiment& experiment) {
  return rows_of(request.train_tokens, experiment, experiment.data.order, data::LastRow::whole);
}

data::Dataset evaluation_rows(const protocol::Request& request,
                              const config::Experiment& experiment) {
  const protocol::TokenSource& source = request.evaluation_tokens;
  return rows_of(source,
                 experiment,
                 config::RowOrder::sequential,
                 source.short_last_row ? data::LastRow::may_be_short : data::LastRow::whole);
}

}  // namespace forge::worker

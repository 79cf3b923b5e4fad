#include "backends/libtorch/worker/logits.h"

#include "backends/libtorch/worker/batch.h"
#include "backends/libtorch/worker/trainer.h"
#include "backends/libtorch/worker/weights.h"
#include "core/base/error.h"
#include "core/config/json.h"

namespace forge::worker {

protocol::Result write_logits(const protocol::Request& request, const at::Device& device) {
  if (request.output.empty()) throw Error("logits need 'output', the file to write");
  const config::Experiment experiment = config::experiment_from_json(request.experiment);
  Trainer trainer(experiment, device);
  load_beginning(
      trainer.model(), experiment.seed, request.initial_weights, request.initial_weights_hash);
  if (request.evaluation_tokens.empty()) throw Error("logits need 'evaluation_tokens'");
  const protocol::TokenSource& tokens = request.evaluation_tokens[0];
  const data::Dataset dataset(
      tokens.path, {experiment.train.seq_len, config::RowOrder::sequential, 0, tokens.rows});
  const at::NoGradGuard no_grad;
  const Batch batch = load_batch(dataset, 0, dataset.rows(), device);
  std::vector<at::Tensor> owners;
  const auto views = views_of(
      {{"input_ids", batch.inputs}, {"logits", trainer.model().logits(batch.inputs)}}, owners);
  const int64_t bytes = weights::write_safetensors(request.output, views);
  return {{{"output", request.output}, {"rows", dataset.rows()}, {"bytes", bytes}}};
}

}  // namespace forge::worker

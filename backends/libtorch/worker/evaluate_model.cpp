#include "backends/libtorch/worker/evaluate_model.h"

#include <iostream>

#include "backends/libtorch/worker/answers.h"
#include "backends/libtorch/worker/datasets.h"
#include "backends/libtorch/worker/device.h"
#include "backends/libtorch/worker/evaluate.h"
#include "backends/libtorch/worker/weights.h"
#include "core/base/clock.h"
#include "core/config/json.h"

namespace forge::worker {
namespace {

LlamaCanon load_model(const protocol::Request& request,
                      const config::Experiment& experiment,
                      const at::Device& device) {
  LlamaCanon model(experiment.model, weight_types(experiment.train), device);
  load_beginning(model, experiment.seed, request.initial_weights, request.initial_weights_hash);
  return model;
}

}  // namespace

protocol::Result evaluate_model(const protocol::Request& request,
                                const at::Device& device,
                                const EventWriter& events) {
  const config::Experiment experiment = config::experiment_from_json(request.experiment);
  const LlamaCanon model = load_model(request, experiment, device);
  const data::Dataset dataset = held_out_rows(request.evaluation_tokens, experiment);
  const Answers answers(request, experiment, events);
  const auto progress = [&](double fraction) {
    events.send(protocol::Progress{0, "evaluate", fraction});
  };
  const double began = steady_seconds();
  const auto say_halving = [](const Halving& halving) {
    std::cerr << "note: " << halving.reason << "\nnote: " << halving.rows
              << " rows are evaluated at once from now on\n";
  };
  Evaluator evaluator(model, dataset, experiment.train.eval_batch_size, device, say_halving);
  const EvaluationResult result = evaluator.evaluate(progress, answers.row_sink(0));
  answers.send_continuations(0, model, progress);
  return {
      {{"loss", result.loss}, {"tokens", result.tokens}, {"seconds", steady_seconds() - began}}};
}

}  // namespace forge::worker

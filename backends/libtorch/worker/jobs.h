#pragma once

#include <functional>
#include <istream>

#include "backends/libtorch/model/model.h"
#include "backends/libtorch/torch_precompiled.h"
#include "backends/libtorch/worker/events.h"
#include "core/worker/messages.h"

namespace forge::libtorch {

/// Trains as the request says, from its checkpoint where it names one, and sends every event up to
/// and including Finished. Returns whether all steps were done (false: stopped on request).
bool train(const worker::Request& request, const at::Device& device, const EventWriter& events);

/// The job `evaluate`: the loss of a model at one of its checkpoints over the evaluation rows of
/// the request. The result holds loss, tokens and seconds.
worker::Result evaluate_model(const worker::Request& request,
                              const at::Device& device,
                              const EventWriter& events);

/// How many tokens were read and drawn, and how long that took.
struct GenerationTiming {
  int64_t prefill_tokens = 0, decode_tokens = 0;
  double prefill_seconds = 0, decode_seconds = 0;
};

/// Generates tokens after prompts and reports each step of a batch, until all are done or
/// `stopped`. Throws Error for a request that cannot be done.
GenerationTiming generate_tokens(const Model& model,
                                 const worker::Generation& wanted,
                                 const std::function<void(const worker::Tokens&)>& on_tokens,
                                 const std::function<bool()>& stopped);

/// Generates tokens after the prompts of `request.generation`, with the weights that a run of the
/// request would begin with. Sends a `tokens` event for each step of a batch. Values:
/// prefill_tokens and prefill_seconds (prompts, once each), decode_tokens and decode_seconds (all
/// tokens but the first of each sample). Throws Error for a request that cannot be done.
worker::Result generate(const worker::Request& request,
                        const at::Device& device,
                        const EventWriter& events);

/// Writes `request.output`, a safetensors file with the rows of the evaluation tokens as
/// `input_ids` (I32 [rows, T]) and the model's `logits` for them (F32, or F64 in train.precision
/// float64, [rows, T, V]). The weights are those that a run of the request would begin with. All
/// rows are in memory at once: this is for comparing a model with another implementation.
worker::Result write_logits(const worker::Request& request, const at::Device& device);

/// Training speed of the request's experiment on random token ids: a warm-up, `ready`, then a
/// `window` for each line of `input` that asks for one, and at the end of input a `result` with the
/// parts of a step, the memory of the windows and the device's ceiling. Throws forge::Error for a
/// line that is no such request.
void bench(const worker::Request& request,
           const at::Device& device,
           const EventWriter& events,
           std::istream& input);

/// Measures the operations that a request of `bench_ops` names, each beside plain Torch in
/// alternating windows: a `result` for each as it is measured, before them one with the device's
/// ceilings. Throws forge::Error for an operation, a size or a precision that there is not.
void bench_operations(const worker::Request& request,
                      const at::Device& device,
                      const EventWriter& events);

/// Measures how fast the processes of the request move rows of `link_bytes` bytes between them: a
/// `result` for each size and operation as it is measured. Throws forge::Error for a single
/// process, and for a size that has no equal parts.
void bench_links(const worker::Request& request,
                 const at::Device& device,
                 const EventWriter& events);

}  // namespace forge::libtorch

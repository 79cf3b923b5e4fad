#pragma once

#include <functional>
#include <memory>

#include "backends/libtorch/model/llama_canon.h"
#include "backends/libtorch/worker/evaluate.h"
#include "backends/libtorch/worker/event_writer.h"
#include "core/config/experiment.h"
#include "core/data/tasks/rows.h"
#include "core/protocol/messages.h"

namespace forge::worker {

/// Answers what a request asks about the rows of an evaluation beside their loss, in `answers`
/// events (docs/PROTOCOL.md).
class Answers {
 public:
  /// The request outlives it. Throws Error for a question that the request's rows cannot have.
  Answers(const protocol::Request& request,
          const config::Experiment& experiment,
          const EventWriter& events);

  /// What answers for the rows of an evaluation; nothing where nobody asks about their logits.
  RowSink row_sink(int64_t step) const;

  /// What the model writes behind the prompts. `progress` is told which part is done.
  void send_continuations(int64_t step,
                          const LlamaCanon& model,
                          const std::function<void(double)>& progress) const;

 private:
  bool wants(protocol::AnswerKind kind) const;
  void send_rows(int64_t step,
                 int64_t first_row,
                 const at::Tensor& logits,
                 const at::Tensor& targets) const;
  /// `answers` with its step and row, logits [T, V].
  protocol::Answers probabilities(protocol::Answers answers, const at::Tensor& logits) const;

  const protocol::Request& request_;
  const EventWriter& events_;
  int seq_len_;
  int batch_size_;
  std::unique_ptr<const data::tasks::Task> task_;  ///< where the rows are a task's
  std::optional<data::tasks::TaskRows> rows_;
};

}  // namespace forge::worker

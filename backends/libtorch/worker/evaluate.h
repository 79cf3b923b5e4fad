#pragma once

#include <functional>
#include <memory>

#include "backends/libtorch/model/model.h"
#include "backends/libtorch/worker/batch.h"
#include "backends/libtorch/worker/cuda.h"
#include "backends/libtorch/worker/events.h"
#include "backends/libtorch/worker/memory.h"
#include "backends/libtorch/worker/process_group.h"
#include "core/config/experiment.h"
#include "core/data/rows/dataset.h"
#include "core/data/tasks/task_rows.h"
#include "core/worker/messages.h"

namespace forge::libtorch {

struct EvaluationResult {
  double loss = 0;                  ///< token-weighted mean negative log likelihood
  int64_t tokens = 0;               ///< scored
  std::vector<double> row_losses;   ///< the same of each row; 0 where nothing is scored
  std::vector<int64_t> row_tokens;  ///< scored in each row
};

/// Receives rows from first_row on: logits [B, T, V], int32 targets [B, T].
using LogitsSink =
    std::function<void(int64_t first_row, const at::Tensor& logits, const at::Tensor& targets)>;

/// Evaluates a model on the rows of data sets, any number of times. On a GPU the work on a batch is
/// recorded and replayed, and the host waits for the device once, at the end of a data set.
class Evaluator {
 public:
  /// The model outlives it, and so does `group`: of its processes each evaluates some batches, and
  /// all get the whole result. Rows have seq_len tokens.
  Evaluator(const Model& model,
            int seq_len,
            int batch_size,
            const at::Device& device,
            OnMicroBatch on_micro_batch = {},
            ProcessGroup* group = nullptr);

  int batch_size() const { return batch_size_; }
  void set_batch_size(int rows);

  /// Mean loss over all rows, in order, batch_size rows at a time. If memory runs out, the batch
  /// size is halved; throws c10::OutOfMemoryError if one row does not fit. `progress` is called
  /// with the fraction done after each batch. Whole logits are computed only for `on_rows`; then
  /// nothing is recorded, and the first process evaluates all rows.
  EvaluationResult evaluate(const data::Dataset& dataset,
                            const std::function<void(double)>& progress,
                            const LogitsSink& on_rows = {});

 private:
  /// Whether this process evaluates the batch that begins with a row.
  bool is_own(int64_t row, bool wants_logits) const;
  /// Takes the sums of the rows that other processes evaluated.
  void gather_rows();
  /// Evaluates rows from `row` on.
  void evaluate_rows(const data::Dataset& dataset,
                     int64_t row,
                     int count,
                     const LogitsSink& on_rows);

  const Model& model_;
  const int dealt_;  ///< so many rows after each other are of one process
  int batch_size_;
  at::Device device_;
  OnMicroBatch on_micro_batch_;
  ProcessGroup* group_;
  BatchUploader uploader_;  ///< of whole batches: a CUDA graph needs fixed addresses
  StepGraph graph_;         ///< of a whole batch
  at::Tensor batch_sums_;   ///< of the losses of each row of a whole batch, for the graph
  at::Tensor sums_;         ///< of each row of the data set, float64 [rows], on the device
  std::vector<int64_t> row_tokens_;
};

/// Sends what a request asks about the rows of an evaluation beside their loss, as `answers` events
/// (docs/PROTOCOL.md).
class AnswerSender {
 public:
  /// The request outlives it. Throws Error for a question that its rows cannot answer.
  AnswerSender(const worker::Request& request,
               const config::Experiment& experiment,
               const EventWriter& events);

  /// Sends the answers about logits; empty if the request asks for none.
  LogitsSink logits_sink(int64_t step) const;

  /// Sends the continuations of the prompts. `progress` is called with the fraction done.
  void send_continuations(int64_t step,
                          const Model& model,
                          const std::function<void(double)>& progress) const;

 private:
  bool wants(worker::AnswerKind kind) const;
  void send_rows(int64_t step,
                 int64_t first_row,
                 const at::Tensor& logits,
                 const at::Tensor& targets) const;
  /// `answers` with its step and row, logits [T, V].
  worker::Answers probabilities(worker::Answers answers, const at::Tensor& logits) const;

  const worker::Request& request_;
  const EventWriter& events_;
  int seq_len_;
  int batch_size_;
  std::unique_ptr<const data::tasks::Task> task_;  ///< if the rows are a task's
  std::optional<data::tasks::TaskRows> rows_;
};

}  // namespace forge::libtorch

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config/experiment.h"
#include "core/worker/messages.h"

namespace forge::run {

/// Whether what a worker says fits to the config and to what it said before: docs/PROTOCOL.md,
/// "Order and sense". One worker's events, in their order.
class EventChecker {
 public:
  /// `evaluation_tokens`: those of its request. `processes`: that were started for the worker.
  EventChecker(const config::TrainConfig& train,
               const std::vector<worker::TokenSource>& evaluation_tokens,
               int processes);

  /// Throws Error for an event that cannot be true.
  void check(const worker::Event& event);

 private:
  void check_start(const worker::Started& started);
  void check_end(const worker::Finished& finished);
  void check_failure(const worker::Failed& failed) const;
  void take_step(const std::string& event, int64_t step);
  void require_within(const std::string& event, int64_t step) const;
  void require_micro_batch(int64_t rows) const;
  void require_all_rows(const worker::Evaluation& evaluation) const;

  int64_t max_steps_;
  int64_t batch_size_;
  int64_t tokens_per_step_;
  int64_t gradient_slots_;
  int64_t processes_;
  int64_t evaluation_targets_;  ///< of all its rows
  bool scores_all_targets_;     ///< no row has pads or begins of documents, which are not scored
  bool evaluates_;
  bool said_hello_ = false;
  bool started_ = false;
  int64_t first_step_ = 0;
  int64_t parameters_ = 0;
  int64_t step_ = 0;                              ///< the newest that it told of
  std::optional<worker::TrainMetrics> train_;     ///< the last one
  std::optional<worker::Evaluation> evaluation_;  ///< likewise
};

}  // namespace forge::run

#pragma once

#include <optional>
#include <string>

#include "core/run/event_log.h"
#include "core/worker/messages.h"

namespace forge::app {

/// The live line of a run, gathered from its events.
class RunView {
 public:
  /// `time`: in seconds since 1970.
  void take(const worker::Event& event, double time);

  bool started() const { return pace_.max_steps() > 0; }

  /// Of its steps, 0 to 1.
  double fraction() const { return pace_.fraction(); }

  /// "step 120/300  ETA 12s  loss 1.2345  …": the end may not fit into the terminal
  std::string text() const;

  /// "40 %  loss 1.2345"
  std::string short_text() const;

 private:
  run::Pace pace_;
  std::string phase_;
  std::optional<double> loss_, eval_loss_;
  std::string score_;                        ///< of the last evaluation, with its name
  std::optional<double> tokens_per_second_;  ///< the last one that was measured
};

}  // namespace forge::app

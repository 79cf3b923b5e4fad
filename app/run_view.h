#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/protocol/messages.h"

namespace forge::app {

/// What a live line shows of a run, gathered from its events.
class RunView {
 public:
  void take(const protocol::Event& event);
  bool started() const { return max_steps_ > 0; }
  /// Of its steps, 0 to 1.
  double fraction() const;
  /// "step 120/300  loss 1.2345  …  ETA 12s"
  std::string text() const;
  /// "40 %  loss 1.2345"
  std::string short_text() const;

 private:
  int64_t step_ = 0, first_step_ = 0, max_steps_ = 0;
  std::string phase_;
  std::optional<double> loss_, eval_loss_;
  std::string score_;  ///< of the last evaluation, with its name
  double tokens_per_second_ = 0;
  double began_ = 0;
};

}  // namespace forge::app

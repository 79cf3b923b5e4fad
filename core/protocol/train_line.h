#pragma once

#include <optional>
#include <string>

#include "core/protocol/messages.h"

namespace forge::protocol {

/// A stored `train` event without its JSON.
struct TrainLine {
  double time = 0;  ///< seconds since 1970
  int attempt = 0;
  TrainMetrics metrics;
};

/// The line as the supervisor writes it: a flat object with every field a plain number. Nothing for
/// any other line, also for a train event whose loss is no number: event_from_line reads those, and
/// these to the same values. Nearly all lines of a run are of this kind, and this is ten times as
/// fast.
std::optional<TrainLine> train_from_line(const std::string& line);

}  // namespace forge::protocol

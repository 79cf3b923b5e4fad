#pragma once

#include <cstdint>

#include "core/benchmark/measure.h"

namespace forge::benchmark {

/// What a few seconds of training say of a config.
struct Probe {
  double seconds_per_step = 0;  ///< of the faster of two windows
  int64_t memory_bytes = 0;     ///< held by tensors at the peak, 0: not said
};

/// Trains on the subject's own rows for two windows and keeps nothing. Throws Error as
/// measure_in_turns does.
Probe probe(run::Launcher& launcher, const Subject& subject, const OnProgress& on_progress);

}  // namespace forge::benchmark

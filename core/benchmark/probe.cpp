#include "core/benchmark/probe.h"

#include <algorithm>
#include <limits>

namespace forge::benchmark {

Probe probe(run::Launcher& launcher, const Subject& subject, const OnProgress& on_progress) {
  const Measurement measured = measure_in_turns(launcher, {subject}, 2, on_progress).front();
  Probe probe;
  probe.seconds_per_step = std::numeric_limits<double>::infinity();
  for (const protocol::Window& window : measured.windows)
    probe.seconds_per_step = std::min(probe.seconds_per_step,
                                      window.seconds / double(std::max<int64_t>(window.steps, 1)));
  probe.memory_bytes = measured.result.value("peak_memory_bytes", int64_t{0});
  return probe;
}

}  // namespace forge::benchmark

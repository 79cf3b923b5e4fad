#pragma once

#include "core/benchmark/record.h"

namespace forge::benchmark {

/// Has a worker measure its operations one after the other, each beside plain operations of its
/// library. `on_case` gets the numbers of each as they come (docs/PROTOCOL.md: bench_ops). Throws
/// Error as run::run_job does.
Record measure_operations(run::Launcher& launcher,
                          const run::WorkerCommand& command,
                          const protocol::Request& request,
                          const Call& call,
                          const std::function<void(const nlohmann::json&)>& on_case);

}  // namespace forge::benchmark

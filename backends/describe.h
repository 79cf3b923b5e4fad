#pragma once

#include "core/run/backend.h"

namespace forge::backends {

/// Starts the worker and asks what it is. Throws Error as run::run_job does, and where it leaves
/// without having said hello and environment.
run::BackendInfo ask_worker(run::Launcher& launcher,
                            const run::WorkerCommand& command,
                            const protocol::Request& request);

/// The request that asks for it.
protocol::Request describe_request(const std::string& device, int threads);

}  // namespace forge::backends

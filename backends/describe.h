#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/run/backend.h"

namespace forge::backends {

/// Starts the worker and asks what it is. Throws Error as run::run_job does, and where it leaves
/// without having said hello and environment.
run::BackendInfo ask_worker(run::Launcher& launcher,
                            const run::WorkerCommand& command,
                            const protocol::Request& request);

/// What may change a worker's answer though its own files stay as they are: the machine (a home
/// folder may be shared between many), its cores and GPUs, and the variables that libraries heed.
nlohmann::json machine_key();

/// Where the answer is kept, by everything that may change it.
std::filesystem::path description_file(const std::filesystem::path& cache_folder,
                                       const nlohmann::json& key);
/// What was kept, or nothing where that is older than `longest_seconds` or damaged: damage only
/// means to ask again.
std::optional<run::BackendInfo> read_description(const std::filesystem::path& file,
                                                 double longest_seconds);
/// Keeps it. A cache that cannot be written costs the time of a start, no more.
void write_description(const std::filesystem::path& file, const run::BackendInfo& info);

/// The request that asks for it.
protocol::Request describe_request(const std::string& device, int threads);

}  // namespace forge::backends

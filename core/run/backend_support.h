#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "core/config/layers.h"
#include "core/worker/launcher.h"
#include "core/worker/messages.h"

/// What a backend said that it can do, beside what a run asks of it.
namespace forge::run {

/// Throws Error at the place of the first config key whose value the backend said that it cannot
/// do, naming the values that it can. A backend that said nothing of the key, or nothing at all, is
/// taken at its word when it is asked to train.
void require_supported(const nlohmann::json& experiment,
                       const config::Origins& origins,
                       const worker::BackendInfo& backend);

/// Throws Error where the backend said that it does not do such a job.
void require_job(worker::Job job, const worker::BackendInfo& backend);

/// Stands in what a backend supports for training by several processes. It limits no value.
constexpr const char* parallel_key = "parallel";

/// Throws Error at the place of parallel.processes where the backend did not say that it trains by
/// several processes, and the config asks for more than one.
void require_processes(const config::Experiment& experiment,
                       const config::Origins& origins,
                       const worker::BackendInfo& backend);
/// Whether the backend said so: `parallel` of its `supports`.
bool trains_by_several_processes(const worker::BackendInfo& backend);

/// As require_supported, for a job that only reads a model: of its config the keys below `model`
/// and train.precision count, whatever it takes to train it.
void require_readable(worker::Job job,
                      const config::Experiment& experiment,
                      const worker::BackendInfo& backend);

/// Throws Error where the device that the user asked for is not one that the backend would run on:
/// its run could not go on. "auto" and "" are any.
void require_device(const std::string& device, const worker::BackendInfo& backend);

}  // namespace forge::run

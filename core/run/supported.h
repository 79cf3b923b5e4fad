#pragma once

#include <nlohmann/json.hpp>

#include "core/config/layers.h"
#include "core/run/backend.h"

namespace forge::run {

/// Throws Error at the place of the first config key whose value the backend said that it cannot
/// do, naming the values that it can. A backend that said nothing of the key, or nothing at all, is
/// taken at its word when it is asked to train.
void require_supported(const nlohmann::json& experiment,
                       const config::Origins& origins,
                       const BackendInfo& backend);

/// Throws Error where the backend said that it does not do such a job.
void require_job(protocol::Job job, const BackendInfo& backend);

/// The same for a job that only reads a model: of its config the keys below `model` and
/// train.precision count, whatever it takes to train it.
void require_readable(protocol::Job job,
                      const config::Experiment& experiment,
                      const BackendInfo& backend);

}  // namespace forge::run

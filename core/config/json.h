#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/config/experiment.h"

namespace forge::config {

/// Every key of the experiment under its schema name, complete and in alphabetical order.
nlohmann::json to_json(const Experiment& experiment);

/// Inverse of to_json, for a config.json that forge wrote. A missing key keeps the default, so an
/// older run stays readable; an unknown or ill-typed one throws Error.
Experiment experiment_from_json(const nlohmann::json& json);

}  // namespace forge::config

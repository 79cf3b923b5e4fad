#pragma once

#include <nlohmann/json.hpp>

namespace forge::tests {

/// What core/statistics says of a case of run_statistics.py, as statistics_oracle.py writes it.
nlohmann::json answer_statistics(const nlohmann::json& question);

}  // namespace forge::tests

#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/store/run_summary.h"

namespace forge::app {

/// A run's result in some lines, its folder included. `config` is the run's resolved config.
std::string result_text(const store::RunSummary& run,
                        const nlohmann::json& config,
                        const std::string& folder,
                        bool colour);

/// Runs as a table, one a line.
std::string result_table(const std::vector<store::RunSummary>& runs, bool colour);

/// Every column of the store, under its name, and the scores of the last evaluation.
/// The named columns alone.
std::string column_table(const std::vector<store::RunSummary>& runs,
                         const std::vector<std::string>& columns);

nlohmann::json to_json(const store::RunSummary& run);
/// {NAME: {"value", "count"}}
nlohmann::json to_json(const std::map<std::string, protocol::Score>& scores);
nlohmann::json to_json(const protocol::Evaluation& evaluation);

}  // namespace forge::app

#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "core/report/ablation.h"

/// Tables for programs: figures in full, under the names that configs and the store use.
namespace forge::report {

/// RFC 4180 with a header line. A figure that is not there is empty, one that is no number "nan".
std::string to_csv(const Ablation& ablation);

/// {"table", "title", "baseline", "profile", "setup", "rows": [{"config", "status", "run_id", …}],
///  "left_out"}. A figure that is not there is null.
nlohmann::ordered_json to_json(const Ablation& ablation);

}  // namespace forge::report

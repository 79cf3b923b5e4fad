#include "core/store/run_summary.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"

namespace forge::store {

run::RunState status_from_name(const std::string& name) {
  const std::vector<std::string>& names = run::names_of(run::RunState{});
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw Error("'" + name + "' is not one of " + join(names, ", "));
  return static_cast<run::RunState>(found - names.begin());
}

bool is_final(run::RunState status) {
  return status != run::RunState::queued && status != run::RunState::running;
}

int progress_percent(const RunSummary& run) {
  if (run.max_steps <= 0) return 0;
  const double part = static_cast<double>(run.step) / static_cast<double>(run.max_steps);
  return static_cast<int>(100 * std::clamp(part, 0.0, 1.0));
}

}  // namespace forge::store

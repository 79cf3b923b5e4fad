#include "core/store/run_summary.h"

#include <algorithm>

#include "core/base/error.h"

namespace forge::store {
namespace {

constexpr run::RunState all_states[] = {run::RunState::queued,
                                        run::RunState::running,
                                        run::RunState::completed,
                                        run::RunState::stopped,
                                        run::RunState::failed};

}  // namespace

const char* status_name(run::RunState status) {
  switch (status) {
    case run::RunState::queued: return "queued";
    case run::RunState::running: return "running";
    case run::RunState::completed: return "completed";
    case run::RunState::stopped: return "stopped";
    case run::RunState::failed: return "failed";
  }
  return "";
}

run::RunState status_from_name(const std::string& name) {
  for (const run::RunState state : all_states) {
    if (name == status_name(state)) return state;
  }
  throw Error("'" + name + "' is no status of a run",
              {},
              "one of queued, running, completed, stopped, failed");
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

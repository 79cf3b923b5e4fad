#include "core/results/tables/run_times.h"

#include <algorithm>

namespace forge::tables {

using store::RunSummary;

const std::string& begun_at(const RunSummary& run) {
  return run.begun.empty() ? run.created : run.begun;
}

const std::string& made_at(const RunSummary& run) { return std::max(begun_at(run), run.imported); }

const std::string& told_at(const RunSummary& run) {
  return run.first_loss.empty() ? run.updated : run.first_loss;
}

}  // namespace forge::tables

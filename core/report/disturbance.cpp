#include "core/report/disturbance.h"

#include <algorithm>

#include "core/report/figures.h"

namespace forge::report {
namespace {

bool was_busy(const store::RunSummary& run) { return run.busy_elsewhere.value_or(0) >= busy_from; }

}  // namespace

bool is_disturbed(const store::RunSummary& run) { return was_busy(run) || run.shared_device != 0; }

bool is_disturbed(const Sample& sample) {
  return std::any_of(sample.runs.begin(), sample.runs.end(), [](const store::RunSummary& run) {
    return is_disturbed(run);
  });
}

std::string disturbance_of(const store::RunSummary& run) {
  std::string text;
  if (was_busy(run))
    text = "other processes kept " + percent_text(*run.busy_elsewhere) + " of the machine busy";
  if (run.shared_device == 0) return text;
  const std::string shared = "another process held memory of its GPU";
  return text.empty() ? shared : text + " and " + shared;
}

std::string disturbance_of(const Sample& sample) {
  const auto most =
      std::max_element(sample.runs.begin(),
                       sample.runs.end(),
                       [](const store::RunSummary& a, const store::RunSummary& b) {
                         const auto rank = [](const store::RunSummary& run) {
                           return std::make_pair(run.shared_device, run.busy_elsewhere.value_or(0));
                         };
                         return rank(a) < rank(b);
                       });
  return most == sample.runs.end() ? "" : disturbance_of(*most);
}

}  // namespace forge::report

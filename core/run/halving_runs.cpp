#include "core/run/halving_runs.h"

#include <algorithm>
#include <map>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/run/event_log.h"

namespace forge::run {
namespace {

/// The compared value as a loss: lower is better.
double loss_of(const worker::Evaluation& evaluation,
               const HalvingRule& rule,
               const RunFolder& folder) {
  double value = evaluation.loss;
  if (rule.by == "validation_loss") {
    if (!evaluation.validation_loss)
      throw Error("halving compares validation_loss, and the evaluation of run '" + folder.id() +
                      "' at step " + std::to_string(evaluation.step) + " has none",
                  "its worker did not measure it there; 'halving: {by: eval_loss}' in a "
                  "sweep file compares what every evaluation has");
    value = *evaluation.validation_loss;
  } else if (rule.is_by_score()) {
    const auto score = evaluation.scores.find(rule.by);
    if (score == evaluation.scores.end()) {
      std::vector<std::string> names = {"eval_loss"};
      for (const auto& [name, unused] : evaluation.scores) names.push_back(name);
      throw Error("halving compares " + rule.by + ", and the evaluation of run '" + folder.id() +
                      "' at step " + std::to_string(evaluation.step) + " has none",
                  did_you_mean(rule.by, names, "it has " + join(names, ", ")));
    }
    value = score->second.value;
  }
  return rule.takes_highest() ? -value : value;
}

/// What the events say.
struct Found {
  std::map<int64_t, double> losses;  ///< by step, at rungs
  int64_t sent_to = 0;               ///< the furthest rung that a search sent the run to
  int64_t counts_to = 0;             ///< the furthest step that any command trained it to
};

Found read_found(const RunFolder& folder,
                 const HalvingRule& rule,
                 const std::vector<int64_t>& rung_steps) {
  Found found;
  EventReader reader(folder.events_file(), 0);
  while (const auto line = reader.next()) {
    if (!line->event) continue;
    if (const auto& started = line->event->started) {
      const int64_t stop_after = started->stop_after.value_or(0);
      // Another step is a rung of another search, which promotes nobody in this one.
      if (std::binary_search(rung_steps.begin(), rung_steps.end(), stop_after))
        found.sent_to = std::max(found.sent_to, stop_after);
      found.counts_to = std::max(found.counts_to, stop_after > 0 ? stop_after : rung_steps.back());
    }
    if (!line->event->event) continue;
    const auto* finished = std::get_if<worker::Finished>(&*line->event->event);
    if (finished && finished->completed) found.counts_to = rung_steps.back();
    const auto* evaluation = std::get_if<worker::Evaluation>(&*line->event->event);
    if (evaluation && std::binary_search(rung_steps.begin(), rung_steps.end(), evaluation->step))
      found.losses[evaluation->step] = loss_of(*evaluation, rule, folder);
  }
  return found;
}

}  // namespace

Contestant read_contestant(const RunFolder& folder,
                           const HalvingRule& rule,
                           const std::vector<int64_t>& rung_steps) {
  const Found found = read_found(folder, rule, rung_steps);
  Contestant contestant;
  for (const int64_t step : rung_steps) {
    const auto loss = found.losses.find(step);
    if (step > found.counts_to || loss == found.losses.end()) break;
    contestant.losses.push_back(loss->second);
  }
  if (found.sent_to > 0) {
    const auto aim = std::lower_bound(rung_steps.begin(), rung_steps.end(), found.sent_to);
    contestant.aim = int(aim - rung_steps.begin());
  }
  contestant.aim = std::max(contestant.aim, int(contestant.losses.size()) - 1);
  return contestant;
}

}  // namespace forge::run

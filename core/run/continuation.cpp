#include "core/run/continuation.h"

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/config/json.h"
#include "core/config/resumable.h"
#include "core/run/event_log.h"
#include "core/weights/checkpoint.h"

namespace forge::run {
namespace {

using Json = nlohmann::json;

/// Beside the config, what makes the same steps must be the same.
void check_same_surroundings(const RunFolder& other, const Identity& identity) {
  Json theirs = to_json(other.record().identity);
  Json ours = to_json(identity);
  // Initial weights are in the checkpoint, whatever they were.
  for (const char* key : {"experiment", "initial_weights"}) {
    theirs.erase(key);
    ours.erase(key);
  }
  for (const auto& [key, value] : ours.items()) {
    if (theirs.contains(key) && theirs.at(key) == value) continue;
    std::string hint = "start a new run";
    if (key == "data_fingerprint") {
      hint =
          "the data must be the same text, cut into the same rows: generated text is made for "
          "the steps that it is for";
    }
    throw Error("cannot go on from run '" + other.id() + "': its " + key + " is " +
                    theirs.value(key, Json()).dump() + " and would be " + value.dump(),
                {},
                hint);
  }
}

int64_t step_of(const StoredEvent& stored) {
  if (stored.name != "train" && stored.name != "evaluation") return -1;
  return stored.json.at("step").get<int64_t>();
}

}  // namespace

Continuation find_continuation(const RunFolder& other,
                               const Identity& identity,
                               const Json& experiment) {
  check_same_surroundings(other, identity);
  const config::Experiment before =
      config::experiment_from_json(Json::parse(read_file(other.config_file())));
  const config::Experiment now = config::experiment_from_json(experiment);
  const std::vector<fs::path> folders = weights::list_checkpoints(other.checkpoints());
  std::string newest_problem = "it has no checkpoint";
  std::string hint = "start a new run";
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) {
    try {
      const int64_t step = weights::read_checkpoint_state(*folder).step;
      config::check_resumable(before, now, step);
      return {fs::absolute(*folder), other.events_file(), step, before.train.log_every};
    } catch (const Error& problem) {
      if (folder != folders.rbegin()) continue;
      newest_problem = problem.message();
      if (!problem.hint().empty()) hint = problem.hint();
    }
  }
  throw Error("cannot go on from run '" + other.id() + "': " + newest_problem, {}, hint);
}

std::string earlier_events(const Continuation& continuation) {
  std::string lines;
  for (const StoredEvent& stored : read_events(continuation.events)) {
    const int64_t step = step_of(stored);
    if (step < 0 || step > continuation.step) continue;
    // What was left of a window when the budget was spent is no window of the longer run.
    if (stored.name == "train" && step % continuation.log_every != 0) continue;
    Json event = stored.json;
    event["attempt"] = 0;
    lines += protocol::to_line(event) + "\n";
  }
  return lines;
}

}  // namespace forge::run

#include "core/run/continue_from.h"

#include <climits>
#include <map>
#include <optional>

#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/model/weights/checkpoint.h"
#include "core/run/event_log.h"
#include "core/run/repetition.h"
#include "core/run/request.h"
#include "core/worker/json_fields.h"

namespace forge::run {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

/// Beside the config, what makes the same steps must be the same.
void check_same_environment(const RunFolder& other, const Identity& identity) {
  Json theirs = worker::write_fields(other.record().identity);
  Json ours = worker::write_fields(identity);
  theirs.erase("experiment");  // check_resumable compares it key by key
  ours.erase("experiment");
  for (const auto& [key, value] : ours.items()) {
    if (theirs.contains(key) && theirs.at(key) == value) continue;
    std::string hint = "start a new run";
    if (key == "data_fingerprint") {
      hint =
          "the data must be the same text, cut into the same rows: generated text is made for "
          "the steps that it is for";
    }
    throw Error("cannot continue run '" + other.id() + "': its " + key + " is " +
                    json_text(theirs.value(key, Json())) + " and would be " + json_text(value),
                hint);
  }
}

/// Rows are shuffled among as many as the run trains on: with more of them the first come in
/// another order.
void check_same_order(const RunFolder& other,
                      const config::Experiment& experiment,
                      const std::vector<worker::TokenSource>& train_tokens) {
  if (experiment.data.order != config::RowOrder::shuffled || train_tokens.empty()) return;
  const auto rows_of = [](const std::vector<worker::TokenSource>& sources) {
    std::vector<std::string> rows;
    for (const worker::TokenSource& source : sources) rows.push_back(with_thousands(source.rows));
    return join(rows, " + ");
  };
  const std::string theirs = rows_of(read_request(other).train_tokens);
  const std::string ours = rows_of(train_tokens);
  if (theirs == ours) return;
  throw Error("cannot continue run '" + other.id() + "': it trains on " + theirs +
                  " shuffled rows, and with " + ours + " the finished steps would have had others",
              "text that forge generates is made for the steps that it is for: start a new run, or "
              "train both with data.order=sequential");
}

/// The new run takes over what the other one measured of its steps: it must have measured the same.
void check_same_measurements(const RunFolder& other, const Json& theirs, const Json& ours) {
  for (const char* key : {"train.log_every",
                          "train.eval_every",
                          "train.eval_rows",
                          "train.eval_batch_size",
                          "train.eval_prompts",
                          "train.validation_rows"}) {
    const Json *before = find_value(theirs, key), *now = find_value(ours, key);
    if (!before || !now || *before == *now) continue;
    throw Error("cannot continue run '" + other.id() + "': " + key + " is " + json_text(*now) +
                    " and was " + json_text(*before) +
                    " when the losses of its steps were measured, which the new run takes over",
                "--set " + std::string(key) + "=" + json_text(*before) +
                    " continues it; or start a new run");
  }
}

/// While it trains it has not said yet what marks its steps, and its newest checkpoint is none of
/// those that it will end with.
void check_ended(const RunFolder& other) {
  if (!other.is_running()) return;
  const std::string id = shell_quoted(other.id());
  throw Error("cannot continue run '" + other.id() + "': it still trains",
              "wait for its end ('forge runs logs " + id +
                  " -f' follows it), or 'forge runs stop " + id + "' saves and stops it",
              ExitCode::failed);
}

int64_t step_of(const StoredEvent& stored) {
  if (stored.name != "train" && stored.name != "evaluation") return -1;
  return stored.json.at("step").get<int64_t>();
}

}  // namespace

ContinueFrom find_continue_checkpoint(const RunFolder& other,
                                      const Identity& identity,
                                      const Json& experiment,
                                      const std::vector<worker::TokenSource>& train_tokens,
                                      const fs::path& runs_dir) {
  check_same_environment(other, identity);
  check_ended(other);
  other.require_undamaged(other.status());
  const Json config = other.config();
  check_same_measurements(other, config, experiment);
  const config::Experiment before = config::experiment_from_json(config);
  const config::Experiment now = config::experiment_from_json(experiment);
  check_same_order(other, now, train_tokens);
  const std::map<int64_t, int> recorded = recorded_checkpoints(other.events_file());
  const std::vector<fs::path> folders = weights::list_checkpoints(other.checkpoints());
  std::vector<std::string> damaged;
  std::string newest_problem = "it has no checkpoint";
  std::string hint = "start a new run";
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) {
    bool is_whole = false;
    try {
      const int64_t step = other.read_checkpoint(*folder).step;
      is_whole = true;
      require_optimizer_state(*folder, identity.backend);
      config::check_resumable(before, now, step);
      const auto saved = recorded.find(step);
      const int attempt = saved == recorded.end() ? INT_MAX : saved->second;
      return {fs::absolute(*folder),
              other.events_file(),
              step,
              attempt,
              before.train.log_every,
              repeated_run(other, step, experiment, runs_dir),
              damaged};
    } catch (const Error& problem) {
      if (is_unreadable(problem)) throw;
      if (!is_whole) damaged.push_back(problem.message());
      if (folder != folders.rbegin()) continue;
      newest_problem = problem.message();
      if (!problem.hint().empty()) hint = problem.hint();
    }
  }
  throw Error("cannot continue run '" + other.id() + "': " + newest_problem, hint);
}

std::string copied_events(const ContinueFrom& from) {
  std::string lines;
  for_each_event(from.events, [&](const StoredEvent& stored) {
    // Later attempts began from this checkpoint, or behind it.
    if (stored.attempt > from.attempt || step_of(stored) > from.step) return;
    // What was left of a window when the budget was spent is no window of the longer run.
    if (stored.name == "train" && step_of(stored) % from.log_every != 0) return;
    lines += taken_over_line(stored);
  });
  return lines;
}

}  // namespace forge::run

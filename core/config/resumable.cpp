#include "core/config/resumable.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/json.h"
#include "core/config/schedule.h"

namespace forge::config {
namespace {

using Json = nlohmann::json;

/// Keys that change nothing of the steps done, or that are judged by what came of them.
constexpr const char* free_keys[] = {"/name",
                                     "/description",
                                     "/profile",
                                     "/backend",
                                     "/data/path",
                                     "/data/evaluation_path",
                                     "/tokenizer/path",
                                     "/train/max_steps",
                                     "/train/max_tokens",
                                     "/train/log_every",
                                     "/train/eval_every",
                                     "/train/checkpoint_every",
                                     "/train/keep_checkpoints",
                                     "/train/keep_best",
                                     "/train/max_bad_steps",
                                     "/train/hung_after_seconds",
                                     "/train/eval_rows",
                                     "/train/selection_rows",
                                     "/train/eval_batch_size",
                                     "/train/eval_prompts",
                                     "/train/initial_weights",
                                     "/optimizer/lr",
                                     "/schedule"};

/// "model.canon.set" of "/model/canon/set".
std::string dotted(std::string pointer) {
  for (char& letter : pointer) {
    if (letter == '/') letter = '.';
  }
  return pointer.substr(1);
}

std::string hint_of(int64_t step) {
  return "a checkpoint of " + std::to_string(step) +
         " steps goes on only as what it began as: start a new run";
}

Json flattened(const Experiment& experiment) {
  Json whole = to_json(experiment);
  for (auto& [name, source] : whole["data"]["sources"].items()) {
    source.erase("path");
    source.erase("evaluation_path");
  }
  for (const char* key : free_keys) {
    const Json::json_pointer pointer(key);
    if (whole.contains(pointer)) whole[pointer.parent_pointer()].erase(pointer.back());
  }
  return whole.flatten();
}

void check_keys(const Json& before, const Json& now, int64_t step) {
  const auto shown = [](const Json& keys, const std::string& key) {
    return keys.contains(key) ? keys.at(key).dump() : std::string("not there");
  };
  Json all = before;
  all.update(now);
  for (const auto& [key, value] : all.items()) {
    if (shown(before, key) == shown(now, key)) continue;
    throw Error(dotted(key) + " is " + shown(now, key) + " and was " + shown(before, key) +
                    " when the checkpoint was written",
                {},
                hint_of(step));
  }
}

void check_rates(const Experiment& before, const Experiment& now, int64_t step) {
  const auto rate = [](const Experiment& e, int64_t at) {
    return learning_rate(e.schedule, e.optimizer.lr, at, e.train.max_steps);
  };
  for (int64_t done = 0; done < step; ++done) {
    const double then = rate(before, done);
    const double wanted = rate(now, done);
    if (then == wanted) continue;
    throw Error("step " + std::to_string(done + 1) + " was done with learning rate " +
                    shortest(then) + " and would have " + shortest(wanted) +
                    " under schedule.type " + now.schedule.type + " of " +
                    with_thousands(now.train.max_steps) + " steps (it was " + before.schedule.type +
                    " of " + with_thousands(before.train.max_steps) + ")",
                {},
                "go on from a checkpoint of at most " + std::to_string(done) +
                    " steps, or start a new run");
  }
}

}  // namespace

void check_resumable(const Experiment& before, const Experiment& now, int64_t step) {
  if (step > now.train.max_steps) {
    throw Error("the checkpoint is of step " + with_thousands(step) +
                    " and training ends after step " + with_thousands(now.train.max_steps),
                {},
                "raise train.max_steps, or go on from an earlier checkpoint");
  }
  check_keys(flattened(before), flattened(now), step);
  check_rates(before, now, step);
}

}  // namespace forge::config

#include "core/config/experiment.h"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/fields.h"
#include "core/config/json_fields.h"
#include "core/config/layer_settings.h"
#include "core/config/own_blocks.h"
#include "core/config/schedule.h"

namespace forge::config {
using Json = nlohmann::json;

bool reset_key(Experiment& experiment, const std::string& path) {
  const Json before = to_json(experiment);
  Json less = before;
  const Json::json_pointer pointer("/" + join(split(path, '.'), "/"));
  if (!before.contains(pointer)) return false;  // of a section that is left out, having no values
  less[pointer.parent_pointer()].erase(pointer.back());
  experiment = experiment_from_json(less);
  return to_json(experiment) != before;
}

Json to_json(const Experiment& experiment) { return json_fields::written(experiment, false); }

Json to_complete_json(const Experiment& experiment) {
  return json_fields::written(experiment, true);
}

Experiment experiment_from_json(const Json& json) {
  Experiment experiment;
  try {
    json_fields::read(json, "", experiment);
    lay_layer_settings(experiment.model);
  } catch (const Error& problem) {
    throw Error("another version of forge wrote the config: " + problem.message(),
                "use that version, or make it again with this one");
  }
  return experiment;
}

DataConfig data_of_source(const DataConfig& mixture, const SourceConfig& source) {
  DataConfig data = mixture;
  data.sources.clear();
  static_cast<TextConfig&>(data) = source;
  return data;
}

namespace {

constexpr SizeKey max_nodes{"max_nodes", &TaskConfig::max_nodes};
constexpr SizeKey max_hops{"max_hops", &TaskConfig::max_hops};
constexpr SizeKey max_operators{"max_operators", &TaskConfig::max_operators};
constexpr SizeKey length{"length", &TaskConfig::length};
constexpr SizeKey scored_tokens{"scored_tokens", &TaskConfig::scored_tokens};
constexpr SizeKey people{"people", &TaskConfig::people};

using Task = std::pair<std::string, std::vector<TaskSize>>;

const std::vector<Task>& all_tasks() {
  static const std::vector<Task> tasks = {{"depo1", {{max_nodes, 3, "375"}, {max_hops, 1, "8"}}},
                                          {"depo2", {{max_nodes, 3, "125"}, {max_hops, 1, "16"}}},
                                          {"brevo1", {{max_nodes, 3, "110"}}},
                                          {"brevo2", {{max_nodes, 3, "50"}}},
                                          {"mano", {{max_operators, 1, "16"}}},
                                          {"lano", {}},
                                          {"capo", {{people, 1, "50000"}}},
                                          {"copy", {{length, 1, "500"}, {scored_tokens, 0, ""}}}};
  return tasks;
}

constexpr int depo1_letters = 50;
constexpr int depo2_letters = 4;
constexpr int depo2_code_letters = 3;
constexpr int brevo2_letters = 4;

int depo_vocab_size(int letters, int hops) { return 2 * letters + hops + 2; }

}  // namespace

const std::vector<SizeKey>& size_keys() {
  static const std::vector<SizeKey> keys = {
      max_nodes, max_hops, max_operators, length, scored_tokens, people};
  return keys;
}

const std::vector<std::string>& task_names() {
  static const std::vector<std::string> names = texts_of(all_tasks(), &Task::first);
  return names;
}

std::vector<TaskSize> sizes_of(const std::string& task) {
  for (const auto& [name, sizes] : all_tasks()) {
    if (name == task) return sizes;
  }
  return {};
}

int task_vocab_size(const TaskConfig& task) {
  const bool code = task.variant == TaskVariant::code;
  if (task.name == "depo1") return depo_vocab_size(depo1_letters, task.max_hops);
  if (task.name == "depo2") {
    return depo_vocab_size(code ? depo2_code_letters : depo2_letters, task.max_hops);
  }
  if (task.name == "brevo1") return task.max_nodes + 4;
  if (task.name == "brevo2") return 2 * brevo2_letters + 4;
  if (task.name == "mano") return code ? 4 * task.max_operators + 31 : task.max_operators + 28;
  if (task.name == "copy") return task.length + 2;
  return 4;  // lano
}

namespace {

/// Keys that change nothing of the steps done, or that are judged by what came of them.
constexpr const char* free_keys[] = {"/name",
                                     "/description",
                                     "/profile",
                                     "/backend",
                                     "/external/working_directory",
                                     "/data/path",
                                     "/data/evaluation_path",
                                     "/data/task/grammar",
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
                                     "/train/validation_rows",
                                     "/train/eval_batch_size",
                                     "/train/eval_prompts",
                                     "/train/initial_weights",
                                     "/train/recompute",
                                     "/parallel",
                                     "/optimizer/lr",
                                     "/schedule"};

/// "model.canon.set" of "/model/canon/set".
std::string dotted(std::string pointer) {
  std::replace(pointer.begin(), pointer.end(), '/', '.');
  return pointer.substr(1);
}

std::string hint_of(int64_t step) {
  return "training can resume from step " + std::to_string(step) +
         " only with the settings that it began with: start a new run";
}

Json flattened(const Experiment& experiment) {
  Json whole = to_json(experiment);
  reduce_own_blocks(whole);
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
  const auto check = [&](const std::string& key) {
    if (shown(before, key) == shown(now, key)) return;
    throw Error(dotted(key) + " is " + shown(now, key) + " and was " + shown(before, key) +
                    " when the checkpoint was written",
                hint_of(step));
  };
  check("/optimizer/type");  // decides which other keys there are
  Json all = before;
  all.update(now);
  for (const auto& [key, value] : all.items()) check(key);
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
                "resume from a checkpoint of at most " + std::to_string(done) +
                    " steps, or start a new run");
  }
}

}  // namespace

void check_resumable(const Experiment& before, const Experiment& now, int64_t step) {
  if (step > now.train.max_steps) {
    throw Error("the checkpoint is of step " + with_thousands(step) +
                    " and training ends after step " + with_thousands(now.train.max_steps),
                "raise train.max_steps, or resume from an earlier checkpoint");
  }
  check_keys(flattened(before), flattened(now), step);
  check_rates(before, now, step);
}

}  // namespace forge::config

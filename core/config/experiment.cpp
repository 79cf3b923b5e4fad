#include "core/config/experiment.h"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/fields.h"
#include "core/config/keys.h"
#include "core/config/schedule.h"

namespace forge::config {
namespace {

using Json = nlohmann::json;

template <class T>
Json value_to_json(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return name_of(value);
  } else {
    return value;
  }
}
template <class T>
Json value_to_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

class Writer {
 public:
  /// With `unset`, sections are there that only a config that uses them has.
  explicit Writer(bool unset = false) : unset_(unset) {}

  template <class T>
  void field(const char* key, T& value, const char*, Limits limits = {}) {
    Json json = value_to_json(value);
    if (!limits.written_if_set || !json.is_null()) json_[key] = std::move(json);
  }
  template <class T>
  void section(const char* key, T& value, const char*, Limits limits = {}) {
    Json json = written(value);
    const bool may_be_left_out = limits.written_if_set && !unset_;
    if (may_be_left_out) {
      T plain;
      if (json == written(plain)) return;
    }
    json_[key] = std::move(json);
  }
  /// Left out where there are none, as in the files of runs that knew no such key.
  template <class T>
  void sections(const char* key, std::map<std::string, T>& values, const char* help) {
    Writer inner(unset_);
    for (auto& [name, value] : values) inner.section(name.c_str(), value, help);
    if (!values.empty()) json_[key] = inner.take();
  }
  Json take() { return std::move(json_); }

 private:
  template <class T>
  Json written(T& value) const {
    Writer inner(unset_);
    fields(inner, value);
    return inner.take();
  }

  bool unset_;
  Json json_ = Json::object();
};

template <class T>
void value_from_json(const Json& json, T& value) {
  if constexpr (std::is_enum_v<T>) {
    const auto names = names_of(value);
    const auto text = json.get<std::string>();
    const auto found = std::find(names.begin(), names.end(), text);
    if (found == names.end()) throw Error("'" + text + "' is not one of " + join(names, ", "));
    value = static_cast<T>(found - names.begin());
  } else {
    json.get_to(value);
  }
}
template <class T>
void value_from_json(const Json& json, std::optional<T>& value) {
  value = json.is_null() ? std::nullopt : std::optional<T>(json.get<T>());
}

class Reader {
 public:
  Reader(const Json& json, std::string path) : json_(json), path_(std::move(path)) {
    if (!json.is_object()) throw Error("'" + path_ + "' is not a JSON object");
  }
  template <class T>
  void field(const char* key, T& value, const char*, Limits = {}) {
    const Json* json = take(key);
    if (!json) return;
    try {
      value_from_json(*json, value);
    } catch (const std::exception& problem) {
      throw Error("'" + path_ + key + "': " + problem.what());
    }
  }
  template <class T>
  void section(const char* key, T& value, const char*, Limits = {}) {
    if (const Json* json = take(key)) read(*json, path_ + key, value);
  }
  template <class T>
  void sections(const char* key, std::map<std::string, T>& values, const char*) {
    const Json* all = take(key);
    if (!all) return;
    if (!all->is_object()) throw Error("'" + path_ + key + "' is not a JSON object");
    values.clear();
    for (const auto& [name, json] : all->items()) {
      read(json, path_ + key + "." + name, values[name]);
    }
  }
  void finish() const {
    for (const auto& [key, value] : json_.items()) {
      if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
        throw Error("unknown key '" + path_ + key + "'");
      }
    }
  }

 private:
  /// What the key has; null where it is missing.
  const Json* take(const char* key) {
    known_.push_back(key);
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }
  template <class T>
  static void read(const Json& json, const std::string& path, T& value) {
    Reader inner(json, path + ".");
    fields(inner, value);
    inner.finish();
  }

  const Json& json_;
  std::string path_;
  std::vector<std::string> known_;
};

}  // namespace

bool reset_key(Experiment& experiment, const std::string& path) {
  const Json before = to_json(experiment);
  Json less = before;
  const Json::json_pointer pointer("/" + join(split(path, '.'), "/"));
  less[pointer.parent_pointer()].erase(pointer.back());
  experiment = experiment_from_json(less);
  return to_json(experiment) != before;
}

namespace {

Json written_json(Experiment experiment, bool unset) {
  Writer writer(unset);
  fields(writer, experiment);
  return writer.take();
}

}  // namespace

Json to_json(const Experiment& experiment) { return written_json(experiment, false); }

Json to_complete_json(const Experiment& experiment) { return written_json(experiment, true); }

Experiment experiment_from_json(const Json& json) {
  Experiment experiment;
  try {
    Reader reader(json, "");
    fields(reader, experiment);
    reader.finish();
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
                                     "/train/validation_rows",
                                     "/train/eval_batch_size",
                                     "/train/eval_prompts",
                                     "/train/initial_weights",
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

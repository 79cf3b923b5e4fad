#include "core/data/tasks/task_spec.h"

#include <limits>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/config/fields.h"

namespace forge::data::tasks {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse_key(const char* key) {
  throw Error(std::string("the task's description has no usable '") + key + "'");
}

/// Throws Error naming what is missing or of another type.
template <class T>
T value_of(const Json& spec, const char* key) {
  try {
    return spec.at(key).get<T>();
  } catch (const Json::exception&) {
    refuse_key(key);
  }
}

/// An int. The library would round a fraction and wrap what is too large.
int size_of(const Json& spec, const char* key) {
  using Limits = std::numeric_limits<int>;
  const auto value = value_of<Json>(spec, key);
  if (!value.is_number_integer()) refuse_key(key);
  const auto number = value.get<double>();
  if (number < Limits::min() || number > Limits::max()) refuse_key(key);
  return value.get<int>();
}

Variant variant_of(const Json& spec) {
  const auto name = value_of<std::string>(spec, "variant");
  if (name == "code") return Variant::code;
  if (name != "paper") refuse_key("variant");
  return Variant::paper;
}

TaskConfig config_of(const Json& spec) {
  const auto name = value_of<std::string>(spec, "name");
  const Variant variant = variant_of(spec);
  const auto size = [&](const char* key) { return size_of(spec, key); };
  if (name == "depo1") return depo1(size("max_nodes"), size("max_hops"));
  if (name == "depo2") return depo2(size("max_nodes"), size("max_hops"), variant);
  if (name == "brevo1") return brevo1(size("max_nodes"), variant);
  if (name == "brevo2") return brevo2(size("max_nodes"), variant);
  if (name == "mano") return ManoConfig{size("max_operators"), variant};
  if (name == "copy") return CopyConfig{size("length"), size("scored_tokens")};
  if (name == "lano") {
    return LanoConfig{
        Grammar::parse(json_text(value_of<Json>(spec, "grammar")), "the task's grammar")};
  }
  throw Error("there is no task '" + name + "' that generates token ids");
}

Grammar grammar_of(const config::TaskConfig& task) {
  if (!task.grammar.empty()) return Grammar::read(task.grammar);
  return Grammar::draw({}, task.grammar_seed);
}

Sample sample_of(const Task& task, const Instance& instance) {
  Sample sample;
  sample.text = print(task, instance.tokens);
  sample.ids = instance.tokens;
  for (const int32_t id : instance.tokens) sample.tokens.push_back(task.token_name(id));
  sample.scored.assign(instance.scored.begin(), instance.scored.end());
  return sample;
}

}  // namespace

Json make_spec(const config::DataConfig& data) {
  const config::TaskConfig& task = data.task;
  Json spec = {
      {"name", task.name}, {"seed", data.seed}, {"variant", config::name_of(task.variant)}};
  for (const config::TaskSize& size : config::sizes_of(task.name)) {
    spec[size.key] = task.*size.field;
  }
  if (task.name == "lano") spec["grammar"] = Json::parse(grammar_of(task).to_json());
  return spec;
}

std::string spec_fingerprint(const Json& spec) {
  return hash_hex("task " + std::to_string(tasks_version) + " " + json_text(spec));
}

std::unique_ptr<const Task> task_of(const Json& spec) { return make_task(config_of(spec)); }

Capo capo_of(const Json& spec) {
  return Capo({size_of(spec, "people"), variant_of(spec)}, seed_of(spec));
}

uint64_t seed_of(const Json& spec) { return value_of<uint64_t>(spec, "seed"); }

bool is_capo(const Json& spec) {
  return spec.is_object() && spec.contains("name") && spec.at("name") == "capo";
}

namespace {

std::string difference_of_tasks(const config::DataConfig& data, const config::DataConfig& other) {
  const std::unique_ptr<const Task> task = task_of(make_spec(data));
  const std::unique_ptr<const Task> theirs = task_of(make_spec(other));
  const auto name_in = [](const Task& of, int32_t id) {
    return id < of.vocab_size() ? "'" + of.token_name(id) + "'" : std::string("none");
  };
  for (int32_t id = 0; id < std::max(task->vocab_size(), theirs->vocab_size()); ++id) {
    const std::string ours = name_in(*task, id), of_other = name_in(*theirs, id);
    if (data.task.name == other.task.name && ours == of_other) continue;
    return "id " + std::to_string(id) + " is " + ours + " of " + data.task.name + ", and " +
           of_other + " of " + other.task.name;
  }
  return "";
}

}  // namespace

std::string difference_of_ids(const config::DataConfig& data, const config::DataConfig& other) {
  if (!data.has_own_ids() || !other.has_own_ids()) return "";
  try {
    return difference_of_tasks(data, other);
  } catch (const Error&) {
    return "";  // whoever needs the rows says what is wrong
  }
}

std::vector<Sample> preview_instances(const config::DataConfig& data, Split split, int count) {
  if (!data.is_task()) {
    throw Error("data.source is " + data.source + ", not task",
                "'forge data prepare' makes tokens of text, and 'forge data show' shows them");
  }
  const nlohmann::json spec = make_spec(data);
  std::vector<Sample> samples;
  if (data.task.is_text()) {
    const Capo capo = capo_of(spec);
    for (int i = 0; i < count; ++i) {
      samples.push_back({capo.biography(split, static_cast<uint64_t>(i)).text, {}, {}, {}});
    }
    return samples;
  }
  const auto task = task_of(spec);
  Instance instance;
  for (int i = 0; i < count; ++i) {
    task->generate(seed_of(spec), split, static_cast<uint64_t>(i), instance);
    samples.push_back(sample_of(*task, instance));
  }
  return samples;
}

}  // namespace forge::data::tasks

#include "core/data/tasks/sample.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/data/tasks/spec.h"

namespace forge::data::tasks {
namespace {

Sample sample_of(const Task& task, const Instance& instance) {
  Sample sample;
  sample.text = print(task, instance.tokens);
  sample.ids = instance.tokens;
  for (const int32_t id : instance.tokens) sample.tokens.push_back(task.token_name(id));
  sample.scored.assign(instance.scored.begin(), instance.scored.end());
  return sample;
}

}  // namespace

std::vector<Sample> samples_of(const config::DataConfig& data, Split split, int count) {
  if (!data.is_task()) {
    throw Error("data.source is " + data.source + ", not task",
                {},
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

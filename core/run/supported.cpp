#include "core/run/supported.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/json_path.h"
#include "core/base/text.h"
#include "core/config/json.h"

namespace forge::run {
namespace {

using Json = nlohmann::json;

std::string text_of(const Json& value) {
  if (!value.is_string()) return protocol::to_line(value);
  const auto& text = value.get_ref<const std::string&>();
  return text.empty() ? "\"\"" : text;
}

std::string hint_for(const Json& values) {
  std::vector<std::string> words;
  for (const Json& value : values) words.push_back(text_of(value));
  return words.empty() ? "" : "it can do " + join(words, ", ");
}

bool concerns_reading(const std::string& key) {
  return starts_with(key, "model.") || key == "train.precision";
}

void require_values(const Json& limits,
                    const Json& experiment,
                    const config::Origins& origins,
                    const BackendInfo& backend) {
  for (const auto& [key, values] : limits.items()) {
    const Json* value = find_value(experiment, key);
    const bool can = !value || !values.is_array() ||
                     std::find(values.begin(), values.end(), *value) != values.end();
    if (can) continue;
    const auto origin = origins.find(key);
    throw Error("backend " + backend.hello.backend + " cannot do " + key + ": " + text_of(*value) +
                    " on " + backend.environment.device_type,
                origin == origins.end() ? SourceSpan() : origin->second.set_by.origin,
                hint_for(values));
  }
}

}  // namespace

void require_supported(const Json& experiment,
                       const config::Origins& origins,
                       const BackendInfo& backend) {
  if (backend.supports) require_values(backend.supports->config, experiment, origins, backend);
}

void require_job(protocol::Job job, const BackendInfo& backend) {
  if (!backend.supports) return;
  const std::string& name = protocol::names_of(job)[static_cast<size_t>(job)];
  const std::vector<std::string>& jobs = backend.supports->jobs;
  if (std::find(jobs.begin(), jobs.end(), name) != jobs.end()) return;
  throw Error("backend " + backend.hello.backend + " cannot do the job " + name,
              {},
              jobs.empty() ? "" : "it does " + join(jobs, ", "));
}

void require_readable(protocol::Job job,
                      const config::Experiment& experiment,
                      const BackendInfo& backend) {
  require_job(job, backend);
  if (!backend.supports) return;
  Json limits = Json::object();
  for (const auto& [key, values] : backend.supports->config.items()) {
    if (concerns_reading(key)) limits[key] = values;
  }
  require_values(limits, config::to_json(experiment), {}, backend);
}

}  // namespace forge::run

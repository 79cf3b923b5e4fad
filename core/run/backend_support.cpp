#include "core/run/backend_support.h"

#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/experiment.h"

namespace forge::run {
namespace {

using Json = nlohmann::json;

std::string text_of(const Json& value) {
  if (!value.is_string()) return worker::to_line(value);
  const auto& text = value.get_ref<const std::string&>();
  return text.empty() ? "\"\"" : text;
}

std::string hint_for(const Json& values) {
  const std::vector<std::string> words = texts_of(values, text_of);
  return words.empty() ? "" : "it can do " + join(words, ", ");
}

bool concerns_reading(const std::string& key) {
  return starts_with(key, "model.") || key == "train.precision";
}

/// Stands in what a backend supports for the names of blocks of one's own.
constexpr const char* any_own_block = "blocks/*.py";

/// The value, or the first element of a list, that is none of `known`; null where there is none. Of
/// an element of model.layers with settings its mixer counts.
const Json* first_other(const Json& value, const Json& known, const Json& own_blocks) {
  if (value.is_object() && value.contains("mixer"))
    return first_other(value.at("mixer"), known, own_blocks);
  if (value.is_array()) {
    for (const Json& element : value) {
      if (const Json* other = first_other(element, known, own_blocks)) return other;
    }
    return nullptr;
  }
  const bool is_own = value.is_string() && own_blocks.contains(value.get_ref<const std::string&>());
  if (is_own) return std::count(known.begin(), known.end(), any_own_block) > 0 ? nullptr : &value;
  return std::find(known.begin(), known.end(), value) == known.end() ? &value : nullptr;
}

void require_values(const Json& limits,
                    const Json& experiment,
                    const config::Origins& origins,
                    const worker::BackendInfo& backend) {
  const Json* const blocks = find_value(experiment, "model.blocks");
  for (const auto& [key, values] : limits.items()) {
    if (key == parallel_key) continue;
    const Json own_blocks = blocks && key == "model.layers" ? *blocks : Json::object();
    const Json* value = find_value(experiment, key);
    const Json* unsupported =
        value && values.is_array() ? first_other(*value, values, own_blocks) : nullptr;
    if (!unsupported) continue;
    const auto origin = origins.find(key);
    throw Error("backend " + backend.hello.backend + " cannot do " + key + ": " +
                    text_of(*unsupported) + " on " + backend.environment.device_type,
                origin == origins.end() ? SourceSpan() : origin->second.set_by.origin,
                hint_for(values));
  }
}

}  // namespace

void require_supported(const Json& experiment,
                       const config::Origins& origins,
                       const worker::BackendInfo& backend) {
  if (backend.supports) require_values(backend.supports->config, experiment, origins, backend);
}

void require_job(worker::Job job, const worker::BackendInfo& backend) {
  if (!backend.supports) return;
  const std::string& name = worker::names_of(job)[static_cast<size_t>(job)];
  const std::vector<std::string>& jobs = backend.supports->jobs;
  if (std::find(jobs.begin(), jobs.end(), name) != jobs.end()) return;
  throw Error("backend " + backend.hello.backend + " cannot do the job " + name,
              jobs.empty() ? "" : "it does " + join(jobs, ", "));
}

bool trains_by_several_processes(const worker::BackendInfo& backend) {
  return backend.supports && backend.supports->config.contains(parallel_key);
}

void require_processes(const config::Experiment& experiment,
                       const config::Origins& origins,
                       const worker::BackendInfo& backend) {
  const int processes = experiment.parallel.processes.count;
  if (processes <= 1 || trains_by_several_processes(backend)) return;
  const auto origin = origins.find("parallel.processes");
  throw Error("backend " + backend.hello.backend + " trains by a single process on " +
                  backend.environment.device_type + ", and parallel.processes is " +
                  std::to_string(processes),
              origin == origins.end() ? SourceSpan() : origin->second.set_by.origin,
              "parallel.processes: 1 makes the same run");
}

void require_readable(worker::Job job,
                      const config::Experiment& experiment,
                      const worker::BackendInfo& backend) {
  require_job(job, backend);
  if (!backend.supports) return;
  Json limits = Json::object();
  for (const auto& [key, values] : backend.supports->config.items()) {
    if (concerns_reading(key)) limits[key] = values;
  }
  require_values(limits, config::to_json(experiment), {}, backend);
}

void require_device(const std::string& device, const worker::BackendInfo& backend) {
  const std::string& type = backend.environment.device_type;
  if (device.empty() || device == "auto" || device == type) return;
  const bool has_number =
      starts_with(device, type + ":") && device.size() > type.size() + 1 &&
      device.find_first_not_of("0123456789", type.size() + 1) == std::string::npos;
  if (has_number) return;
  throw Error("backend " + backend.hello.backend + " runs on " + type + " here, and not on '" +
                  device + "'",
              "--device is auto, cpu, cuda or cuda:N");
}

}  // namespace forge::run

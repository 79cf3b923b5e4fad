#include "core/benchmark/operations.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/run/job.h"

namespace forge::benchmark {
namespace {

[[noreturn]] void refuse_key(const std::string& key, const std::string& wanted) {
  throw Error("the worker measured an operation whose '" + key + "' is no " + wanted,
              {},
              "",
              ExitCode::failed);
}

bool is_amount(const nlohmann::json& value) {
  return value.is_number() && std::isfinite(value.get<double>()) && value.get<double>() >= 0;
}

/// It goes into a record that reports are made of later, perhaps elsewhere.
void check_operation(const nlohmann::json& values) {
  for (const char* key : {"operation", "size", "shape"}) {
    if (!values.contains(key) || !values.at(key).is_string()) refuse_key(key, "text");
  }
  if (!values.contains("seconds")) refuse_key("seconds", "positive number");
  for (const char* key : {"seconds", "peer_seconds", "flops_per_second", "bytes_per_second"}) {
    if (values.contains(key) && !is_amount(values.at(key))) refuse_key(key, "positive number");
  }
  for (const char* key : {"windows", "peer_windows"}) {
    if (!values.contains(key)) continue;
    const nlohmann::json& list = values.at(key);
    if (!list.is_array() || !std::all_of(list.begin(), list.end(), is_amount))
      refuse_key(key, "list of positive numbers");
  }
}

}  // namespace

Record measure_operations(run::Launcher& launcher,
                          const run::WorkerCommand& command,
                          const protocol::Request& request,
                          const Call& call,
                          const std::function<void(const nlohmann::json&)>& on_case) {
  Record record;
  record.kind = Kind::operations;
  record.call = call;
  record.precision = request.operation_bench.value_or(protocol::OperationBench()).precision;
  protocol::Hello hello;
  run::run_job(
      launcher, command, request, run::job_silence_seconds, [&](const protocol::Event& event) {
        if (const auto* said = std::get_if<protocol::Hello>(&event)) hello = *said;
        if (const auto* environment = std::get_if<protocol::Environment>(&event)) {
          record.device = device_of(hello, *environment);
        }
        const auto* result = std::get_if<protocol::Result>(&event);
        if (!result) return;
        if (result->values.contains("ceilings")) {
          record.ceilings = result->values.at("ceilings");
        } else {
          check_operation(result->values);
          record.operations.push_back(result->values);
          on_case(result->values);
        }
      });
  if (record.operations.empty()) {
    throw Error("the worker measured no operation", {}, "", ExitCode::failed);
  }
  return record;
}

}  // namespace forge::benchmark

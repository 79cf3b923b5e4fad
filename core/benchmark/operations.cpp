#include "core/benchmark/operations.h"

#include "core/base/error.h"
#include "core/run/job.h"

namespace forge::benchmark {
namespace {

constexpr double silence_seconds = 600;

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
  run::run_job(launcher, command, request, silence_seconds, [&](const protocol::Event& event) {
    if (const auto* said = std::get_if<protocol::Hello>(&event)) hello = *said;
    if (const auto* environment = std::get_if<protocol::Environment>(&event)) {
      record.device = device_of(hello, *environment);
    }
    const auto* result = std::get_if<protocol::Result>(&event);
    if (!result) return;
    if (result->values.contains("ceilings")) {
      record.ceilings = result->values.at("ceilings");
    } else {
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

#pragma once

#include <sys/wait.h>
#include <unistd.h>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/model/weights/checkpoint.h"
#include "core/run/plan.h"
#include "core/run/run_folder.h"
#include "core/worker/launcher.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::tests {

/// Waits until the condition holds; false after ten minutes, which only a hang takes.
inline bool until(const std::function<bool()>& condition) {
  const double deadline = steady_seconds() + 600;
  while (!condition()) {
    if (steady_seconds() > deadline) return false;
    ::usleep(1000);
  }
  return true;
}

/// Whether a process runs no more; one that only waits to be reaped by its parent counts as gone.
inline bool gone(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  if (!std::getline(file, stat)) return true;
  const size_t state = stat.rfind(')') + 2;
  return state >= stat.size() || stat[state] == 'Z' || stat[state] == 'X';
}

/// A backend whose worker is any command.
class CommandBackend : public worker::Backend {
 public:
  explicit CommandBackend(std::vector<std::string> arguments) : arguments_(std::move(arguments)) {}
  std::string name() const override { return "fake"; }
  worker::WorkerCommand command(const worker::Request&) const override { return {arguments_, {}}; }
  worker::BackendInfo describe(worker::Launcher&, const std::string&, int) const override {
    return {};
  }

 private:
  std::vector<std::string> arguments_;
};

inline run::RunInputs small_inputs() {
  run::RunInputs inputs;
  inputs.project = "projects/canon";
  inputs.config = "train_x";
  inputs.command = "forge run train_x";
  inputs.revision = "0123456789ab";
  inputs.experiment = {{"name", "X"},
                       {"seed", 42},
                       {"train", {{"max_steps", 3}, {"log_every", 1}, {"eval_rows", 0}}}};
  inputs.origins = {{"seed", {{"origin", "train_x.yaml:1:1"}}}};
  inputs.data_fingerprint = "d";
  inputs.tokenizer_fingerprint = "t";
  inputs.train_tokens = {{"/cache/train.tokens", 10}};
  inputs.evaluation_tokens = {{"/cache/evaluation.tokens"}};
  inputs.backend.hello = {worker::version, "fake", "1.0", 1};
  inputs.backend.environment.device_type = "cpu";
  inputs.backend.environment.threads = 2;
  return inputs;
}

/// A run folder as forge leaves it for a supervisor.
inline run::RunFolder new_run(const std::filesystem::path& runs_dir,
                              const run::RunInputs& inputs = small_inputs()) {
  const run::PlannedRun planned = run::plan_run(inputs, runs_dir, false);
  run::write_run_folder(planned, inputs);
  return planned.folder;
}

/// Ends the log of a run as one that was completed after `step` steps, and says that it is done.
inline void complete(const run::RunFolder& folder, int64_t step = 3) {
  const auto line = [](const std::string& rest) {
    return R"({"attempt":1,"time":1,"event":)" + rest + "}\n";
  };
  write_file_atomic(
      folder.events_file(),
      line(R"("attempt")") +
          line(R"("finished","completed":true,"step":)" + std::to_string(step) +
               R"(,"eval_loss":2.5,"train_loss":2.5,"tokens_per_second":5,"wall_seconds":1,)"
               R"("peak_memory_bytes":1,"peak_resident_bytes":1,"parameters":1)") +
          line(R"("ended","status":"completed","exit_status":0,"signal":0)"));
  write_file_atomic(folder.done_file(), "now\n");
}

/// Writes another config into a run folder, and the identity that goes with it, as another version
/// of forge would have.
inline void rewrite_config(const run::RunFolder& folder, const nlohmann::json& config) {
  run::RunRecord record = folder.record();
  record.identity.experiment = run::identity_config(config);
  record.key = run::run_key(record.identity);
  write_file_atomic(folder.config_file(), config.dump());
  write_file_atomic(folder.record_file(), run::to_json(record).dump());
}

/// A whole checkpoint after `step` steps, of a model without weights.
inline std::filesystem::path save_checkpoint(const std::filesystem::path& checkpoints, int step) {
  weights::CheckpointState state;
  state.step = step;
  return weights::write_checkpoint(checkpoints, state, {}, {});
}

/// Lines that a worker says.
namespace lines {

const std::string hello =
    R"({"event":"hello","protocol":1,"backend":"fake","backend_version":"1.0","numerics_version":1})";
const std::string environment =
    R"({"event":"environment","device_type":"cpu","device_name":"test","threads":2})";
const std::string supports =
    R"({"event":"supports","jobs":["describe","train"],"config":{"optimizer.type":["adamw"]}})";
inline std::string train(int step) {
  return R"({"event":"train","step":)" + std::to_string(step) +
         R"(,"tokens":1,"loss":2.5,"learning_rate":0.1,"gradient_norm":1,"tokens_per_second":5,)"
         R"("elapsed_seconds":1})";
}
inline std::string progress(int step) {
  return R"({"event":"progress","step":)" + std::to_string(step) + R"(,"phase":"train"})";
}
inline std::string checkpoint(int step) {
  return R"({"event":"checkpoint","step":)" + std::to_string(step) + R"(,"path":"checkpoints/)" +
         weights::checkpoint_name(step) + R"(","bytes":1})";
}
inline std::string finished(bool completed) {
  return std::string(R"({"event":"finished","completed":)") + (completed ? "true" : "false") +
         R"(,"step":3,"eval_loss":2.5,"train_loss":2.5,"tokens_per_second":5,"wall_seconds":1,)"
         R"("peak_memory_bytes":1,"peak_resident_bytes":1,"parameters":1})";
}

}  // namespace lines
}  // namespace forge::tests

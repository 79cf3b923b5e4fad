#include "app/metric_sinks.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "app/wandb_client.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/tail.h"
#include "core/base/text.h"

namespace forge::app {
namespace {

class TensorBoardSink : public MetricSink {
 public:
  explicit TensorBoardSink(fs::path folder) : folder_(std::move(folder)) {}

  void take(const std::vector<tables::MetricPoint>& metrics) override {
    for (const tables::MetricPoint& metric : metrics) {
      if (!file_) begin(metric);
      held_ += tables::tensorboard_scalar(metric);
    }
  }

  void repeat_after(int64_t step, double time) override {
    if (file_) held_ += tables::tensorboard_restart(time, step + 1);
  }

  void flush() override {
    if (held_.empty()) return;
    file_->append(held_);
    held_.clear();
  }

  void end(const std::string&) override { flush(); }

 private:
  void begin(const tables::MetricPoint& first) {
    make_directories(folder_.parent_path());
    make_own_folders(folder_.parent_path(), folder_.filename());
    const fs::path path = folder_ / tables::tensorboard_file_name(first);
    write_file_atomic(path, "");
    file_.emplace(path);
    held_ = tables::tensorboard_beginning(first);
  }

  fs::path folder_;
  std::optional<AppendFile> file_;
  std::string held_;
};

constexpr int exit_not_installed = 3;
constexpr double begin_seconds = 120;   // a first import reads hundreds of files
constexpr double log_seconds = 120;     // what a client that is slower than forge may rest
constexpr double finish_seconds = 600;  // online, what was logged is sent before it ends

/// The client reads settings of the folder that it writes to: such as the server that gets the
/// key and the metrics.
void require_no_settings(const fs::path& output) {
  for (const char* folder : {"wandb", ".wandb"}) {
    const fs::path settings = output / folder / "settings";
    if (path_exists(settings))
      throw Error("'" + settings.string() + "' would tell W&B's client what to do",
                  "name another folder with -o, or remove the file: settings of yours belong in "
                  "~/.config/wandb/settings",
                  ExitCode::usage);
  }
}

class WandbSink : public MetricSink {
 public:
  WandbSink(worker::Launcher& launcher, const fs::path& output, const run::RunFolder& folder)
      : log_(output / "wandb.log"), id_(folder.id()) {
    make_directories(output);
    require_no_settings(output);
    const run::RunRecord record = folder.record();
    const std::string project = fs::path(record.project).filename().string();
    worker::Launch launch;
    launch.command.arguments = {"python3", "-c", std::string(wandb_client())};
    std::map<std::string, std::string>& environment = launch.command.environment;
    environment["PYTHONSAFEPATH"] = "1";  // the client starts Python in turn
    // It asks git of the folder that it starts in, and git runs what a repository's config names.
    environment["WANDB_DISABLE_GIT"] = "true";
    environment["WANDB_DISABLE_CODE"] = "true";
    environment["GIT_DIR"] = "/dev/null";
    launch.working_folder = output;
    launch.input = worker::to_line(nlohmann::json{{"project", project.empty() ? "forge" : project},
                                                  {"id", id_},
                                                  {"name", id_},
                                                  {"group", record.config},
                                                  {"config", folder.config(record)},
                                                  {"dir", fs::absolute(output).string()}});
    launch.stderr_file = log_;
    launch.keep_stdin_open = true;
    launch.input_patience_seconds = log_seconds;
    client_ = launcher.start(launch);
    wait_until_ready();
  }

  void take(const std::vector<tables::MetricPoint>& metrics) override {
    nlohmann::json values = nlohmann::json::object();
    for (const tables::MetricPoint& metric : metrics) {
      const auto repeated = repeated_to_.find(metric.name);
      if (repeated != repeated_to_.end() && metric.step <= repeated->second) continue;
      values[metric.name] = shortest(metric.value);
      int64_t& last = last_steps_.try_emplace(metric.name, metric.step).first->second;
      last = std::max(last, metric.step);
    }
    if (values.empty()) return;
    client_->send(
        worker::to_line(nlohmann::json{{"step", metrics.front().step}, {"values", values}}));
  }

  // An attempt that died between two metrics of one step has told the first of them alone.
  void repeat_after(int64_t, double) override { repeated_to_ = last_steps_; }
  void flush() override {}

  void end(const std::string& status) override {
    client_->send(worker::to_line(nlohmann::json{{"status", status}}));
    client_->end_input();
    const std::optional<worker::ExitStatus> exit = wait(finish_seconds, false);
    if (exit && exit->code == 0 && exit->signal == 0) return;
    throw Error("W&B's client did not take run '" + id_ +
                    "': " + (exit ? exit->describe() : "it does not end"),
                last_words(),
                ExitCode::failed);
  }

 private:
  void wait_until_ready() {
    const std::optional<worker::ExitStatus> exit = wait(begin_seconds, true);
    if (!exit) return;
    if (exit->code == exit_not_installed)
      throw Error("the Python package wandb is not installed",
                  "'python3 -m pip install wandb', for the python3 on the PATH",
                  ExitCode::failed);
    throw Error("W&B's client did not begin: " + exit->describe(), last_words(), ExitCode::failed);
  }

  /// How the client ended; none where it said a line or did neither.
  std::optional<worker::ExitStatus> wait(double seconds, bool for_line) {
    const double until = steady_seconds() + seconds;
    while (steady_seconds() < until) {
      const worker::Output output = client_->next(0.2);
      if (for_line && std::holds_alternative<worker::OutputLine>(output)) return std::nullopt;
      if (const auto* exit = std::get_if<worker::ExitStatus>(&output)) return *exit;
    }
    if (for_line)
      throw Error("W&B's client did not begin within " + human_duration(seconds),
                  last_words(),
                  ExitCode::failed);
    return std::nullopt;
  }

  std::string last_words() const {
    return "its last words, in " + log_.string() + ":\n" + join(last_lines(log_, 0, 5, 400), "\n");
  }

  fs::path log_;
  std::string id_;
  std::unique_ptr<worker::RunningWorker> client_;
  std::map<std::string, int64_t> last_steps_;   ///< of each metric
  std::map<std::string, int64_t> repeated_to_;  ///< what an attempt before has told
};

}  // namespace

void remove_event_files(const fs::path& folder, const fs::path& but) {
  require_own_folder(folder);  // a link may lead anywhere
  for (const fs::path& file : folder_entries(folder)) {
    const std::string name = file.filename().string();
    const bool is_ours = starts_with(name, "events.out.tfevents.") && ends_with(name, ".forge");
    if (is_ours && name != but.filename()) remove_tree(file);
  }
}

MakeSink tensorboard_sink(const fs::path& output) {
  // A run that goes on after an end has several files of one export, and none of an earlier one.
  const auto begun = std::make_shared<std::set<std::string>>();
  return [output, begun](const run::RunFolder& folder) {
    const fs::path of_run = output / folder.id();
    if (begun->insert(folder.id()).second) remove_event_files(of_run);
    return std::make_unique<TensorBoardSink>(of_run);
  };
}

MakeSink wandb_sink(worker::Launcher& launcher, const fs::path& output) {
  return [&launcher, output](const run::RunFolder& folder) {
    return std::make_unique<WandbSink>(launcher, output, folder);
  };
}

}  // namespace forge::app

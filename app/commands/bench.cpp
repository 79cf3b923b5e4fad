#include <unistd.h>

#include <cmath>
#include <iostream>

#include "app/commands.h"
#include "app/launch.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/run/job.h"
#include "core/run/local_launcher.h"

namespace forge::app {
namespace {

struct Options {
  std::vector<std::string> configs;
  LaunchOptions launch;
  bool json = false;
};

constexpr double silence_seconds = 300;

nlohmann::json bench_config(const Context& context,
                            const std::string& name,
                            const Options& options) {
  const Launch launch = check_launch(context, context.config(name), options.launch);
  protocol::Request request;
  request.job = protocol::Job::bench;
  request.experiment = launch.resolved.json;
  request.device = options.launch.device;
  request.threads = options.launch.threads;
  const auto backend = context.backend(launch.resolved.experiment.backend);
  run::LocalLauncher launcher;
  nlohmann::json values;
  run::run_job(launcher,
               backend->command(request),
               request,
               silence_seconds,
               [&](const protocol::Event& event) {
                 if (const auto* result = std::get_if<protocol::Result>(&event))
                   values = result->values;
               });
  if (values.is_null()) throw Error("the worker ended without a result", {}, "", ExitCode::failed);
  values["config"] = launch.resolved.config_name;
  values["device_type"] = launch.backend.environment.device_type;
  values["device"] = launch.backend.environment.device_name;
  values["threads"] = launch.backend.environment.threads;
  return values;
}

int bench(const Context& context, const Options& options) {
  std::vector<std::vector<std::string>> lines = {{"Config", "Tok/s", "Step", "Memory"}};
  for (const std::string& name : options.configs) {
    const nlohmann::json values = bench_config(context, name, options);
    if (options.json) {
      std::cout << values.dump() << std::endl;
      continue;
    }
    char step[32];
    std::snprintf(step, sizeof step, "%.1f ms", values.at("step_seconds").get<double>() * 1000);
    lines.push_back({values.at("config"),
                     with_thousands(std::llround(values.at("tokens_per_second").get<double>())),
                     step,
                     human_bytes(values.at("peak_memory_bytes").get<double>())});
  }
  if (!options.json) std::cout << aligned(lines, {1, 2, 3});
  return 0;
}

}  // namespace

void add_bench(CLI::App& app, Program& program) {
  auto options = std::make_shared<Options>();
  options->launch.overrides = {"train.max_steps=3"};
  CLI::App* command = app.add_subcommand("bench",
                                         "Measure training speed: after a warm-up, the median of "
                                         "five windows of train.max_steps steps");
  command->footer(
      "Example:\n  forge bench train_llama train_baseline --set train.batch_size=8 --set "
      "train.seq_len=512");
  add_configs_options(*command, program, options->configs);
  auto overrides = std::make_shared<std::vector<std::string>>();
  add_set_option(*command, *overrides);
  command->add_option("--device", options->launch.device, "auto, cpu, cuda or cuda:N")
      ->capture_default_str();
  command->add_option("--threads", options->launch.threads, "CPU threads; 0: all cores")
      ->capture_default_str();
  command->add_flag("--json", options->json, "One JSON object a line");
  command->callback([&program, options, overrides] {
    options->launch.overrides.insert(
        options->launch.overrides.end(), overrides->begin(), overrides->end());
    if (options->configs.empty()) options->configs = {""};
    program.action = [options](const Context& c) { return bench(c, *options); };
  });
}

}  // namespace forge::app

#include <unistd.h>

#include <iostream>

#include "app/bench_report.h"
#include "app/commands.h"
#include "app/launch.h"
#include "app/output.h"
#include "app/progress_line.h"
#include "app/terminal.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/benchmark/files.h"
#include "core/benchmark/operations.h"
#include "core/run/host.h"
#include "core/run/job.h"
#include "core/run/local_launcher.h"
#include "core/run/runs_dir.h"
#include "core/run/supported.h"
#include "core/store/location.h"
#include "core/store/result_store.h"

namespace forge::app {
namespace {

struct BenchOptions {
  std::vector<std::string> configs;
  LaunchOptions launch;
  int windows = 5;
  int64_t steps = 0;
  bool json = false;
};

struct OperationOptions {
  protocol::OperationBench wanted;
  std::string device = "auto";
  int threads = 0;
  bool json = false;
};

benchmark::Call this_call(const Context& context, run::Launcher& launcher) {
  benchmark::Call call;
  call.created = utc_timestamp();
  call.id = benchmark::new_call_id(call.created);
  call.command = context.command_line();
  call.revision = run::git_revision(launcher, context.workspace().root);
  call.forge_version = FORGE_VERSION;
  call.host = run::host_name();
  return call;
}

/// Files first, they are the truth; then the index.
void store_records(const std::filesystem::path& runs_dir, std::vector<benchmark::Record>& records) {
  for (benchmark::Record& record : records) benchmark::write_record(runs_dir, record);
  store::ResultStore store(store::store_path(runs_dir));
  for (const std::string& warning : store.sync(runs_dir).warnings)
    std::cerr << "warning: " << warning << "\n";
}

void print_records(const std::vector<benchmark::Record>& records) {
  nlohmann::json list = nlohmann::json::array();
  for (const benchmark::Record& record : records) list.push_back(benchmark::to_json(record));
  print_json(nlohmann::json{{"benchmarks", list}});
}

int bench(const Context& context, const BenchOptions& options) {
  run::make_runs_dir(context.runs_dir());
  run::LocalLauncher launcher;
  benchmark::Call call = this_call(context, launcher);
  std::vector<benchmark::MeasuredConfig> configs;
  std::vector<benchmark::Subject> subjects;
  for (const std::string& name : options.configs) {
    const Launch launch = check_launch(context, context.config(name), options.launch);
    benchmark::Subject subject = benchmark_subject(context, launch, options.launch, options.steps);
    call.configs.push_back(subject.name);
    configs.push_back({launch.resolved.project, subject.name, launch.resolved.json});
    subjects.push_back(std::move(subject));
  }
  std::vector<benchmark::Measurement> measurements;
  {
    ProgressLine line("bench");
    measurements = benchmark::measure_in_turns(
        launcher, subjects, options.windows, [&](double fraction, const std::string& text) {
          line.show(fraction, text);
        });
  }
  std::vector<benchmark::Record> records = benchmark::make_records(call, configs, measurements);
  store_records(context.runs_dir(), records);
  if (options.json) {
    print_records(records);
  } else {
    std::cout << bench_table(records, use_colour(STDOUT_FILENO)) << "kept in "
              << shown_path(benchmark::benchmarks_dir(context.runs_dir())) << "\n";
  }
  return 0;
}

int bench_operations(const Context& context, const OperationOptions& options) {
  run::make_runs_dir(context.runs_dir());
  run::LocalLauncher launcher;
  protocol::Request request;
  request.job = protocol::Job::bench_ops;
  request.operation_bench = options.wanted;
  request.device = options.device;
  request.threads = options.threads;
  const auto backend = context.backend(config::Experiment());
  std::vector<benchmark::Record> records(1);
  {
    ProgressLine line("bench ops");
    records[0] =
        benchmark::measure_operations(launcher,
                                      backend->command(request),
                                      request,
                                      this_call(context, launcher),
                                      [&](const nlohmann::json& values) {
                                        line.show_last(values.at("operation").get<std::string>() +
                                                       ", " + values.at("size").get<std::string>());
                                      });
  }
  store_records(context.runs_dir(), records);
  if (options.json) {
    print_records(records);
  } else {
    std::cout << operations_table(records[0], use_colour(STDOUT_FILENO));
  }
  return 0;
}

int list_records(const Context& context, bool json) {
  const std::filesystem::path runs_dir = context.runs_dir();
  std::vector<benchmark::Record> records;
  if (std::filesystem::exists(runs_dir)) {
    store::ResultStore store(store::store_path(runs_dir));
    for (const std::string& warning : store.sync(runs_dir).warnings)
      std::cerr << "warning: " << warning << "\n";
    records = store.benchmarks();
  }
  if (json) {
    print_records(records);
  } else if (records.empty()) {
    std::cerr << "no benchmarks in " << shown_path(runs_dir)
              << "; 'forge bench CONFIG' makes one\n";
  } else {
    std::cout << bench_list(records, use_colour(STDOUT_FILENO));
  }
  return 0;
}

void add_device_options(const Command& command, std::string& device, int& threads) {
  command.add_option("--device", device, "auto, cpu, cuda or cuda:N").capture_default();
  command.add_option("--threads", threads, "CPU threads; 0: all cores")
      .non_negative()
      .capture_default();
}

void add_operations(const Command& bench, Program& program) {
  auto options = std::make_shared<OperationOptions>();
  const Command command = bench.add_subcommand(
      "ops", "Measure the backend's operations, each beside plain operations of its library");
  command.footer(
      "Examples:\n"
      "  forge bench ops\n"
      "  forge bench ops canon_conv swiglu --size 4m\n"
      "  forge bench ops --precision bfloat16 --device cuda --json");
  command.add_option(
      "operation", options->wanted.operations, "Names, or beginnings of names; none: all");
  command
      .add_option("--size",
                  options->wanted.sizes,
                  "Shapes; none: those that suit the device; may be repeated")
      .type_name("NAME")
      .repeated();
  command.add_option("--precision", options->wanted.precision, "float32, float64 or bfloat16")
      .capture_default();
  add_device_options(command, options->device, options->threads);
  command.add_flag("--json", options->json, "As JSON");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return bench_operations(c, *options); };
  });
}

void add_list(const Command& bench, Program& program) {
  auto json = std::make_shared<bool>(false);
  const Command command = bench.add_subcommand("list", "List stored measurements, newest first");
  command.add_flag("--json", *json, "As JSON, each with all that was measured");
  command.callback([&program, json] {
    program.action = [json](const Context& c) { return list_records(c, *json); };
  });
}

}  // namespace

void add_bench(const Command& app, Program& program) {
  auto options = std::make_shared<BenchOptions>();
  const Command command = app.add_subcommand(
      "bench", "Measure training speed, of several configs in alternating windows, and store it");
  command.footer(
      "Examples:\n"
      "  forge bench train_llama\n"
      "  forge bench train_llama train_baseline --set train.batch_size=8\n"
      "  forge bench train_llama --windows 9 --steps 20 --device cuda --json\n"
      "  forge bench list\n"
      "  forge bench ops\n"
      "\n"
      "After a warm-up each config trains on random tokens for windows of about a second, in "
      "turns.\n"
      "Tok/s is the median of the windows, ± half of their interquartile range. The parts of a "
      "step\n"
      "are measured afterwards, with the device waited for between them. MFU is the model's FLOPs "
      "a\n"
      "second over those of the fastest large matrix product measured on the device.\n"
      "docs/BENCHMARKING.md describes it; tables show such figures with tokens_per_second: "
      "benchmark.");
  add_configs_options(command, program, options->configs);
  add_set_option(command, options->launch.overrides);
  command.add_option("--windows", options->windows, "Windows of each config")
      .between(1, 1000)
      .type_name("N")
      .capture_default();
  command.add_option("--steps", options->steps, "Steps of a window; none: about a second's")
      .positive()
      .type_name("N");
  add_device_options(command, options->launch.device, options->launch.threads);
  command.add_flag("--json", options->json, "As JSON, with all that was measured");
  command.callback([&program, command, options] {
    const std::string chosen = command.chosen_subcommand();
    if (!chosen.empty()) {
      if (options->configs.empty()) return;
      throw Error("'" + options->configs[0] + "' is in the way of '" + chosen + "'",
                  {},
                  "'forge bench --help' shows what there is");
    }
    if (options->configs.empty()) options->configs = {""};
    program.action = [options](const Context& c) { return bench(c, *options); };
  });
  add_operations(command, program);
  add_list(command, program);
}

}  // namespace forge::app

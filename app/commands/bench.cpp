#include <unistd.h>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "app/command_line.h"
#include "app/launch.h"
#include "app/terminal.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/results/benchmark/benchmark.h"
#include "core/results/store/result_store.h"
#include "core/results/tables/metrics.h"
#include "core/run/host.h"
#include "core/run/request.h"
#include "core/run/run_folder.h"
#include "core/worker/job.h"
#include "core/worker/launcher.h"

namespace forge::app {

/// The measurements of one call as a table, with a line on what they were made on.
std::string bench_table(const std::vector<benchmark::Record>& records, bool colour);

/// Stored measurements, one a line.
std::string bench_list(const std::vector<benchmark::Record>& records, bool colour);

/// Operations beside their peers and the device's ceilings.
std::string operations_table(const benchmark::Record& record, bool colour);

/// "torch 1.13.1, …": of the libraries known by a version, not those known by a path.
std::string versions_text(const benchmark::BenchDevice& device);

namespace {

using benchmark::Record;
using Lines = std::vector<std::vector<std::string>>;

std::string decimals(double number, int count) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", count, number);
  return text;
}

/// Seconds as milliseconds, with as many decimals as make three digits.
std::string milliseconds(double seconds) {
  const double value = seconds * 1000;
  return decimals(value, value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2);
}

std::string part(const Record& record, double benchmark::StepBreakdown::*seconds) {
  return record.parts ? milliseconds(*record.parts.*seconds) : "-";
}

std::string percent(double fraction) { return decimals(100 * fraction, 1) + " %"; }

std::string speed(double tokens_per_second) {
  return with_thousands(std::llround(tokens_per_second));
}

std::string ratio_text(const Record& record) {
  if (!record.ratio) return "";
  return decimals(record.ratio->median, 3) + " ± " +
         decimals(record.ratio->spread * record.ratio->median, 3);
}

std::string threads_text(const benchmark::BenchDevice& device) {
  if (device.type != "cpu") return "";
  return ", " + std::to_string(device.threads) + (device.threads == 1 ? " thread" : " threads");
}

std::string device_text(const benchmark::BenchDevice& device) {
  return device.name + threads_text(device);
}

/// With the head in bold.
std::string table(const Lines& lines, const std::vector<size_t>& right, bool colour) {
  const std::string text = aligned(lines, right);
  const size_t head = text.find('\n');
  return styled(text.substr(0, head), Style::bold, colour) + text.substr(head);
}

std::vector<size_t> all_but_first(size_t count) {
  std::vector<size_t> columns;
  for (size_t i = 1; i < count; ++i) columns.push_back(i);
  return columns;
}

/// What all records have in common, or each value once: "float32", "bfloat16, float32".
std::string precisions(const std::vector<Record>& records) {
  std::vector<std::string> values;
  for (const Record& record : records) {
    if (std::find(values.begin(), values.end(), record.precision) == values.end())
      values.push_back(record.precision);
  }
  return join(values, ", ");
}

std::string ceiling_text(const std::vector<Record>& records) {
  for (const Record& record : records) {
    if (record.ceiling)
      return ", ceiling " + decimals(record.ceiling->flops / 1e12, 3) + " TFLOP/s";
  }
  return "";
}

}  // namespace

std::string versions_text(const benchmark::BenchDevice& device) {
  std::vector<std::string> parts = {device.backend + " " + device.backend_version};
  for (const auto& [name, version] : device.libraries.items()) {
    if (!version.is_string()) continue;
    const auto text = version.get<std::string>();
    if (!text.empty() && text.find('/') == std::string::npos) parts.push_back(name + " " + text);
  }
  return join(parts, ", ");
}

std::string bench_table(const std::vector<Record>& records, bool colour) {
  const bool compares = records.size() > 1;
  Lines lines = {{"Config",
                  "Tok/s",
                  "±",
                  "Step ms",
                  "Data",
                  "Forward",
                  "Backward",
                  "Optimizer",
                  "Memory",
                  "MFU"}};
  if (compares) lines[0].push_back("vs " + records[0].config);
  for (const Record& record : records) {
    std::vector<std::string> line = {record.config,
                                     speed(record.tokens_per_second),
                                     percent(record.spread),
                                     milliseconds(record.step_seconds),
                                     part(record, &benchmark::StepBreakdown::data),
                                     part(record, &benchmark::StepBreakdown::forward),
                                     part(record, &benchmark::StepBreakdown::backward),
                                     part(record, &benchmark::StepBreakdown::optimizer),
                                     human_bytes(static_cast<double>(record.peak_memory_bytes)),
                                     record.mfu ? percent(*record.mfu) : "-"};
    if (compares) line.push_back(ratio_text(record));
    lines.push_back(std::move(line));
  }
  const benchmark::BenchDevice& device = records[0].device;
  return table(lines, all_but_first(lines[0].size()), colour) + "\n" + device_text(device) + ", " +
         precisions(records) + ceiling_text(records) + "; " + versions_text(device) + "\n";
}

std::string bench_list(const std::vector<Record>& records, bool colour) {
  Lines lines = {{"Date", "Config", "Tok/s", "±", "Batch", "Precision", "Device", "Benchmark"}};
  for (const Record& record : records) {
    const std::string date = record.call.created.substr(0, 16);
    if (record.kind == benchmark::Kind::operations) {
      lines.push_back({date,
                       std::to_string(record.operations.size()) + " operations",
                       "",
                       "",
                       "",
                       record.precision,
                       device_text(record.device),
                       record.id});
      continue;
    }
    const int64_t length = record.train.value("seq_len", int64_t{0});
    const int64_t rows = record.train.value("batch_size", int64_t{0});
    lines.push_back({date,
                     record.config,
                     speed(record.tokens_per_second),
                     percent(record.spread),
                     std::to_string(rows) + " x " + std::to_string(length),
                     record.precision,
                     device_text(record.device),
                     record.id});
  }
  return table(lines, {2, 3, 4}, colour);
}

std::string operations_table(const Record& record, bool colour) {
  Lines lines = {{"Operation", "Size", "ms", "Peer ms", "Speed-up", "GFLOP/s", "GB/s"}};
  const auto rate = [](const nlohmann::json& operation, const char* key) {
    return operation.contains(key)
               ? with_thousands(std::llround(operation.at(key).get<double>() / 1e9))
               : std::string("-");
  };
  for (const nlohmann::json& operation : record.operations) {
    const double seconds = operation.at("seconds").get<double>();
    const double peer = operation.at("peer_seconds").get<double>();
    lines.push_back({operation.at("operation").get<std::string>(),
                     operation.at("size").get<std::string>(),
                     decimals(seconds * 1000, 3),
                     decimals(peer * 1000, 3),
                     decimals(peer / seconds, 2),
                     rate(operation, "flops_per_second"),
                     rate(operation, "bytes_per_second")});
  }
  const nlohmann::json none = nlohmann::json::object();
  lines.push_back({"ceiling",
                   "",
                   "",
                   "",
                   "",
                   rate(record.ceilings.value("matrix_product", none), "flops"),
                   rate(record.ceilings.value("memory", none), "bytes_per_second")});
  return table(lines, {2, 3, 4, 5, 6}, colour) + "\n" + device_text(record.device) + ", " +
         record.precision + "; " + versions_text(record.device) + "\n";
}

namespace {

struct BenchOptions {
  std::vector<std::string> configs;
  LaunchOptions launch;
  int windows = 5;
  int64_t steps = 0;
  bool json = false;
};

struct OperationOptions {
  worker::OperationBench wanted;
  std::string device = "auto";
  int threads = 0;
  bool json = false;
};

benchmark::BenchInvocation this_call(const Context& context, worker::Launcher& launcher) {
  benchmark::BenchInvocation call;
  call.created = utc_timestamp();
  call.id = benchmark::new_call_id(call.created);
  call.command = context.command_line();
  call.revision = worker::git_revision(launcher, context.workspace().root);
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
  worker::LocalLauncher launcher;
  benchmark::BenchInvocation call = this_call(context, launcher);
  std::vector<benchmark::MeasuredConfig> configs;
  std::vector<benchmark::BenchTarget> subjects;
  for (const std::string& name : options.configs) {
    const Launch launch = check_launch(context, context.config(name), options.launch);
    benchmark::BenchTarget subject =
        benchmark_subject(context, launch, options.launch, options.steps);
    call.configs.push_back(subject.name);
    configs.push_back({launch.resolved.project, subject.name, launch.resolved.json});
    subjects.push_back(std::move(subject));
  }
  std::vector<benchmark::Measurement> measurements;
  {
    ProgressLine line("bench");
    measurements = benchmark::measure_interleaved(
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
  worker::LocalLauncher launcher;
  worker::Request request;
  request.job = worker::Job::bench_ops;
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

#include <cmath>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "app/command_line.h"
#include "app/launch.h"
#include "app/process_options.h"
#include "app/runs.h"
#include "app/terminal.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/results/benchmark/benchmark.h"
#include "core/results/store/result_store.h"
#include "core/run/backend_support.h"
#include "core/run/host.h"
#include "core/run/run_folder.h"
#include "core/run/runs_dir.h"
#include "core/worker/job.h"

namespace forge::app {
namespace {

using benchmark::Record;
using Lines = std::vector<std::vector<std::string>>;

/// Seconds as milliseconds, with as many decimals as make three digits.
std::string milliseconds(double seconds) {
  const double value = seconds * 1000;
  return results::fixed_text(value, value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2);
}

std::string megahertz(double cycles_per_second) {
  return results::fixed_text(cycles_per_second / 1e6, 0);
}

std::string part(const Record& record, double benchmark::StepBreakdown::*seconds) {
  return record.parts ? milliseconds(*record.parts.*seconds) : "-";
}

std::string percent(double fraction) { return results::fixed_text(100 * fraction, 1) + " %"; }

std::string speed(double tokens_per_second) {
  return with_thousands(std::llround(tokens_per_second));
}

std::string ratio_text(const Record& record) {
  if (!record.ratio) return "";
  return results::fixed_text(record.ratio->median, 3) + " ± " +
         results::fixed_text(record.ratio->spread * record.ratio->median, 3);
}

std::string device_text(const benchmark::BenchDevice& device) {
  return run::device_text(device.type, device.name, device.threads);
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
      return ", ceiling " + results::fixed_text(record.ceiling->flops / 1e12, 3) + " TFLOP/s";
  }
  return "";
}

/// "torch 1.13.1, …": libraries with a version, not those known by a path.
std::string versions_text(const benchmark::BenchDevice& device) {
  std::vector<std::string> parts = {device.backend + " " + device.backend_version};
  for (const auto& [name, version] : device.libraries.items()) {
    if (!version.is_string()) continue;
    const auto text = version.get<std::string>();
    if (!text.empty() && text.find('/') == std::string::npos) parts.push_back(name + " " + text);
  }
  return join(parts, ", ");
}

/// "2 processes: what they send each other takes 12.1 ms a step by itself, of which 83.0 % are
/// hidden", a line for each config that several processes have trained.
std::string exchange_lines(const std::vector<Record>& records) {
  std::string lines;
  for (const Record& record : records) {
    if (record.processes == 1) continue;
    if (records.size() > 1) lines += record.config + ": ";
    lines += std::to_string(record.processes) + " processes";
    if (record.exchange) {
      lines += "; what they send each other takes " + milliseconds(record.exchange->alone) +
               " ms a step by itself and makes a step " +
               milliseconds(std::max(0.0, record.exchange->visible)) +
               " ms longer: " + percent(record.exchange->hidden()) + " of it is hidden";
      const double of_clock = record.exchange->of_lower_clock(record.step_seconds);
      if (of_clock > 0) {
        lines += "; with it the GPUs' clock is lower, " + megahertz(*record.exchange->clock) +
                 " MHz in place of " + megahertz(*record.exchange->clock_without) +
                 ", which is up to " + milliseconds(of_clock) + " ms of a step";
      }
      if (record.exchange->waiting) {
        lines += "; they wait " + milliseconds(std::max(0.0, *record.exchange->waiting)) +
                 " ms a step for the slowest of them";
      }
    }
    lines += "\n";
  }
  return lines;
}

/// The measurements of one call as a table, with a line about the device.
std::string bench_table(const std::vector<Record>& records) {
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
  return bold_table(lines, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}) + "\n" + device_text(device) + ", " +
         precisions(records) + ceiling_text(records) + "; " + versions_text(device) + "\n" +
         exchange_lines(records) +
         "± is what windows of one process differ by; another process may differ by more\n";
}

/// Stored measurements, one per line.
std::string bench_list(const std::vector<Record>& records) {
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
  return bold_table(lines, {2, 3, 4});
}

/// Operations beside their baselines and the device's peak throughput.
std::string operations_table(const Record& record) {
  Lines lines = {{"Operation", "Size", "ms", "Baseline ms", "Speed-up", "GFLOP/s", "GB/s"}};
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
                     results::fixed_text(seconds * 1000, 3),
                     results::fixed_text(peer * 1000, 3),
                     results::fixed_text(peer / seconds, 2),
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
  return bold_table(lines, {2, 3, 4, 5, 6}) + "\n" + device_text(record.device) + ", " +
         record.precision + "; " + versions_text(record.device) + "\n";
}

struct BenchOptions {
  std::vector<std::string> configs;
  LaunchOptions launch;
  ProcessOptions processes;
  int windows = 5;
  int64_t steps = 0;
  bool json = false;
};

struct OperationOptions {
  worker::OperationBench bench;
  std::string device = "auto";
  int threads = 0;
  bool json = false;
};

benchmark::BenchInvocation this_call(const Context& context) {
  benchmark::BenchInvocation call;
  call.created = utc_timestamp();
  call.id = benchmark::new_call_id(call.created);
  call.command = context.command_line();
  call.revision = context.revision();
  call.workspace = context.workspace().root.string();
  call.workspace_id = context.workspace_id(call.workspace);
  call.forge_version = FORGE_VERSION;
  call.host = run::host_name();
  return call;
}

/// Writes the files, then updates the index from them. Returns why that could not be done: what was
/// measured is printed first.
std::optional<Error> store_records(const Context& context,
                                   std::vector<benchmark::Record>& records) {
  try {
    for (benchmark::Record& record : records) benchmark::write_record(context.runs_dir(), record);
    open_store(context);
    return std::nullopt;
  } catch (const Error& problem) {
    return problem;
  }
}

/// Throws Error where a measurement was printed and not stored.
int end_after(const std::optional<Error>& not_stored) {
  if (!not_stored) return 0;
  std::cout.flush();
  throw Error("not stored: " + not_stored->message(), not_stored->hint(), not_stored->exit_code());
}

int print_records(const std::vector<benchmark::Record>& records) {
  const auto list =
      json_list(records, [](const Record& record) { return benchmark::to_json(record); });
  return print_json(nlohmann::json{{"benchmarks", list}});
}

int bench(const Context& context, BenchOptions options) {
  take_process_options(options.processes, options.launch);
  std::vector<std::string> names = options.configs;
  if (names.empty()) names = {""};
  run::make_runs_dir(context.runs_dir());
  benchmark::BenchInvocation call = this_call(context);
  std::vector<benchmark::MeasuredConfig> configs;
  std::vector<benchmark::BenchTarget> targets;
  for (const std::string& name : names) {
    const CheckedRun launch = check_config(context, context.document(name), options.launch);
    benchmark::BenchTarget target = bench_target(context, launch, options.launch, options.steps);
    call.configs.push_back(target.name);
    configs.push_back({launch.resolved.project,
                       target.name,
                       launch.resolved.json,
                       context.program_hash(launch.resolved.experiment)});
    targets.push_back(std::move(target));
  }
  const std::vector<benchmark::Measurement> measurements = benchmark::measure_interleaved(
      context.launcher(), targets, options.windows, ProgressLine("bench").reporter());
  std::vector<benchmark::Record> records = benchmark::make_records(call, configs, measurements);
  const std::optional<Error> not_stored = store_records(context, records);
  if (options.json) {
    print_records(records);
  } else {
    std::cout << bench_table(records);
    if (!not_stored)
      std::cout << "stored in " << shown_path(benchmark::benchmarks_dir(context.runs_dir()))
                << "\n";
  }
  return end_after(not_stored);
}

int bench_operations(const Context& context, const OperationOptions& options) {
  run::make_runs_dir(context.runs_dir());
  worker::Request request;
  request.job = worker::Job::bench_ops;
  request.operation_bench = options.bench;
  request.device = options.device;
  request.threads = options.threads;
  const auto backend = context.backend(config::Experiment());
  ProgressLine line("bench ops");
  std::vector<benchmark::Record> records = {
      benchmark::measure_operations(context.launcher(),
                                    backend->command(request),
                                    request,
                                    this_call(context),
                                    [&](const nlohmann::json& values) {
                                      line.show_status(values.at("operation").get<std::string>() +
                                                       ", " + values.at("size").get<std::string>());
                                    })};
  line.clear();
  const std::optional<Error> not_stored = store_records(context, records);
  if (options.json) {
    print_records(records);
  } else {
    std::cout << operations_table(records[0]);
  }
  return end_after(not_stored);
}

struct LinkOptions {
  int processes = 2;
  std::vector<int64_t> bytes;
  std::string device = "auto";
  int threads = 1;
  bool json = false;
};

nlohmann::json to_json(const benchmark::LinkBench& bench) {
  nlohmann::json links = nlohmann::json::array();
  for (const benchmark::LinkSpeed& link : bench.links) {
    links.push_back({{"operation", link.operation},
                     {"bytes", link.bytes},
                     {"seconds", link.seconds},
                     {"bytes_per_second", link.bytes_per_second}});
  }
  return {{"processes", bench.processes},
          {"device_type", bench.device.type},
          {"device_name", bench.device.name},
          {"threads", bench.device.threads},
          {"links", links}};
}

std::string links_table(const benchmark::LinkBench& bench) {
  Lines lines = {{"Operation", "Bytes", "ms", "GB/s"}};
  for (const benchmark::LinkSpeed& link : bench.links) {
    lines.push_back({link.operation,
                     with_thousands(link.bytes),
                     results::fixed_text(link.seconds * 1000, 3),
                     results::fixed_text(link.bytes_per_second / 1e9, 2)});
  }
  return bold_table(lines, {1, 2, 3}) + "\n" + std::to_string(bench.processes) + " processes, " +
         device_text(bench.device) + "; " + versions_text(bench.device) + "\n";
}

int bench_links(const Context& context, const LinkOptions& options) {
  const config::Experiment experiment;
  const worker::BackendInfo& backend =
      context.describe_backend(experiment, options.device, options.threads);
  run::require_job(worker::Job::bench_links, backend);
  worker::Request request;
  request.device = options.device;
  request.threads = options.threads;
  constexpr int64_t kibibyte = 1024;
  request.link_bytes = options.bytes;
  if (options.bytes.empty())
    request.link_bytes = {64 * kibibyte, 1024 * kibibyte, 16 * 1024 * kibibyte};
  ProgressLine line("bench links");
  const benchmark::LinkBench bench = benchmark::measure_links(
      context.launcher(),
      context.backend(experiment)->command(request),
      request,
      options.processes,
      devices_of_processes(options.processes, options.device, backend.environment),
      [&](const benchmark::LinkSpeed& link) {
        line.show_status(link.operation + ", " + human_bytes(double(link.bytes)));
      });
  line.clear();
  if (options.json) return print_json(to_json(bench));
  std::cout << links_table(bench);
  return 0;
}

int list_records(const Context& context, bool json) {
  const std::optional<store::ResultStore> store = find_store(context);
  const std::vector<benchmark::Record> records =
      store ? store->benchmarks() : std::vector<benchmark::Record>();
  if (json) return print_records(records);
  if (records.empty()) {
    std::cerr << "no benchmarks in " << shown_path(context.runs_dir())
              << "; 'forge bench CONFIG' makes one\n";
  } else {
    std::cout << bench_list(records);
  }
  return 0;
}

void add_operations(const Command& bench) {
  const auto [command, options] =
      bench.add_command("ops",
                        "Measure the backend's operations beside its library's plain operations",
                        bench_operations);
  command.examples(
      "forge bench ops\n"
      "forge bench ops canon_conv swiglu --size 4m\n"
      "forge bench ops --precision bfloat16 --device cuda --json");
  command.add_option(
      "OPERATION", options.bench.operations, "Operation names or prefixes [default: all]");
  command
      .add_option(
          "--size", options.bench.sizes, "Name of a shape [default: those that suit the device]")
      .repeated();
  command
      .add_option("--precision", options.bench.precision, "Precision: float32, float64 or bfloat16")
      .show_default();
  add_device_options(command, options.device, options.threads);
  add_json_option(command, options.json);
}

void add_links(const Command& bench) {
  const auto [command, options] = bench.add_command(
      "links", "Measure how fast processes of one run exchange numbers", bench_links);
  command
      .details(
          "Each process has a row of so many bytes. all_to_all sends a part of it to each process, "
          "as gradients are; all_gather gets the parts of all, as weights are. The time is that of "
          "the slowest process, the median of five windows. GB/s are what a process sends to "
          "others. Nothing is stored. docs/PARALLEL.md says when a run does this.")
      .examples(
          "forge bench links\n"
          "forge bench links --processes 4 --bytes 1048576\n"
          "forge bench links --json")
      .see_also("forge bench, forge run --processes");
  command.add_option("--processes", options.processes, "Number of processes")
      .between(2, 1024)
      .show_default();
  command
      .add_option("--bytes <BYTES>",
                  options.bytes,
                  "Size of a row, a multiple of the processes [default: 64 KiB, 1 MiB and 16 MiB]")
      .repeated();
  add_device_options(command, options.device, options.threads);
  add_json_option(command, options.json);
}

void add_list(const Command& bench) {
  const auto [command, json] =
      bench.add_command("list", "List stored benchmarks, newest first", list_records);
  add_json_option(command, json, "Print JSON with every measurement");
}

}  // namespace

void add_bench(const Command& app) {
  const auto [command, options] =
      app.add_command("bench", "Measure and store the training speed of configs", bench);
  command
      .details(
          "After a warm-up the configs train on random tokens in alternating windows of about a "
          "second. Tok/s is the median over the windows, ± half their interquartile range: what "
          "windows of one process differ by. Another process may differ by more, so repeat the "
          "command before you publish a small difference. The "
          "phases of a step are measured afterwards, with a device synchronization between them. "
          "MFU is the model's FLOPs per second relative to the fastest large matrix product "
          "measured on the device. docs/BENCHMARKING.md describes the method. Tables show these "
          "numbers with 'tokens_per_second: benchmark'.")
      .examples(
          "forge bench train_llama\n"
          "forge bench train_llama train_baseline --set train.batch_size=8\n"
          "forge bench train_llama --windows 9 --steps 20 --device cuda --json\n"
          "forge bench train_llama --set train.gradient_slots=2 --gpus 2   and what links cost\n"
          "forge bench list\n"
          "forge bench ops\n"
          "forge bench links")
      .see_also("forge model, forge compare");
  add_configs_argument(command, options.configs, "Configs to measure");
  add_set_option(command, options.launch.overrides);
  add_process_options(command, options.processes, "Train each config");
  command.add_option("--windows", options.windows, "Windows of each config")
      .between(1, 1000)
      .show_default();
  command
      .add_option("--steps", options.steps, "Steps per window [default: about one second's worth]")
      .at_least(1);
  add_device_options(command, options.launch.device, options.launch.threads);
  add_json_option(command, options.json, "Print JSON with every measurement");
  add_operations(command);
  add_links(command);
  add_list(command);
}

}  // namespace forge::app

#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/json_file.h"
#include "core/base/text.h"
#include "core/base/waiting.h"
#include "core/config/experiment.h"
#include "core/model/cost.h"
#include "core/results/benchmark/benchmark.h"
#include "core/results/statistics/sample.h"
#include "core/run/identity.h"
#include "core/worker/json_fields.h"
#include "core/worker/plausible.h"

namespace forge::benchmark {

double median(const std::vector<double>& values) { return statistics::quantile(values, 0.5); }

double spread(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  return (statistics::quantile(values, 0.75) - statistics::quantile(values, 0.25)) / 2 /
         median(values);
}

std::vector<double> ratios(const std::vector<double>& own, const std::vector<double>& others) {
  std::vector<double> result;
  for (size_t i = 0; i < std::min(own.size(), others.size()); ++i) {
    result.push_back(own[i] / others[i]);
  }
  return result;
}

double StepExchange::hidden() const {
  return alone > 0 ? std::clamp(1 - visible / alone, 0.0, 1.0) : 0;
}

double StepExchange::of_lower_clock(double step_seconds) const {
  if (!clock || !clock_without) return 0;
  return std::max(0.0, step_seconds * (1 - *clock / *clock_without));
}

template <class Visitor>
void fields(Visitor& visit, BenchInvocation& call) {
  visit.field("id", call.id);
  visit.field("created", call.created);
  visit.field("command", call.command);
  visit.optional("revision", call.revision);
  visit.optional("workspace", call.workspace);
  visit.optional("workspace_id", call.workspace_id);
  visit.optional("forge_version", call.forge_version);
  visit.optional("host", call.host);
  visit.optional("configs", call.configs);
}

template <class Visitor>
void fields(Visitor& visit, BenchDevice& device) {
  visit.field("type", device.type);
  visit.field("name", device.name);
  visit.field("threads", device.threads);
  visit.optional("libraries", device.libraries);
  visit.optional("backend", device.backend);
  visit.optional("backend_version", device.backend_version);
  visit.optional("numerics_version", device.numerics_version);
}

template <class Visitor>
void fields(Visitor& visit, PeakFlops& ceiling) {
  visit.field("flops", ceiling.flops);
  visit.optional("how", ceiling.how);
}

template <class Visitor>
void fields(Visitor& visit, StepBreakdown& parts) {
  visit.field("data", parts.data);
  visit.field("forward", parts.forward);
  visit.field("backward", parts.backward);
  visit.field("optimizer", parts.optimizer);
}

template <class Visitor>
void fields(Visitor& visit, StepExchange& exchange) {
  visit.field("alone", exchange.alone);
  visit.field("visible", exchange.visible);
  visit.optional("waiting", exchange.waiting);
  visit.optional("clock", exchange.clock);
  visit.optional("clock_without", exchange.clock_without);
}

template <class Visitor>
void fields(Visitor& visit, Ratio& ratio) {
  visit.field("config", ratio.config);
  visit.field("median", ratio.median);
  visit.field("spread", ratio.spread);
}

template <class Visitor>
void training_fields(Visitor& visit, Record& record) {
  visit.field("project", record.project);
  visit.field("config", record.config);
  visit.optional("profile", record.profile);
  visit.optional("config_hash", record.config_hash);
  visit.optional("program", record.program);
  visit.field("model", record.model);
  visit.field("train", record.train);
  visit.optional("settings", record.settings);
  visit.field("window_steps", record.window_steps);
  visit.field("tokens_per_step", record.tokens_per_step);
  visit.field("windows", record.windows);
  visit.field("tokens_per_second", record.tokens_per_second);
  visit.field("spread", record.spread);
  visit.field("step_seconds", record.step_seconds);
  visit.optional("processes", record.processes);
  visit.optional("parts", record.parts);
  visit.optional("exchange", record.exchange);
  visit.field("peak_memory_bytes", record.peak_memory_bytes);
  visit.optional("start_peak_memory_bytes", record.start_peak_memory_bytes);
  visit.optional("peak_memory", record.peak_memory);
  visit.optional("peak_resident_bytes", record.peak_resident_bytes);
  visit.optional("flops_per_token", record.flops_per_token);
  visit.optional("ceiling", record.ceiling);
  visit.optional("mfu", record.mfu);
  visit.optional("ratio", record.ratio);
}

template <class Visitor>
void fields(Visitor& visit, Record& record) {
  visit.field("id", record.id);
  visit.field("kind", record.kind);
  visit.field("call", record.call);
  visit.field("device", record.device);
  visit.optional("precision", record.precision);
  if (record.kind == Kind::training) training_fields(visit, record);
  if (record.kind == Kind::operations) {
    visit.field("operations", record.operations);
    visit.optional("ceilings", record.ceilings);
  }
}

namespace {

/// What a worker says at the end of the job `bench`.
struct WorkerResult {
  std::optional<StepBreakdown> parts;
  std::optional<StepExchange> exchange;
  int64_t peak_memory_bytes = 0;
  std::optional<int64_t> start_peak_memory_bytes;
  std::string peak_memory;
  int64_t peak_resident_bytes = 0;
  std::optional<PeakFlops> ceiling;
  std::optional<int64_t> micro_batch_size;
};

template <class Visitor>
void fields(Visitor& visit, WorkerResult& result) {
  visit.optional("parts", result.parts);
  visit.optional("exchange", result.exchange);
  visit.field("peak_memory_bytes", result.peak_memory_bytes);
  visit.optional("start_peak_memory_bytes", result.start_peak_memory_bytes);
  visit.optional("peak_memory", result.peak_memory);
  visit.optional("peak_resident_bytes", result.peak_resident_bytes);
  visit.optional("ceiling", result.ceiling);
  visit.optional("micro_batch_size", result.micro_batch_size);
}

void require_clock(const std::string& name, const std::optional<double>& clock) {
  if (!clock) return;
  worker::require_finite(name, *clock);
  if (*clock <= 0)
    throw Error("'" + name + "' is impossible: " + shortest(*clock),
                "it is the clock of a GPU, in cycles per second",
                ExitCode::failed);
}

/// The record keeps them, and a utilisation is taken against the ceiling.
void require_plausible(const WorkerResult& result) {
  using worker::require_duration;
  if (result.parts) {
    require_duration("parts.data", result.parts->data);
    require_duration("parts.forward", result.parts->forward);
    require_duration("parts.backward", result.parts->backward);
    require_duration("parts.optimizer", result.parts->optimizer);
  }
  if (result.exchange) {
    require_duration("exchange.alone", result.exchange->alone);
    // Differences, which may be negative.
    require_duration("exchange.visible", std::abs(result.exchange->visible));
    require_duration("exchange.waiting", std::abs(result.exchange->waiting.value_or(0)));
    require_clock("exchange.clock", result.exchange->clock);
    require_clock("exchange.clock_without", result.exchange->clock_without);
  }
  if (!result.ceiling) return;
  worker::require_finite("ceiling.flops", result.ceiling->flops);
  if (result.ceiling->flops < 1)
    throw Error("'ceiling.flops' is impossible: " + shortest(result.ceiling->flops),
                "it is the highest speed of a matrix product, in FLOPs per second",
                ExitCode::failed);
}

Record make_record(const BenchInvocation& call,
                   const MeasuredConfig& measured,
                   const Measurement& measurement) {
  const config::Experiment experiment = config::experiment_from_json(measured.experiment);
  const auto result = worker::read_fields<WorkerResult>(measurement.result, "the worker's result");
  require_plausible(result);
  Record record;
  record.call = call;
  record.device = device_of(measurement.hello, measurement.environment);
  record.project = measured.project;
  record.config = measured.config;
  record.profile = experiment.profile;
  record.config_hash = hash_hex(json_text(run::identity_config(measured.experiment)));
  record.program = measured.program;
  record.precision = measured.experiment.at("train").at("precision").get<std::string>();
  record.model = measured.experiment.at("model");
  record.train = speed_keys(measured.experiment);
  record.settings = speed_settings(measured.experiment);
  // Where memory ran out, fewer than the config asks for.
  if (result.micro_batch_size) record.train["micro_batch_size"] = *result.micro_batch_size;
  record.window_steps = measurement.ready.window_steps;
  record.tokens_per_step = measurement.ready.tokens_per_step;
  for (const worker::Window& window : measurement.windows) {
    record.windows.push_back(static_cast<double>(window.steps * record.tokens_per_step) /
                             window.seconds);
  }
  record.tokens_per_second = median(record.windows);
  record.spread = spread(record.windows);
  record.step_seconds = static_cast<double>(record.tokens_per_step) / record.tokens_per_second;
  record.processes = measurement.processes;
  record.parts = result.parts;
  record.exchange = result.exchange;
  record.peak_memory_bytes = result.peak_memory_bytes;
  record.start_peak_memory_bytes = result.start_peak_memory_bytes;
  record.peak_memory = result.peak_memory;
  record.peak_resident_bytes = result.peak_resident_bytes;
  record.flops_per_token =
      model::flops_per_token(experiment.model, experiment.train.seq_len).total();
  record.ceiling = result.ceiling;
  return record;
}

/// A ceiling is the highest speed seen, so the highest one of the call is everyone's.
void share_ceilings(std::vector<Record>& records) {
  const auto kind = [](const Record& record) {
    return std::make_pair(record.precision, record.processes);
  };
  std::map<std::pair<std::string, int>, PeakFlops> highest;
  for (const Record& record : records) {
    if (!record.ceiling) continue;
    PeakFlops& ceiling = highest[kind(record)];
    if (record.ceiling->flops > ceiling.flops) ceiling = *record.ceiling;
  }
  for (Record& record : records) {
    if (!record.ceiling || !(highest[kind(record)].flops > 0)) continue;
    record.ceiling = highest[kind(record)];
    record.mfu = record.flops_per_token * record.tokens_per_second / record.ceiling->flops;
  }
}

}  // namespace

const std::vector<std::string>& names_of(Kind) {
  static const std::vector<std::string> names = {"training", "operations"};
  return names;
}

std::vector<Record> make_records(const BenchInvocation& call,
                                 const std::vector<MeasuredConfig>& configs,
                                 const std::vector<Measurement>& measurements) {
  std::vector<Record> records;
  for (size_t i = 0; i < measurements.size(); ++i) {
    records.push_back(make_record(call, configs.at(i), measurements[i]));
  }
  share_ceilings(records);
  for (size_t i = 1; i < records.size(); ++i) {
    const std::vector<double> of_windows = ratios(records[i].windows, records[0].windows);
    records[i].ratio = {records[0].config, median(of_windows), benchmark::spread(of_windows)};
  }
  return records;
}

nlohmann::json speed_keys(const nlohmann::json& experiment) {
  nlohmann::json keys = experiment.at("train");
  for (const char* key : {"max_steps",
                          "max_tokens",
                          "log_every",
                          "eval_every",
                          "checkpoint_every",
                          "keep_checkpoints",
                          "keep_best",
                          "max_bad_steps",
                          "hung_after_seconds",
                          "eval_rows",
                          "validation_rows",
                          "eval_batch_size",
                          "eval_prompts",
                          "initial_weights",
                          "initial_weights_seed"}) {
    keys.erase(key);
  }
  keys["optimizer"] = experiment.at("optimizer").at("type");
  return keys;
}

nlohmann::json speed_settings(const nlohmann::json& experiment) {
  nlohmann::json settings = run::identity_config(experiment);
  for (const char* section : {"model", "train", "schedule", "profile", "seed"})
    settings.erase(section);
  for (const char* key :
       {"/data/seed", "/data/order_seed", "/optimizer/lr", "/optimizer/muon/adamw_lr"}) {
    const nlohmann::json::json_pointer place(key);
    if (settings.contains(place)) settings[place.parent_pointer()].erase(place.back());
  }
  return settings;
}

std::string new_call_id(const std::string& created) {
  const std::string unique =
      created + std::to_string(::getpid()) + std::to_string(steady_seconds());
  return compact_timestamp(created) + "-" + hash_hex(unique).substr(0, 8);
}

BenchDevice device_of(const worker::Hello& hello, const worker::Environment& environment) {
  return {environment.device_type,
          environment.device_name,
          environment.threads,
          environment.libraries,
          hello.backend,
          hello.backend_version,
          hello.numerics_version};
}

nlohmann::json to_json(const Record& record) { return worker::write_fields(record); }

Record record_from_json(const nlohmann::json& json) {
  if (!json.is_object()) throw Error("a benchmark is a JSON object");
  return worker::read_fields<Record>(json, "benchmark");
}

namespace {

/// A config of a folder below templates/configs has a slash in its name, and a file's name is at
/// most 255 bytes.
std::string as_file_name(std::string name) {
  constexpr size_t most_bytes = 180;
  std::replace(name.begin(), name.end(), '/', '-');
  size_t end = std::min(name.size(), most_bytes);
  while (end < name.size() && (name[end] & 0xC0) == 0x80) --end;  // within a character
  name.resize(end);
  return name;
}

}  // namespace

fs::path benchmarks_dir(const fs::path& runs_dir) { return runs_dir / "benchmarks"; }

fs::path record_file(const fs::path& runs_dir, const Record& record) {
  return benchmarks_dir(runs_dir) / (record.id + ".json");
}

fs::path write_record(const fs::path& runs_dir, Record& record) {
  const fs::path folder = benchmarks_dir(runs_dir);
  make_own_folders(runs_dir, folder.filename());
  // No two take one name.
  const FileLock lock = lock_signed(folder / ".lock", "the folder '" + shown_path(folder) + "'");
  const std::string what = record.kind == Kind::operations ? "ops" : record.config;
  const std::string name = compact_timestamp(record.call.created) + "-" + as_file_name(what);
  record.id = name;
  for (int number = 2; fs::exists(record_file(runs_dir, record)); ++number) {
    record.id = name + "-" + std::to_string(number);
  }
  const fs::path file = record_file(runs_dir, record);
  write_file_atomic(file, json_text(to_json(record), 2) + "\n");
  return file;
}

namespace {

/// The numbers that follow from the windows: who edits one of them forgets the others. Throws
/// nlohmann::json::exception where a setting is of another kind.
void require_consistent(const Record& record) {
  for (const char* key : {"batch_size", "seq_len"}) {
    const nlohmann::json& value = record.train.at(key);
    if (!value.is_number_integer() || value.get<int64_t>() < 1)
      throw Error(std::string("train.") + key + " is no number of 1 or more");
  }
  const auto require = [](const std::string& name, double is, double follows) {
    constexpr double rounding = 1e-6;
    if (std::abs(is - follows) <= rounding * std::max(1.0, std::abs(follows))) return;
    throw Error(name + " is " + shortest(is) + ", and by its windows " + shortest(follows));
  };
  require("tokens_per_second", record.tokens_per_second, median(record.windows));
  require("spread", record.spread, spread(record.windows));
  require("step_seconds",
          record.step_seconds,
          double(record.tokens_per_step) / record.tokens_per_second);
}

}  // namespace

Record read_record(const fs::path& file) {
  const auto refuse = [&](const std::string& why) -> Error {
    return Error("'" + file.string() + "' is no benchmark: " + why, ExitCode::failed);
  };
  try {
    const nlohmann::json json = read_json_file(file);
    if (json.is_discarded()) throw Error("it is not JSON");
    Record record = record_from_json(json);
    if (record.id != file.stem().string()) throw Error("it calls itself '" + record.id + "'");
    if (record.kind == Kind::training) require_consistent(record);
    return record;
  } catch (const nlohmann::json::exception&) {
    throw refuse("a value in it is of another kind than it should be");
  } catch (const Error& error) {
    throw refuse(error.message());
  }
}

std::vector<fs::path> list_records(const fs::path& runs_dir) {
  std::vector<fs::path> files;
  for (const fs::path& path : folder_entries(benchmarks_dir(runs_dir))) {
    if (path.extension() == ".json" && !starts_with(path.filename().string(), "."))
      files.push_back(path);
  }
  std::sort(files.begin(), files.end(), [](const fs::path& a, const fs::path& b) {
    return a.stem().string() < b.stem().string();
  });
  return files;
}

}  // namespace forge::benchmark

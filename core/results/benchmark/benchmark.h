#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/worker/launcher.h"
#include "core/worker/messages.h"

/// Measured speed: how it is measured and recorded.
namespace forge::benchmark {

/// A worker to be measured, with a request of the job `bench`.
struct BenchTarget {
  std::string name;
  worker::WorkerCommand command;
  worker::Request request;
  int processes = 1;                      ///< that train together
  std::vector<std::string> devices = {};  ///< one for each; empty: they share the CPU
};

/// What a worker reported.
struct Measurement {
  worker::Hello hello;
  worker::Environment environment;
  worker::Ready ready;
  std::vector<worker::Window> windows;
  nlohmann::json result;
  int processes = 1;
};

/// The fraction of the work that is done, and what is being done.
using OnProgress = std::function<void(double fraction, const std::string& text)>;

/// Measures subjects in turns. All are started and warmed up one after the other. Then each
/// measures its first window, then each its second one, and so on, so that a machine that becomes
/// slower or faster does so for all of them. Then each finishes. Only one works at a time. Throws
/// Error with the subject's name as worker::JobSession does, and for one that does not measure in
/// windows.
std::vector<Measurement> measure_interleaved(worker::Launcher& launcher,
                                             const std::vector<BenchTarget>& subjects,
                                             int windows,
                                             const OnProgress& on_progress);

/// A short measurement of a config.
struct Probe {
  double seconds_per_step = 0;  ///< of the faster of two windows
  int64_t memory_bytes = 0;     ///< held by tensors at the peak, 0: not known
};

/// Trains for two windows and keeps nothing. Throws Error as measure_interleaved does.
Probe probe(worker::Launcher& launcher, const BenchTarget& subject, const OnProgress& on_progress);

enum class Kind {
  training,   ///< training steps of a config
  operations  ///< single operations of a backend
};
const std::vector<std::string>& names_of(Kind);

/// The call of forge that measured; the same for all its records.
struct BenchInvocation {
  std::string id;                 ///< "20261121T164512Z-1a2b3c4d"
  std::string created;            ///< UTC
  std::string command;            ///< as typed
  std::string revision;           ///< git commit of the workspace, ""
  std::string workspace = {};     ///< its root; "": not recorded
  std::string workspace_id = {};  ///< project::workspace_id of it, "": not recorded
  std::string forge_version;
  std::string host;
  std::vector<std::string> configs;  ///< all that were measured in turns, in their order
};

/// What was measured on.
struct BenchDevice {
  std::string type;  ///< cpu | cuda
  std::string name;
  int threads = 0;
  nlohmann::json libraries = nlohmann::json::object();
  std::string backend;
  std::string backend_version;
  int numerics_version = 0;
};

/// The highest speed of a matrix product that was measured on the device.
struct PeakFlops {
  double flops = 0;  ///< a second
  std::string how;   ///< in words: what was measured
};

/// Seconds of a step's parts: medians of steps that synchronize the device between the parts. Their
/// sum may exceed a step.
struct StepBreakdown {
  double data = 0;  ///< to get a batch and have it on the device
  double forward = 0;
  double backward = 0;
  double optimizer = 0;  ///< with the clip of the gradients
};

/// What several processes send each other in a step, in seconds.
struct StepExchange {
  double alone = 0;    ///< one transfer after the other, without any computation
  double visible = 0;  ///< what a step takes longer than one without gradients and weights
  std::optional<double> waiting;  ///< what such a one takes longer since all wait for the slowest
  /// Of GPUs, the mean clock of their multiprocessors in steps with it, and in those without
  /// gradients and weights: cycles a second.
  std::optional<double> clock, clock_without;

  /// The part of it that goes on behind the computation of gradients, 0 to 1.
  double hidden() const;
  /// What a step of so many seconds would take less at the clock of steps without the exchange,
  /// were all of it bound by the clock. 0 where the clocks are not known, or that one is not
  /// higher.
  double of_lower_clock(double step_seconds) const;
};

/// Speed against the first config of the call, window by window.
struct Ratio {
  std::string config;
  double median = 1;
  double spread = 0;
};

/// The result of a measurement: a JSON file, the same in forge's output and in the store.
struct Record {
  std::string id;  ///< "<time>-<config>": the file's name without .json
  Kind kind = Kind::training;
  BenchInvocation call;
  BenchDevice device;

  // Of training steps:
  std::string project;  ///< path below the workspace
  std::string config;
  std::string profile;
  std::string config_hash;  ///< of the resolved config, less what cannot change a number
  std::string program;      ///< hash of an external backend's files, see run::Identity
  std::string precision;    ///< of operations too
  nlohmann::json model = nlohmann::json::object();     ///< section of the resolved config
  nlohmann::json train = nlohmann::json::object();     ///< keys that decide the speed
  nlohmann::json settings = nlohmann::json::object();  ///< speed_settings; empty: not recorded
  int64_t window_steps = 0;
  int64_t tokens_per_step = 0;
  std::vector<double> windows;   ///< tokens a second of each
  double tokens_per_second = 0;  ///< their median
  double spread = 0;             ///< half of their interquartile range over the median
  double step_seconds = 0;
  int processes = 1;                               ///< that trained together
  std::optional<StepBreakdown> parts;              ///< none: they could not be measured
  std::optional<StepExchange> exchange;            ///< of several processes
  int64_t peak_memory_bytes = 0;                   ///< of the windows, as peak_memory says; of
                                                   ///< processes that which needs most
  std::optional<int64_t> start_peak_memory_bytes;  ///< with what came before them
  std::string peak_memory;                         ///< "tensors" or "reserved by the allocator"
  int64_t peak_resident_bytes = 0;                 ///< of the process
  double flops_per_token = 0;  ///< of the model, forward and backward, nothing computed twice
  std::optional<PeakFlops> ceiling;
  std::optional<double> mfu;  ///< model FLOPs utilisation against the ceiling, 0 to 1
  std::optional<Ratio> ratio;

  // Of operations:
  std::vector<nlohmann::json> operations;
  nlohmann::json ceilings = nlohmann::json::object();
};

/// A config that was measured.
struct MeasuredConfig {
  std::string project;
  std::string config;
  nlohmann::json experiment;  ///< resolved
  std::string program = {};   ///< see run::Identity
};

/// Records of what measure_interleaved gave, in its order. MFU is taken against the highest ceiling
/// that any of them measured on the device in the config's precision. Throws Error where a worker's
/// result lacks a number.
std::vector<Record> make_records(const BenchInvocation& call,
                                 const std::vector<MeasuredConfig>& configs,
                                 const std::vector<Measurement>& measurements);

/// The keys of `train` that may decide the speed of a step, with optimizer.type.
nlohmann::json speed_keys(const nlohmann::json& experiment);

/// The keys of the resolved config's other sections, but for the model, that may decide it: without
/// seeds, names, learning rates and the places of files.
nlohmann::json speed_settings(const nlohmann::json& experiment);

/// A name for a call of now that no other one has.
std::string new_call_id(const std::string& created);

BenchDevice device_of(const worker::Hello& hello, const worker::Environment& environment);

nlohmann::json to_json(const Record& record);
/// Throws Error naming what is missing or wrong.
Record record_from_json(const nlohmann::json& json);

/// Has a worker measure its operations one after the other, each beside plain operations of its
/// library. `on_case` gets the numbers of each as they come (docs/PROTOCOL.md: bench_ops). Throws
/// Error as worker::run_job does.
Record measure_operations(worker::Launcher& launcher,
                          const worker::WorkerCommand& command,
                          const worker::Request& request,
                          const BenchInvocation& call,
                          const std::function<void(const nlohmann::json&)>& on_case);

/// How fast processes move numbers between them.
struct LinkSpeed {
  std::string operation;        ///< "all_to_all": each has a row and sends a part to each;
                                ///< "all_gather": each gets the parts of all
  int64_t bytes = 0;            ///< of the row
  double seconds = 0;           ///< of the slowest process, the median of some windows
  double bytes_per_second = 0;  ///< that a process sends to others
};

struct LinkBench {
  int processes = 0;
  BenchDevice device;
  std::vector<LinkSpeed> links;
};

/// Has so many processes exchange rows of `link_bytes` of the request, a job `bench_links`, on the
/// devices that are named, one each, or on the CPU where none is. `on_link` gets each measurement
/// as it comes. Throws Error as worker::run_job does.
LinkBench measure_links(worker::Launcher& launcher,
                        const worker::WorkerCommand& command,
                        worker::Request request,
                        int processes,
                        const std::vector<std::string>& devices,
                        const std::function<void(const LinkSpeed&)>& on_link);

/// The folder of a runs folder where measurements lie, one file of JSON each: the truth, of which
/// the store has an index.
std::filesystem::path benchmarks_dir(const std::filesystem::path& runs_dir);

/// The file of a measurement.
std::filesystem::path record_file(const std::filesystem::path& runs_dir, const Record& record);

/// Gives the record its id, from its call's time and its config, and writes its file, aside and
/// then renamed; another file is never replaced. Returns the path. Makes the folder where it is
/// missing.
std::filesystem::path write_record(const std::filesystem::path& runs_dir, Record& record);

/// Throws Error naming the file where it cannot be read, or where its numbers are not those of its
/// windows.
Record read_record(const std::filesystem::path& file);

/// The files of all measurements, by name.
std::vector<std::filesystem::path> list_records(const std::filesystem::path& runs_dir);

double median(const std::vector<double>& values);

/// Half of the interquartile range over the median: what the middle half of the windows lies
/// within, as a fraction. A single slow window does not move it. 0 for fewer than two values.
double spread(const std::vector<double>& values);

/// Values over those measured beside them, pair by pair, as far as both go: what slows the machine
/// for a while slows both and leaves the ratio alone.
std::vector<double> ratios(const std::vector<double>& own, const std::vector<double>& others);

}  // namespace forge::benchmark

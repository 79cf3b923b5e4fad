#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/benchmark/measure.h"

namespace forge::benchmark {

enum class Kind {
  training,   ///< training steps of a config
  operations  ///< single operations of a backend
};
const std::vector<std::string>& names_of(Kind);

/// The call of forge that measured: the same for all records that it made.
struct Call {
  std::string id;        ///< "20261121T164512Z-1a2b3c4d"
  std::string created;   ///< UTC
  std::string command;   ///< as typed
  std::string revision;  ///< git commit of the workspace, ""
  std::string forge_version;
  std::string host;
  std::vector<std::string> configs;  ///< all that were measured in turns, in their order
};

/// What was measured on.
struct Device {
  std::string type;  ///< cpu | cuda
  std::string name;
  int threads = 0;
  nlohmann::json libraries = nlohmann::json::object();
  std::string backend;
  std::string backend_version;
  int numerics_version = 0;
};

/// Highest speed of a matrix product that the device was seen to reach.
struct Ceiling {
  double flops = 0;  ///< a second
  std::string how;   ///< in words: what was measured
};

/// Seconds of a step's parts: medians of steps in which the device was waited for between them, so
/// that they may sum up to more than a step.
struct Parts {
  double data = 0;  ///< to get a batch and have it on the device
  double forward = 0;
  double backward = 0;
  double optimizer = 0;  ///< with the clip of the gradients
};

/// Speed against the first config of the call, window by window.
struct Ratio {
  std::string config;
  double median = 1;
  double spread = 0;
};

/// What one measurement found: a file of JSON, the same in forge's answer and in its store.
struct Record {
  std::string id;  ///< "<time>-<config>": the file's name without .json
  Kind kind = Kind::training;
  Call call;
  Device device;

  // Of training steps:
  std::string project;  ///< path below the workspace
  std::string config;
  std::string profile;
  std::string config_hash;  ///< of the resolved config, less what cannot change a number
  std::string precision;    ///< of operations too
  nlohmann::json model = nlohmann::json::object();  ///< section of the resolved config
  nlohmann::json train = nlohmann::json::object();  ///< keys that decide the speed
  int64_t window_steps = 0;
  int64_t tokens_per_step = 0;
  std::vector<double> windows;   ///< tokens a second of each
  double tokens_per_second = 0;  ///< their median
  double spread = 0;             ///< half of their interquartile range over the median
  double step_seconds = 0;
  std::optional<Parts> parts;       ///< none: they could not be measured
  int64_t peak_memory_bytes = 0;    ///< as peak_memory says
  std::string peak_memory;          ///< "tensors" or "reserved by the allocator"
  int64_t peak_resident_bytes = 0;  ///< of the process
  double flops_per_token = 0;       ///< of the model, forward and backward, nothing computed twice
  std::optional<Ceiling> ceiling;
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
};

/// Records of what measure_in_turns gave, in its order. MFU is taken against the highest ceiling
/// that any of them measured on the device in the config's precision. Throws Error where a worker's
/// result lacks a number.
std::vector<Record> make_records(const Call& call,
                                 const std::vector<MeasuredConfig>& configs,
                                 const std::vector<Measurement>& measurements);

/// The keys of `train` that may decide the speed of a step, with optimizer.type.
nlohmann::json speed_keys(const nlohmann::json& experiment);

/// A name for a call of now that no other one has.
std::string new_call_id(const std::string& created);

Device device_of(const protocol::Hello& hello, const protocol::Environment& environment);

nlohmann::json to_json(const Record& record);
/// Throws Error naming what is missing or wrong.
Record record_from_json(const nlohmann::json& json);

}  // namespace forge::benchmark

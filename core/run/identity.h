#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace forge::run {

/// What makes two runs the same run. Everything here may change a loss; nothing else may.
struct Identity {
  nlohmann::json experiment;  ///< identifying_part of the resolved config
  std::string data_fingerprint;
  std::string tokenizer_fingerprint;
  std::string backend;          ///< name of the backend, e.g. "libtorch"
  std::string device_type;      ///< cpu | cuda
  int threads = 0;              ///< on a CPU; 0 on other devices
  int numerics_version = 0;     ///< of the backend
  std::string initial_weights;  ///< hash of the weights that it begins from, "": they are drawn
};

/// The experiment's JSON without the keys that cannot change a number: name, description,
/// train.log_every, checkpoint_every, keep_checkpoints, keep_best, max_bad_steps,
/// hung_after_seconds; and without data.path, data.evaluation_path,
/// tokenizer.path and train.initial_weights, for which hashes of their content stand: the same text
/// in another folder is the same data, of each source of a mixture too; a source of weight 0 is
/// none. Where an external backend is started is left out too; its command and environment, which
/// may well change what it computes, are not. Keys that came later are left out at their default.
/// train.deterministic is there as it came out on the run's device.
nlohmann::json identifying_part(const nlohmann::json& experiment);

nlohmann::json to_json(const Identity& identity);
Identity identity_from_json(const nlohmann::json& json);

/// 12 hexadecimal digits of the hash of the identity's canonical JSON.
std::string run_key(const Identity& identity);

}  // namespace forge::run

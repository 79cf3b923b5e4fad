#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "core/run/open_model.h"
#include "core/worker/launcher.h"

namespace forge::run {

/// What a model is asked, so that another implementation can be asked the same.
struct LogitsQuestion {
  std::filesystem::path output;  ///< safetensors file: input_ids [rows, length], logits
  int rows = 2;
  int length = 64;    ///< tokens of a row
  uint64_t seed = 0;  ///< of the token ids, which are drawn from the whole vocabulary
  std::string device = "auto";
  int threads = 0;
};

/// Has a worker compute logits for random token ids; returns what it says of the file. Throws Error
/// as worker::run_job does.
nlohmann::json write_logits(const RunModel& model,
                            const LogitsQuestion& question,
                            const worker::Backend& backend,
                            worker::Launcher& launcher);

}  // namespace forge::run

#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/worker/launcher.h"

namespace forge::conformance {

enum class Verdict { passed, failed, skipped };
const std::string& name_of(Verdict verdict);

/// What one check of a backend found.
struct Finding {
  std::string check;  ///< "describe", "unknown keys", "train", "repeat", "resume", "stop", …
  Verdict verdict = Verdict::passed;
  std::string text;  ///< what it did wrong, or what was seen
  std::string hint;  ///< what would be right, ""
};

struct CheckOptions {
  double patience_seconds = 60;  ///< in which a worker must say something new
  double longest_seconds = 300;  ///< of one job
  std::function<void(const std::string& check)> on_check;  ///< told what begins
};

/// Tries a worker out on a case of a few thousand weights: describes it, trains, trains again, goes
/// on from a checkpoint, stops it, lets it save and go on where it says that it can, evaluates, and
/// asks for what cannot be. What is wrong is said in the words of docs/PROTOCOL.md. `folder` is for
/// its files and must be empty. A program that cannot be started fails the first check, and with it
/// the others.
std::vector<Finding> check_backend(worker::Launcher& launcher,
                                   const worker::WorkerCommand& command,
                                   const std::filesystem::path& folder,
                                   const CheckOptions& options = {});

}  // namespace forge::conformance

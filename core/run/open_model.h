#pragma once

#include <filesystem>
#include <string>

#include "core/run/find_run.h"

namespace forge::run {

/// The model that a user means by RUN|DIR: a model folder of Hugging Face, else a run as find_run
/// finds it, at its newest checkpoint. Throws Error where there is neither.
RunModel open_model(const std::string& run_or_folder, const std::filesystem::path& runs_dir);

}  // namespace forge::run

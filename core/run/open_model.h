#pragma once

#include <filesystem>
#include <string>

#include "core/run/run_model.h"

namespace forge::run {

/// The model that a user means by RUN|DIR: a model folder of Hugging Face, else a run as named_run
/// finds it, at its newest checkpoint. Throws Error where there is neither.
RunModel open_model(const std::filesystem::path& runs_dir, const std::string& run_or_folder);

}  // namespace forge::run

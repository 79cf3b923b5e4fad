#pragma once

#include <filesystem>
#include <string>

#include "core/run/run_model.h"

namespace forge::run {

/// The model that a user means by RUN|DIR: a model folder of Hugging Face, else a run as named_run
/// finds it, at the checkpoint of `step`, else its newest. Throws Error where there is neither.
RunModel open_model(const std::filesystem::path& runs_dir,
                    const std::string& run_or_folder,
                    std::optional<int64_t> step = std::nullopt);

}  // namespace forge::run

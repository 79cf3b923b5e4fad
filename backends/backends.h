#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "core/run/backend.h"

namespace forge::backends {

/// The backend that a config's `backend` names; `program` is forge's own path. Throws Error naming
/// those that there are.
std::unique_ptr<run::Backend> make_backend(const std::string& name,
                                           const std::filesystem::path& program);

}  // namespace forge::backends

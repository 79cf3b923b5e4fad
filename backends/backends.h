#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config/experiment.h"
#include "core/run/backend.h"

namespace forge::backends {

/// The backend of a resolved config: forge's own, or the external program that the config names.
/// `program` is forge's own path.
std::unique_ptr<run::Backend> make_backend(const config::Experiment& experiment,
                                           const std::filesystem::path& program);

/// A backend that a config can name.
struct ListedBackend {
  std::string name;
  std::string description;
  std::filesystem::path declaration;     ///< "": it comes with forge
  std::optional<run::BackendInfo> info;  ///< none: it cannot be used here
  std::string problem;                   ///< why not
};

/// libtorch and all that are declared in `folders`; each is asked what it is.
std::vector<ListedBackend> list_backends(const std::vector<std::filesystem::path>& folders,
                                         const std::filesystem::path& program,
                                         run::Launcher& launcher);

}  // namespace forge::backends

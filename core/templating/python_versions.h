#pragma once

#include <string>
#include <vector>

namespace forge::templating {

/// Versions of the Python that `python3` starts and of the packages that a trainer of its would
/// use; "" for what is not there.
struct PythonVersions {
  std::string python, torch, transformers, accelerate;
};

/// Looks at the files that an installed Python and its packages consist of; starts no process and
/// imports nothing. `path` is the environment variable PATH, `home` the user's folder.
PythonVersions find_python_versions(const std::string& path, const std::string& home);

}  // namespace forge::templating

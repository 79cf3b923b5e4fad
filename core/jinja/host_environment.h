#pragma once

#include <functional>
#include <string>

namespace forge::jinja {

/// Versions of the Python that `python3` starts and of the packages that a trainer of its would
/// use; "" for what is not there.
struct PythonVersions {
  std::string python, torch, transformers, accelerate;
};

/// What templates see of the machine. Pinned in tests, so that a rendering is reproducible.
struct HostEnvironment {
  double unix_time = 0;  ///< what now(), isotime(), filetime() … show
  std::string working_directory;
  std::string home_directory;
  std::string host_name;
  std::string library_dir;  ///< forge's own templates, as forge_library_dir; "" if unknown
  /// The user's folders by the XDG specification; "" is the usual place below the home directory.
  std::string config_home, data_home, cache_home;
  /// Called when a template reads `versions`; null: there is no Python.
  std::function<PythonVersions()> python_versions;
  /// That of this process now. SOURCE_DATE_EPOCH sets the time.
  static HostEnvironment current();
};

/// Looks at the files that an installed Python and its packages consist of; starts no process and
/// imports nothing. `path` is the environment variable PATH, `home` the user's folder.
PythonVersions find_python_versions(const std::string& path, const std::string& home);

}  // namespace forge::jinja

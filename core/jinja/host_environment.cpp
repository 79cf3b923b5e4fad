#include "core/jinja/host_environment.h"

#include <unistd.h>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"

namespace forge::jinja {
namespace {

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// The time to show: SOURCE_DATE_EPOCH (reproducible-builds.org), else now.
double shown_time() {
  const std::string epoch = environment_variable("SOURCE_DATE_EPOCH");
  if (epoch.empty()) return unix_time();
  try {
    return parse_time(epoch);
  } catch (const Error& error) {
    throw Error("SOURCE_DATE_EPOCH: " + error.message(), error.hint());
  }
}

}  // namespace

HostEnvironment HostEnvironment::current() {
  HostEnvironment host_environment;
  host_environment.unix_time = shown_time();
  std::error_code ignored;
  host_environment.working_directory = std::filesystem::current_path(ignored).string();
  host_environment.home_directory = environment_variable("HOME");
  host_environment.config_home = environment_variable("XDG_CONFIG_HOME");
  host_environment.data_home = environment_variable("XDG_DATA_HOME");
  host_environment.cache_home = environment_variable("XDG_CACHE_HOME");
  host_environment.python_versions = [] {
    return find_python_versions(environment_variable("PATH"), environment_variable("HOME"));
  };
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) host_environment.host_name = host.data();
  return host_environment;
}

namespace {

namespace fs = std::filesystem;

struct Python {
  fs::path program;     ///< as PATH has it: in a virtual environment a link
  fs::path installed;   ///< the file itself
  std::string release;  ///< "3.11"
};

std::string first_line(const fs::path& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

/// A script of pyenv stands for the program of the version that the user chose.
fs::path behind_shim(const fs::path& program) {
  const fs::path folder = program.parent_path();
  if (folder.filename() != "shims") return program;
  const std::string version = first_line(folder.parent_path() / "version");
  const fs::path real = folder.parent_path() / "versions" / version / "bin" / program.filename();
  return !version.empty() && path_exists(real) ? real : program;
}

/// "3.11" of a program named python3.11; "" for another name.
std::string release_of(const fs::path& program) {
  const std::string name = program.filename().string();
  if (!starts_with(name, "python3.")) return "";
  const size_t end = name.find_first_not_of("0123456789", 8);
  return end == std::string::npos ? name.substr(6) : "";
}

std::optional<Python> find_python(const std::string& path) {
  for (const std::string& folder : split(path, ':')) {
    const fs::path program = behind_shim(fs::path(folder) / "python3");
    std::error_code error;
    const fs::path installed = fs::canonical(program, error);
    if (error || folder.empty()) continue;
    const std::string release = release_of(installed);
    if (release.empty()) return std::nullopt;
    return Python{program, installed, release};
  }
  return std::nullopt;
}

/// The version that the headers of an installation name: `#define PY_VERSION "3.11.7"`; or "".
std::string version_in_headers(const Python& python) {
  const fs::path prefix = python.installed.parent_path().parent_path();
  std::ifstream file(prefix / "include" / ("python" + python.release) / "patchlevel.h");
  for (std::string line; std::getline(file, line);) {
    const size_t name = line.find(" PY_VERSION ");
    const size_t begin = line.find('"', name);
    if (name == std::string::npos || begin == std::string::npos) continue;
    return line.substr(begin + 1, line.find('"', begin + 1) - begin - 1);
  }
  return "";
}

/// The whole version from what the program holds: a string of its own such as "3.11.2".
std::string version_in_program(const Python& python) {
  std::ifstream file(python.installed, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::string begin = std::string(1, '\0') + python.release + ".";
  for (size_t at = bytes.find(begin); at != std::string::npos; at = bytes.find(begin, at + 1)) {
    const size_t patch = at + begin.size();
    const size_t end = bytes.find_first_not_of("0123456789", patch);
    if (end != std::string::npos && end > patch && (bytes[end] == '\0' || bytes[end] == '+'))
      return bytes.substr(at + 1, end - at - 1);
  }
  return python.release;
}

/// The `version` of a virtual environment's pyvenv.cfg, or "".
std::string version_in_configuration(const fs::path& configuration) {
  std::ifstream file(configuration);
  for (std::string line; std::getline(file, line);) {
    const size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    const std::string key = line.substr(0, line.find_last_not_of(' ', equals - 1) + 1);
    const size_t value = line.find_first_not_of(' ', equals + 1);
    if (key == "version" && value != std::string::npos) return line.substr(value);
  }
  return "";
}

/// The folders that Python looks for packages in, in its order.
std::vector<fs::path> package_folders(const Python& python, const std::string& home) {
  const fs::path library = fs::path("lib") / ("python" + python.release);
  const fs::path environment = python.program.parent_path().parent_path();
  if (path_exists(environment / "pyvenv.cfg")) return {environment / library / "site-packages"};
  const fs::path prefix = python.installed.parent_path().parent_path();
  return {fs::path(home) / ".local" / library / "site-packages",
          fs::path("/usr/local") / library / "dist-packages",
          prefix / library / "site-packages",
          prefix / "lib" / "python3" / "dist-packages"};
}

/// The version that a package's folder of metadata is named after, "torch-2.1.0.dist-info".
std::string package_version(const std::vector<fs::path>& folders, const std::string& package) {
  for (const fs::path& folder : folders) {
    for (const fs::path& entry : folder_entries(folder)) {
      const std::string name = entry.filename().string();
      if (!starts_with(name, package + "-")) continue;
      if (ends_with(name, ".dist-info") || ends_with(name, ".egg-info"))
        return name.substr(package.size() + 1, name.rfind('.') - package.size() - 1);
    }
  }
  return "";
}

}  // namespace

PythonVersions find_python_versions(const std::string& path, const std::string& home) {
  const std::optional<Python> python = find_python(path);
  if (!python) return {};
  const fs::path environment = python->program.parent_path().parent_path();
  PythonVersions versions;
  versions.python = version_in_configuration(environment / "pyvenv.cfg");
  if (versions.python.empty()) versions.python = version_in_headers(*python);
  if (versions.python.empty()) versions.python = version_in_program(*python);
  const std::vector<fs::path> folders = package_folders(*python, home);
  versions.torch = package_version(folders, "torch");
  versions.transformers = package_version(folders, "transformers");
  versions.accelerate = package_version(folders, "accelerate");
  return versions;
}

}  // namespace forge::jinja

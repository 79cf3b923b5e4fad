#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/templating/render.h"

namespace forge::templating {
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
    throw Error("SOURCE_DATE_EPOCH: " + error.message(), {}, error.hint());
  }
}

}  // namespace

Surroundings Surroundings::of_this_machine() {
  Surroundings surroundings;
  surroundings.unix_time = shown_time();
  std::error_code ignored;
  surroundings.working_directory = std::filesystem::current_path(ignored).string();
  surroundings.home_directory = environment_variable("HOME");
  surroundings.config_home = environment_variable("XDG_CONFIG_HOME");
  surroundings.data_home = environment_variable("XDG_DATA_HOME");
  surroundings.cache_home = environment_variable("XDG_CACHE_HOME");
  surroundings.python_versions = [] {
    return find_python_versions(environment_variable("PATH"), environment_variable("HOME"));
  };
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) surroundings.host_name = host.data();
  return surroundings;
}

}  // namespace forge::templating

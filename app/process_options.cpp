#include "app/process_options.h"

#include "app/select_runs.h"

#include "core/base/error.h"
#include "core/base/text.h"

namespace forge::app {

void add_process_options(const Command& command, ProcessOptions& options, const std::string& what) {
  const Argument gpus =
      command.add_option("--gpus <N|auto>",
                         options.gpus,
                         what +
                             " on N GPUs of this machine, a process on each; sets "
                             "parallel.processes");
  command
      .add_option(
          "--processes", options.processes, what + " by N processes; the same numbers as by one")
      .at_least(1)
      .excludes(gpus);
}

void take_process_options(const ProcessOptions& options, LaunchOptions& launch) {
  const std::string key = "parallel.processes";
  const auto take = [&](const std::string& option, const std::string& value) {
    require_not_set(launch.overrides, key, option + " " + value);
    launch.overrides.push_back(key + "=" + value);
  };
  if (!options.gpus.empty()) take("--gpus", options.gpus);
  if (options.processes > 0) take("--processes", std::to_string(options.processes));
  launch.needs_gpus = !options.gpus.empty();
}

std::vector<std::string> devices_of_processes(int processes,
                                              const std::string& device,
                                              const worker::Environment& environment) {
  if (processes == 1 || environment.device_type == "cpu") return {};
  const bool is_named = device.find(':') != std::string::npos;
  std::vector<std::string> devices;
  for (const std::string& name : environment.devices) {
    if (starts_with(name, environment.device_type) && (!is_named || name == device))
      devices.push_back(name);
  }
  const std::string count = std::to_string(devices.size());
  if (devices.size() < static_cast<size_t>(processes)) {
    throw Error(std::to_string(processes) + " processes need a GPU each, and " +
                    (is_named ? "--device " + device + " is " : "the backend sees ") + count,
                is_named ? "--device cuda" : "--processes " + count + ", or --device cpu");
  }
  devices.resize(static_cast<size_t>(processes));
  return devices;
}

}  // namespace forge::app

#include "core/run/queue/gpu_names.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "core/base/files.h"
#include "core/base/text.h"

namespace forge::queue {
namespace {

constexpr const char* gpu_prefix = "cuda:";

/// The GPUs that a variable with commas names, as CUDA reads it: with blanks around them, and up to
/// the first that can be none. Slashes, of parts of a GPU, would part folders.
std::vector<std::string> listed(const char* variable) {
  const char* const value = std::getenv(variable);
  const auto is_name = [](const std::string& part) {
    constexpr size_t longest = 100;
    return !part.empty() && part.size() <= longest &&
           std::all_of(part.begin(), part.end(), [](char c) {
             return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                    c == '-' || c == '/';
           });
  };
  std::vector<std::string> names;
  for (const std::string& part : split(value ? value : "", ',')) {
    std::string name(trim(part));
    if (!is_name(name)) break;
    std::replace(name.begin(), name.end(), '/', '_');
    names.push_back(std::move(name));
  }
  return names;
}

bool is_number(const std::string& part) {
  constexpr size_t most_digits = 4;
  return part.size() <= most_digits &&
         std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// The numbers of the GPUs that this process may use: control groups (of Slurm, of a container)
/// hide the device files of the others, or refuse them. None where there are no such files.
std::vector<std::string> usable_gpus(const fs::path& device_files) {
  constexpr int most_gpus = 256;
  std::vector<std::string> usable;
  for (int number = 0; number < most_gpus; ++number) {
    const fs::path file = device_files / ("nvidia" + std::to_string(number));
    if (::access(file.c_str(), R_OK | W_OK) == 0) usable.push_back(std::to_string(number));
  }
  return usable;
}

/// The machine's names of this process's GPUs, in its order; none where it has all of them, or
/// nobody says.
std::vector<std::string> visible_gpus(const fs::path& device_files) {
  const std::vector<std::string> usable = usable_gpus(device_files);
  std::vector<std::string> visible = listed("CUDA_VISIBLE_DEVICES");
  if (visible.empty()) return usable;
  for (std::string& gpu : visible) {
    const size_t place = is_number(gpu) ? std::stoul(gpu) : usable.size();
    if (place < usable.size()) gpu = usable[place];
  }
  return visible;
}

}  // namespace

std::string machine_name(const std::string& device, const fs::path& device_files) {
  if (!starts_with(device, gpu_prefix)) return device;
  const std::vector<std::string> gpus = visible_gpus(device_files);
  const std::string number = device.substr(std::string(gpu_prefix).size());
  if (number.empty() || !is_number(number) || std::stoul(number) >= gpus.size()) return device;
  return gpu_prefix + gpus[std::stoul(number)];
}

std::optional<std::string> visible_name(const std::string& machine_name,
                                        const fs::path& device_files) {
  if (!starts_with(machine_name, gpu_prefix)) return machine_name;
  const std::vector<std::string> gpus = visible_gpus(device_files);
  if (gpus.empty()) return machine_name;
  const auto found =
      std::find(gpus.begin(), gpus.end(), machine_name.substr(std::string(gpu_prefix).size()));
  if (found == gpus.end()) return std::nullopt;
  return gpu_prefix + std::to_string(found - gpus.begin());
}

}  // namespace forge::queue

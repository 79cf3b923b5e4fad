#include "core/run/queue/gpu_names.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "core/base/text.h"

namespace forge::queue {
namespace {

constexpr const char* gpu_prefix = "cuda:";

/// The parts of a variable with commas. None where it is not set, or has what is no name of a GPU.
std::vector<std::string> listed(const char* variable) {
  const char* const value = std::getenv(variable);
  if (!value || !*value) return {};
  const std::vector<std::string> parts = split(value, ',');
  const auto is_name = [](const std::string& part) {
    constexpr size_t longest = 100;
    return !part.empty() && part.size() <= longest &&
           std::all_of(part.begin(), part.end(), [](char c) {
             return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                    c == '-';
           });
  };
  return std::all_of(parts.begin(), parts.end(), is_name) ? parts : std::vector<std::string>();
}

bool is_number(const std::string& part) {
  constexpr size_t most_digits = 4;
  return part.size() <= most_digits &&
         std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// The machine's names of this process's GPUs, in its order; none where it has all of them, or
/// nobody says.
std::vector<std::string> visible_gpus() {
  std::vector<std::string> visible = listed("CUDA_VISIBLE_DEVICES");
  std::vector<std::string> of_job = listed("SLURM_STEP_GPUS");
  if (of_job.empty()) of_job = listed("SLURM_JOB_GPUS");
  const auto is_of_job = [&](const std::string& gpu) {
    return !is_number(gpu) || std::find(of_job.begin(), of_job.end(), gpu) != of_job.end();
  };
  // Where Slurm hides the other GPUs, the numbers are those of the job's.
  if (of_job.empty() || std::all_of(visible.begin(), visible.end(), is_of_job)) return visible;
  for (std::string& gpu : visible) {
    const size_t place = is_number(gpu) ? std::stoul(gpu) : of_job.size();
    if (place < of_job.size()) gpu = of_job[place];
  }
  return visible;
}

}  // namespace

std::string machine_name(const std::string& device) {
  if (!starts_with(device, gpu_prefix)) return device;
  const std::vector<std::string> gpus = visible_gpus();
  const std::string number = device.substr(std::string(gpu_prefix).size());
  if (number.empty() || !is_number(number) || std::stoul(number) >= gpus.size()) return device;
  return gpu_prefix + gpus[std::stoul(number)];
}

std::optional<std::string> visible_name(const std::string& machine_name) {
  if (!starts_with(machine_name, gpu_prefix)) return machine_name;
  const std::vector<std::string> gpus = visible_gpus();
  if (gpus.empty()) return machine_name;
  const auto found =
      std::find(gpus.begin(), gpus.end(), machine_name.substr(std::string(gpu_prefix).size()));
  if (found == gpus.end()) return std::nullopt;
  return gpu_prefix + std::to_string(found - gpus.begin());
}

}  // namespace forge::queue

#pragma once

#include <filesystem>
#include <optional>
#include <string>

/// CUDA numbers the GPUs anew that a process may use: of those that a job of Slurm or a container
/// leaves to it, the ones that CUDA_VISIBLE_DEVICES names. Its "cuda:0" may be any GPU of the
/// machine. Leases are of the machine's GPUs.
namespace forge::queue {

/// What all commands of the machine call a device that is `device` in this process: "cuda:3" by the
/// number of its device file, or "cuda:GPU-8932f937" where CUDA_VISIBLE_DEVICES names it so. Other
/// devices than GPUs keep their name. `device_files`: the folder of nvidia0, nvidia1, …
std::string machine_name(const std::string& device,
                         const std::filesystem::path& device_files = "/dev");

/// The reverse; none where this process does not see the device.
std::optional<std::string> visible_name(const std::string& machine_name,
                                        const std::filesystem::path& device_files = "/dev");

}  // namespace forge::queue

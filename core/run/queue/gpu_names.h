#pragma once

#include <optional>
#include <string>

/// CUDA numbers the GPUs anew that CUDA_VISIBLE_DEVICES leaves to a process: its "cuda:0" may be
/// any GPU of the machine. Leases are of the machine's GPUs.
namespace forge::queue {

/// What all commands of the machine call a device that is `device` in this process: "cuda:3", or
/// "cuda:GPU-8932f937" where the variable names it so. A job of Slurm that sees its own GPUs alone
/// has them numbered from 0, and the machine's numbers in SLURM_STEP_GPUS or SLURM_JOB_GPUS. Other
/// devices than GPUs keep their name.
std::string machine_name(const std::string& device);

/// The reverse; none where this process does not see the device.
std::optional<std::string> visible_name(const std::string& machine_name);

}  // namespace forge::queue

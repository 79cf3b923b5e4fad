#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/files.h"
#include "core/worker/messages.h"

/// Devices, and the parts of them that runs hold while they compute.
namespace forge::queue {

/// A device of a machine, divided into units that runs lease: a CPU into its cores, a GPU into
/// gpu_units parts, so that a number of runs may share it.
struct LeaseDevice {
  std::string name;  ///< "cpu", "cuda:0", as the whole machine calls it: gpu_names.h
  int units = 1;
  std::string visible = {};  ///< what the run's command calls it; "": the same
  /// Of a CPU, the numbers of the cores that the command may use, a unit each; none: any cores.
  std::vector<int> cores = {};
};

/// Whether runs with these devices may want the same unit: the names are one and, where each names
/// its cores, they have a core in common.
bool may_share(const LeaseDevice& a, const LeaseDevice& b);

/// The CPU as this process may use it: with as many units as it has cores.
LeaseDevice own_cpu();

constexpr int gpu_units = 24;  ///< divisible by 2, 3, 4, 6, 8 and 12

/// Units of a device that a run uses. A unit is a lock on one byte of the device's file (an open
/// file description lock). Processes that inherit the descriptor hold the lock too; the kernel
/// releases it when the last of them ends. So a device is free only when nobody computes on it.
class Lease {
 public:
  /// `units` of the device (all if it has fewer), or none while too many are taken. Only one
  /// process may call this at a time. `folder` holds the files; it is made if it is missing.
  static std::optional<Lease> try_acquire(const fs::path& folder,
                                          const LeaseDevice& device,
                                          int units);

  const std::string& device() const { return device_; }
  /// For child processes to inherit; closed with this object.
  int descriptor() const { return file_.get(); }

 private:
  Lease(std::string device, FileDescriptor file)
      : device_(std::move(device)), file_(std::move(file)) {}

  std::string device_;
  FileDescriptor file_;
};

/// Leases of `count` of the devices, the first ones with room, `units` of each. All or none: nobody
/// waits with some of them for the others, so that two runs never wait for each other. Empty where
/// there are too few.
std::vector<Lease> try_acquire_all(const fs::path& folder,
                                   const std::vector<LeaseDevice>& devices,
                                   int count,
                                   int units);

/// How many units of the device are taken now.
int used_units(const fs::path& folder, const LeaseDevice& device);

/// The devices that a run may use, any of them, and the units that it needs.
struct ResourceRequest {
  std::vector<LeaseDevice> devices;
  int units = 1;  ///< of each device
  int count = 1;  ///< of devices, at once
};

/// Frees the device of a lease that this process was given, for all who share it, and closes the
/// descriptor: a program that the worker left behind would hold it as long as it lives.
void release_lease(int descriptor);

/// The request of a run that its backend would run on `environment`. On a CPU of `cores` it needs
/// as many as it has threads. It needs a whole GPU, unless `jobs` runs at once (0: no limit) share
/// fewer GPUs evenly. `device` is the user's choice: "cuda:1" is that device, anything else any
/// device of the environment's type. A run of several processes needs a whole GPU for each; throws
/// Error where there are not as many.
ResourceRequest resource_request(const worker::Environment& environment,
                                 const std::string& device,
                                 int jobs,
                                 int cores,
                                 int processes = 1);

/// CPU threads for each of `jobs` runs at once on `cores`: an even share, at least one.
int threads_for(int jobs, int cores);

}  // namespace forge::queue

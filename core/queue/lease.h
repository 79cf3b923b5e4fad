#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/base/fs.h"

namespace forge::queue {

/// A device of a machine, divided into units that runs lease: a CPU into its cores, a GPU into
/// gpu_units parts, so that a number of runs may share it.
struct Device {
  std::string name;  ///< "cpu", "cuda:0"
  int units = 1;
};

constexpr int gpu_units = 24;  ///< divisible by 2, 3, 4, 6, 8 and 12

/// Units of a device that are taken. They are locks on bytes of a file which belong to an open
/// file: every process that inherits the descriptor holds them too, and the kernel gives them back
/// when the last of these is gone, however it ended. So a device is free only when nobody computes
/// on it.
class Lease {
 public:
  /// `units` of the device (all of it, where it has fewer), or nothing while too many are taken. To
  /// be called by one process at a time. `folder` holds the files; it is made where it is missing.
  static std::optional<Lease> try_take(const fs::path& folder, const Device& device, int units);

  const std::string& device() const { return device_; }
  /// To be inherited; closed when this object goes.
  int descriptor() const { return file_.get(); }

 private:
  Lease(std::string device, FileDescriptor file)
      : device_(std::move(device)), file_(std::move(file)) {}

  std::string device_;
  FileDescriptor file_;
};

/// How many units of the device are taken now.
int taken_units(const fs::path& folder, const Device& device);

}  // namespace forge::queue

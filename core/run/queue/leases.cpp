#include "core/run/queue/leases.h"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>

#include "core/base/error.h"
#include "core/base/owner.h"
#include "core/base/parallel.h"
#include "core/base/text.h"
#include "core/run/host.h"
#include "core/run/queue/gpu_names.h"
#include "core/run/queue/owners.h"

namespace forge::queue {
namespace {

struct flock lock_of(int unit, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = unit;
  lock.l_len = 1;
  return lock;
}

fs::path file_of(const fs::path& folder, const LeaseDevice& device) { return folder / device.name; }

/// The machine's number of a unit: commands that are bound to other cores lease other ones.
int number_of(const LeaseDevice& device, int unit) {
  return device.cores.empty() ? unit : device.cores.at(static_cast<size_t>(unit));
}

}  // namespace

bool may_share(const LeaseDevice& a, const LeaseDevice& b) {
  if (a.name != b.name) return false;
  if (a.cores.empty() || b.cores.empty()) return true;
  return std::any_of(a.cores.begin(), a.cores.end(), [&](int core) {
    return std::find(b.cores.begin(), b.cores.end(), core) != b.cores.end();
  });
}

LeaseDevice own_cpu() { return {"cpu", usable_cores(), "", own_cores()}; }

std::optional<Lease> Lease::try_acquire(const fs::path& folder,
                                        const LeaseDevice& device,
                                        int units) {
  make_own_folders(folder.parent_path(), folder.filename());
  const fs::path path = file_of(folder, device);
  FileDescriptor file = open_own_file(path, O_RDWR | O_CREAT);
  const int wanted = std::clamp(units, 1, device.units);
  int taken = 0;
  for (int unit = 0; unit < device.units && taken < wanted; ++unit) {
    struct flock lock = lock_of(number_of(device, unit), F_WRLCK);
    if (::fcntl(file.get(), F_OFD_SETLK, &lock) == 0) {
      ++taken;
    } else if (errno != EAGAIN && errno != EACCES) {
      throw system_error("lock '" + path.string() + "'", errno);
    }
  }
  if (taken < wanted) return std::nullopt;
  return Lease(device.name, std::move(file));
}

std::vector<Lease> try_acquire_all(const fs::path& folder,
                                   const std::vector<LeaseDevice>& devices,
                                   int count,
                                   int units) {
  std::vector<Lease> leases;
  for (const LeaseDevice& device : devices) {
    if (static_cast<int>(leases.size()) >= count) break;
    if (auto lease = Lease::try_acquire(folder, device, units)) leases.push_back(std::move(*lease));
  }
  if (static_cast<int>(leases.size()) < count) leases.clear();
  return leases;
}

int used_units(const fs::path& folder, const LeaseDevice& device) {
  const FileDescriptor file(
      ::open(file_of(folder, device).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return 0;
  int taken = 0;
  for (int unit = 0; unit < device.units; ++unit) {
    struct flock lock = lock_of(number_of(device, unit), F_WRLCK);
    if (::fcntl(file.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK) ++taken;
  }
  return taken;
}

void release_lease(int descriptor) {
  struct flock all {};  // from the first unit to the last
  all.l_type = F_UNLCK;
  all.l_whence = SEEK_SET;
  ::fcntl(descriptor, F_OFD_SETLK, &all);
  ::close(descriptor);
}

ResourceRequest resource_request(const worker::Environment& environment,
                                 const std::string& device,
                                 int jobs,
                                 int cores,
                                 int processes) {
  if (environment.device_type == "cpu") {
    LeaseDevice cpu = own_cpu();
    if (cpu.units != cores) cpu = {"cpu", std::max(1, cores)};
    return {{cpu}, std::clamp(environment.threads, 1, cpu.units)};
  }
  ResourceRequest demand;
  for (const std::string& name : environment.devices) {
    const bool chosen = device.find(':') == std::string::npos || device == name;
    if (!chosen || !starts_with(name, environment.device_type)) continue;
    const std::string whole = machine_name(name);
    demand.devices.push_back({whole, gpu_units, whole == name ? "" : name});
  }
  if (demand.devices.empty()) demand.devices.push_back({environment.device_type, gpu_units});
  const int devices = static_cast<int>(demand.devices.size());
  if (processes > devices) {
    throw Error(
        "parallel.processes " + std::to_string(processes) + " needs as many GPUs, and " +
            (device.find(':') == std::string::npos ? "this machine has " : device + " is ") +
            std::to_string(devices),
        "parallel.processes: auto takes as many as there are",
        ExitCode::usage);
  }
  demand.count = processes;
  demand.units = gpu_units;
  if (processes > 1) return demand;
  const int on_each = std::max(1, (jobs + devices - 1) / devices);
  demand.units = std::max(1, gpu_units / on_each);
  return demand;
}

int threads_for(int jobs, int cores) { return std::max(1, cores / std::max(1, jobs)); }

}  // namespace forge::queue

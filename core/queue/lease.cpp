#include "core/queue/lease.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "core/base/error.h"

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

fs::path file_of(const fs::path& folder, const Device& device) { return folder / device.name; }

}  // namespace

std::optional<Lease> Lease::try_take(const fs::path& folder, const Device& device, int units) {
  make_directories(folder);
  const fs::path path = file_of(folder, device);
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!file) throw system_error("open '" + path.string() + "'", errno);
  const int wanted = std::clamp(units, 1, device.units);
  int taken = 0;
  for (int unit = 0; unit < device.units && taken < wanted; ++unit) {
    struct flock lock = lock_of(unit, F_WRLCK);
    if (::fcntl(file.get(), F_OFD_SETLK, &lock) == 0) {
      ++taken;
    } else if (errno != EAGAIN && errno != EACCES) {
      throw system_error("lock '" + path.string() + "'", errno);
    }
  }
  if (taken < wanted) return std::nullopt;
  return Lease(device.name, std::move(file));
}

int taken_units(const fs::path& folder, const Device& device) {
  const FileDescriptor file(::open(file_of(folder, device).c_str(), O_RDWR | O_CLOEXEC));
  if (!file) return 0;
  int taken = 0;
  for (int unit = 0; unit < device.units; ++unit) {
    struct flock lock = lock_of(unit, F_WRLCK);
    if (::fcntl(file.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK) ++taken;
  }
  return taken;
}

}  // namespace forge::queue

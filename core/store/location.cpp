#include "core/store/location.h"

#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/fs.h"
#include "core/base/hash.h"

namespace forge::store {
namespace fs = std::filesystem;
namespace {

/// f_type values, from statfs(2) and <linux/magic.h>; the clusters' own from their kernel modules.
constexpr int64_t remote_types[] = {
    0x6969,      // NFS
    0x517B,      // SMB
    0xFF534D42,  // CIFS
    0xFE534D42,  // SMB2
    0x65735546,  // FUSE: sshfs, s3fs, virtiofs, …
    0x0BD00BD0,  // Lustre
    0x47504653,  // GPFS
    0x19830326,  // BeeGFS
    0x00C36400,  // Ceph
    0xAAD7AAEA,  // PanFS
    0x5346414F,  // AFS
    0x6B414653,  // kAFS
    0x01161970,  // GFS2
    0x7461636F,  // OCFS2
    0x01021997,  // 9P
    0x73757245,  // Coda
};

/// The nearest folder upwards that exists: the runs folder itself may not have been made yet.
fs::path existing_folder(fs::path folder) {
  std::error_code ignored;
  while (!fs::exists(folder, ignored) && folder.has_relative_path()) folder = folder.parent_path();
  return folder;
}

}  // namespace

bool is_remote_file_system(int64_t type) {
  // Kernels give the 32-bit numbers with or without sign extension.
  const int64_t magic = type & 0xFFFFFFFF;
  return std::find(std::begin(remote_types), std::end(remote_types), magic) !=
         std::end(remote_types);
}

fs::path cached_store_path(const fs::path& runs_dir) {
  const std::string name = hash_hex(fs::weakly_canonical(runs_dir).string()).substr(0, 16);
  return user_cache_dir() / "stores" / (name + ".sqlite");
}

fs::path store_path(const fs::path& runs_dir) {
  const fs::path folder = existing_folder(fs::absolute(runs_dir));
  struct statfs status {};
  const bool remote =
      ::statfs(folder.c_str(), &status) == 0 && is_remote_file_system(status.f_type);
  if (remote || ::access(folder.c_str(), W_OK) != 0) return cached_store_path(runs_dir);
  return runs_dir / "forge.sqlite";
}

}  // namespace forge::store

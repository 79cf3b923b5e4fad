#include "core/run/queue/environment.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <vector>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/base/json_file.h"
#include "core/base/text.h"
#include "core/run/folder_id.h"
#include "core/run/host.h"

namespace forge::queue {
namespace {

constexpr int64_t most_bytes = 4 << 20;  // more than Linux gives a process

/// The host's name, the settings and their folder, and the variables as the kernel has them,
/// "NAME=VALUE", each ended by a NUL.
fs::path file_of(const fs::path& queue_folder, const std::string& group) {
  return environments_folder(queue_folder) / group;
}

/// Whether nobody else has written it, nor could have.
bool is_of_this_user(const fs::path& file) {
  struct stat status {};
  return ::lstat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         status.st_uid == ::geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool is_file_name(const std::string& group) {
  return !group.empty() && group.size() <= 200 && group[0] != '.' &&
         group.find('/') == std::string::npos;
}

Environment parsed(const std::vector<std::string>& variables) {
  Environment environment;
  for (const std::string& variable : variables) {
    const size_t end = variable.find('=');
    if (end != std::string::npos && end > 0)
      environment[variable.substr(0, end)] = variable.substr(end + 1);
  }
  return environment;
}

std::string own_variables() {
  std::string text;
  for (char** variable = environ; variable && *variable; ++variable) {
    text += *variable;
    text += '\0';
  }
  return text;
}

}  // namespace

fs::path environments_folder(const fs::path& queue_folder) {
  // Hosts and containers that share a cache may have another queue under the same path, and one
  // queue may be seen under several. A copy has another inode.
  const std::string id = run::folder_id(fs::absolute(queue_folder).parent_path());
  struct stat status {};
  std::error_code unreadable;
  const std::string queue =
      id.empty() || ::stat(queue_folder.c_str(), &status) != 0
          ? fs::weakly_canonical(fs::absolute(queue_folder), unreadable).string()
          : id + " " + std::to_string(status.st_ino);
  return user_cache_dir() / "environments" / hash_hex(run::host_name() + '\0' + queue);
}

void keep_own_environment(const fs::path& queue_folder, const std::string& group) try {
  if (!is_file_name(group)) return;
  run::made_folder_id(fs::absolute(queue_folder).parent_path());
  if (path_exists(file_of(queue_folder, group))) return;
  const fs::path folder = environments_folder(queue_folder);
  make_directories(folder);
  for (const fs::path& own : {folder.parent_path(), folder}) {
    if (::chmod(own.c_str(), S_IRWXU) != 0)
      throw system_error("keep others out of '" + own.string() + "'", errno);
  }
  const fs::path file = file_of(queue_folder, group);
  const worker::ProcessSettings settings = worker::own_settings();
  std::string text;
  for (const std::string& item :
       {run::host_name(), worker::to_text(settings), settings.folder.string()})
    text += item + '\0';
  write_file_atomic(file, text + own_variables());
  ::chmod(file.c_str(), S_IRUSR | S_IWUSR);  // for copies of it; the folder keeps others out
} catch (const Error&) {
  // The runs are started in the environment of whoever serves the queue then.
}

std::optional<KeptEnvironment> kept_environment(const fs::path& queue_folder,
                                                const std::string& group) {
  const fs::path file = file_of(queue_folder, group);
  if (!is_file_name(group) || !is_of_this_user(file)) return std::nullopt;
  try {
    const std::vector<std::string> lines = split(read_file_within(file, most_bytes), '\0');
    constexpr size_t variables_begin = 3;
    if (lines.size() < variables_begin || lines[0] != run::host_name()) return std::nullopt;
    std::optional<worker::ProcessSettings> settings = worker::settings_from_text(lines[1]);
    if (!settings) return std::nullopt;
    settings->folder = lines[2];
    return KeptEnvironment{parsed({lines.begin() + variables_begin, lines.end()}),
                           std::move(*settings)};
  } catch (const Error&) {
    return std::nullopt;  // it is the starter's then, as where nothing was kept
  }
}

Environment own_environment_with(const Environment& numerics_variables) {
  static const std::set<std::string> believed = {"ATEN_CPU_CAPABILITY",
                                                 "CUBLAS_WORKSPACE_CONFIG",
                                                 "DNNL_CPU_ISA_HINTS",
                                                 "DNNL_DEFAULT_FPMATH_MODE",
                                                 "DNNL_MAX_CPU_ISA",
                                                 "FORGE_PYTORCH_COMPILE",
                                                 "MKL_CBWR",
                                                 "NVIDIA_TF32_OVERRIDE",
                                                 "ONEDNN_CPU_ISA_HINTS",
                                                 "ONEDNN_DEFAULT_FPMATH_MODE",
                                                 "ONEDNN_MAX_CPU_ISA",
                                                 "OPENBLAS_CORETYPE"};
  Environment environment = parsed(split(own_variables(), '\0'));
  for (const auto& [name, value] : run::numerics_variables()) environment.erase(name);
  for (const auto& [name, value] : numerics_variables)
    if (believed.count(name) > 0) environment[name] = value;
  return environment;
}

void forget_environments(const fs::path& queue_folder,
                         const std::function<bool(const std::string& group)>& is_needed) {
  for (const fs::path& file : folder_entries(environments_folder(queue_folder)))
    if (!is_needed(file.filename().string())) remove_tree(file);
}

}  // namespace forge::queue

#include "core/run/queue/hosts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "core/base/clock.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/folders.h"
#include "core/base/parallel.h"
#include "core/base/pinned_folder.h"
#include "core/base/text.h"
#include "core/run/host.h"
#include "core/run/queue/gpu_names.h"
#include "core/run/queue/owners.h"
#include "core/run/queue/place.h"
#include "core/run/request.h"
#include "core/run/run_folder.h"

namespace forge::queue {
namespace {

fs::path sign_of(const fs::path& runs_dir, const std::string& host) {
  return runs_dir / ".queue" / "hosts" / host;
}

/// Of a user's forge on a host.
std::string user_sign(const std::string& host, uid_t user) {
  return std::to_string(user) + "@" + host;
}

/// Of this user's forge in a place of this host.
std::string place_sign(const std::string& place) {
  return user_sign(run::host_name(), ::geteuid()) + "@" + place;
}

bool is_place_sign(const std::string& name) {
  return std::count(name.begin(), name.end(), '@') > 1;
}

std::optional<double> time_of(const fs::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return std::nullopt;
  return double(status.st_mtim.tv_sec) + double(status.st_mtim.tv_nsec) * 1e-9;
}

/// A host's own and those of its users: a user may not be allowed to give the host's.
std::vector<fs::path> sign_files_of(const fs::path& runs_dir, const std::string& host) {
  std::vector<fs::path> files = {sign_of(runs_dir, host)};
  const std::string of_user = "@" + host;
  for (const fs::path& sign : folder_entries(runs_dir / ".queue" / "hosts"))
    if (ends_with(sign.filename().string(), of_user)) files.push_back(sign);
  return files;
}

/// Times of a host's signs; none where they cannot be looked at.
std::optional<std::vector<double>> signs_of(const fs::path& runs_dir, const std::string& host) {
  std::vector<double> times;
  for (const fs::path& file : sign_files_of(runs_dir, host)) {
    const std::optional<double> time = time_of(file);
    if (!time && errno != ENOENT) return std::nullopt;
    if (time) times.push_back(*time);
  }
  return times;
}

constexpr double silent_seconds = 30;  // supervisors give a sign each five, forge more often

/// Whether all signs are more than half a minute away from a moment. One that lies so far in the
/// future, as after a clock was set back, counts as old, too.
bool are_all_old(const std::vector<double>& signs, double moment) {
  return std::all_of(signs.begin(), signs.end(), [&](double sign) {
    return std::abs(moment - sign) >= silent_seconds;
  });
}

bool files_are_here(const worker::Request& request) {
  for (const auto* files :
       {&request.train_tokens, &request.evaluation_tokens, &request.validation_tokens}) {
    for (const worker::TokenSource& source : *files) {
      if (!path_exists(source.path)) return false;
    }
  }
  for (const std::string& folder : {request.initial_weights, request.resume_from}) {
    if (!folder.empty() && !path_exists(folder)) return false;
  }
  return true;
}

/// This host's devices of a type, as far as runs have leased them before: a worker takes seconds to
/// list them.
std::vector<LeaseDevice> devices_here(const fs::path& runs_dir, const std::string& type) {
  if (type == "cpu") return {own_cpu()};
  std::vector<LeaseDevice> devices;
  for (const fs::path& file : folder_entries(leases_folder(runs_dir))) {
    const std::string name = file.filename().string();
    const std::optional<std::string> visible = visible_name(name);
    if (!starts_with(name, type) || !visible) continue;
    devices.push_back({name, gpu_units, *visible == name ? "" : *visible});
  }
  return devices;
}

constexpr double day_seconds = 24 * 3600, most_days = 90;

/// Should such a host come back, it gives its next sign as a new one does.
void forget_silent_hosts(const fs::path& folder, double now) {
  for (const fs::path& sign : folder_entries(folder)) {
    const std::optional<double> last = time_of(sign);
    const double days = is_place_sign(sign.filename().string()) ? 1 : most_days;
    std::error_code ignored;  // another host may remove it too
    if (last && now - *last > days * day_seconds) fs::remove(sign, ignored);
  }
}

/// Sets the file's time to this moment. Returns it; none where this user may not.
std::optional<double> touch(const fs::path& file) {
  try {
    const FileDescriptor made = open_own_file(file, O_WRONLY | O_CREAT);
    if (::futimens(made.get(), nullptr) != 0) return std::nullopt;
    return time_of(file);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::optional<double> give_sign_of_life(const fs::path& runs_dir) {
  const fs::path signs = fs::path(".queue") / "hosts";
  try {
    make_own_folders(runs_dir, signs);
    const PinnedFolder folder(runs_dir, signs);
    const std::string host = run::host_name();
    const fs::path place = folder.path() / place_sign(own_place());
    const bool is_new = !path_exists(folder.path() / host) || !path_exists(place);
    // Another program of forge leaves the runs of this place to it as long as it gives signs.
    if (is_own_program_there()) touch(place);
    // The host's own may be one that another user has made.
    const std::optional<double> users = touch(folder.path() / user_sign(host, ::geteuid()));
    const std::optional<double> now = std::max(users, touch(folder.path() / host));
    if (is_new && now) forget_silent_hosts(folder.path(), *now);
    return now;
  } catch (const Error&) {
    return std::nullopt;  // the folder cannot be written
  }
}

void correct_signs(const fs::path& runs_dir, const QueueEntry& entry, double now) {
  constexpr double allowed_seconds = 1;  // of two files that are touched at one time
  std::vector<fs::path> signs = sign_files_of(runs_dir, entry.host);
  signs.push_back(entry_file(runs_dir, entry.run));
  for (const fs::path& file : signs) {
    if (time_of(file).value_or(0) <= now + allowed_seconds) continue;
    try {
      ::futimens(open_own_file(file, O_WRONLY).get(), nullptr);
    } catch (const Error&) {
      // It was removed this moment, or is another user's, whose forge does it.
    }
  }
}

std::optional<double> last_sign_of_life(const fs::path& runs_dir, const QueueEntry& entry) {
  const std::optional<std::vector<double>> signs = signs_of(runs_dir, entry.host);
  if (!signs) return std::nullopt;
  std::optional<double> last = time_of(entry_file(runs_dir, entry.run));
  if (!last && errno != ENOENT) return std::nullopt;
  for (const double sign : *signs) last = std::max(last, std::optional(sign));
  return last;
}

namespace {

/// Where this process can give no sign, nobody can say what time it is there.
bool is_silent_since(const fs::path& runs_dir, const std::vector<double>& signs) {
  const std::optional<double> now = give_sign_of_life(runs_dir);
  return signs.empty() || (now && are_all_old(signs, *now));
}

std::vector<double> sign_at(const fs::path& file) {
  const std::optional<double> time = time_of(file);
  return time ? std::vector<double>{*time} : std::vector<double>();
}

}  // namespace

bool is_silent(const fs::path& runs_dir, const std::string& host) {
  const std::optional<std::vector<double>> signs = signs_of(runs_dir, host);
  return signs && is_silent_since(runs_dir, *signs);
}

bool is_silent(const fs::path& runs_dir, const std::string& host, uid_t user) {
  return is_silent_since(runs_dir, sign_at(sign_of(runs_dir, user_sign(host, user))));
}

bool is_place_silent(const fs::path& runs_dir, const std::string& place) {
  return is_silent_since(runs_dir, sign_at(sign_of(runs_dir, place_sign(place))));
}

namespace {

/// Times of this user's signs on this host, where a program of forge is that can start runs: those
/// of other users start none of this user's.
std::vector<double> own_signs(const fs::path& runs_dir) {
  const std::string user = user_sign(run::host_name(), ::geteuid());
  std::vector<double> times;
  for (const fs::path& sign : folder_entries(runs_dir / ".queue" / "hosts"))
    if (starts_with(sign.filename().string(), user + "@"))
      times.push_back(time_of(sign).value_or(0));
  return times.empty() ? sign_at(sign_of(runs_dir, user)) : times;
}

}  // namespace

std::string unserved_run(const fs::path& runs_dir) {
  const std::string here = run::host_name();
  if (!are_all_old(own_signs(runs_dir), unix_time())) return "";
  std::string next;
  std::vector<std::string> unread;  // who lists the queue says so
  for (const QueueEntry& entry : read_entries(runs_dir, &unread)) {
    const run::RunFolder folder(runs_dir / entry.run);
    if (entry.host != here || !path_exists(folder.record_file())) continue;
    if (closed_path(folder) || !foreign_entry_text(runs_dir, entry.run).empty()) continue;
    const run::RunState state = folder.state();
    if (state == run::RunState::running) return "";
    if (next.empty() && state != run::RunState::completed) next = entry.run;
  }
  return next;
}

std::string host_text(const std::string& host, double seconds) {
  return "host '" + tables::printable(host) + "', last seen " +
         human_duration(std::max(0.0, seconds)) + " ago";
}

std::optional<QueueEntry> moved_here(const fs::path& runs_dir, QueueEntry entry) {
  const std::string type = entry.devices.empty() ? "cpu" : entry.devices[0].name;
  entry.devices = devices_here(runs_dir, type.substr(0, type.find(':')));
  if (entry.devices.size() < static_cast<size_t>(entry.count)) return std::nullopt;
  try {
    if (!files_are_here(run::read_request(run::RunFolder(runs_dir / entry.run))))
      return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;  // starting the run here by hand shows the error
  }
  entry.units = std::min(entry.units, entry.devices[0].units);
  entry.host = run::host_name();
  entry.device.clear();
  for (Asker& other : entry.others) other = of_another_host(std::move(other));
  return entry;
}

}  // namespace forge::queue

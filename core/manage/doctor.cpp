#include "core/manage/doctor.h"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/parallel.h"
#include "core/base/staging.h"
#include "core/base/text.h"
#include "core/results/metrics.h"
#include "core/results/statistics/sample.h"
#include "core/results/store/compare_store.h"
#include "core/results/store/result_store.h"
#include "core/run/backend_support.h"
#include "core/run/host.h"
#include "core/run/queue/hosts.h"
#include "core/run/queue/queue.h"

namespace forge::manage {
namespace {

constexpr double gib = double(int64_t{1} << 30);

std::string first_line(const std::string& text) { return split(text, '\n').front(); }

/// "" where the file cannot be read.
std::string text_of(const fs::path& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// Bytes of a line "Name:  123 kB" of /proc/meminfo; nothing where there is none.
std::optional<double> memory_line(const std::string& meminfo, const std::string& name) {
  for (const std::string& line : split(meminfo, '\n')) {
    if (starts_with(line, name + ":"))
      return 1024 * std::strtod(line.c_str() + name.size() + 1, nullptr);
  }
  return std::nullopt;
}

Finding check_memory(const fs::path& proc) {
  const std::string meminfo = text_of(proc / "meminfo");
  const auto available = memory_line(meminfo, "MemAvailable"),
             total = memory_line(meminfo, "MemTotal");
  if (!available || !total) return {"memory", Health::ok, "not known"};
  const std::string text = human_bytes(*available) + " of " + human_bytes(*total) + " available";
  if (*available >= gib) return {"memory", Health::ok, text};
  return {"memory",
          *available < gib / 4 ? Health::problem : Health::warning,
          text,
          "close other programs, or lower train.batch_size; the kernel kills workers where "
          "memory runs out"};
}

Finding check_cores(const fs::path& proc) {
  const int usable = usable_cores();
  const int all = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  std::string text = std::to_string(usable);
  if (usable < all) text += " of " + std::to_string(all) + " may be used";
  const double load = std::strtod(text_of(proc / "loadavg").c_str(), nullptr);
  text += ", load " + results::fixed_text(load, 1);
  if (load <= 1.5 * usable) return {"cores", Health::ok, text};
  return {"cores",
          Health::warning,
          text,
          "other programs compute, too: runs are slower, and speeds measured now say little"};
}

/// In `folder`, of this process's own.
ScratchFolder probe_folder(const fs::path& folder) {
  return ScratchFolder(folder / (std::string(aside_prefix) + "doctor-" + process_digits()));
}

Finding check_locks(const fs::path& folder) {
  const auto first = FileLock::try_acquire(folder / "lock");
  const bool held =
      first && FileLock::is_held(folder / "lock") && !FileLock::try_acquire(folder / "lock");
  const queue::LeaseDevice device{"device", 1};
  const auto lease = queue::Lease::try_acquire(folder, device, 1);
  const bool leased = lease && !queue::Lease::try_acquire(folder, device, 1);
  if (held && leased) return {"locks", Health::ok, "two programs cannot hold the same lock"};
  return {"locks",
          Health::problem,
          held ? "leases of devices do not exclude each other here"
               : "flock does not exclude a second program here",
          "two supervisors could run one run: set FORGE_RUNS_DIR to a folder on a local disk"};
}

Finding check_syncs(const fs::path& folder) {
  std::vector<double> seconds;
  for (int i = 0; i < 7; ++i) {
    const double began = steady_seconds();
    write_file_atomic(folder / "file", std::string(4096, 'x'));
    seconds.push_back(steady_seconds() - began);
  }
  const double median = statistics::quantile(seconds, 0.5);
  const std::string text =
      "a file is written and synced in " + results::fixed_text(1000 * median, 1) + " ms";
  if (median < 0.1) return {"syncs", Health::ok, text};
  return {"syncs",
          Health::warning,
          text,
          "events are synced five times a second, and checkpoints once each: a faster disk "
          "for FORGE_RUNS_DIR helps"};
}

Finding failed(const std::string& what, const Error& problem) {
  return {what, Health::problem, first_line(problem.message()), first_line(problem.hint())};
}

Finding check_blas(const BackendReport& report) {
  const nlohmann::json& libraries = report.info->environment.libraries;
  std::vector<std::string> paths, names;
  for (const nlohmann::json& path : libraries.value("blas", nlohmann::json::array())) {
    if (!path.is_string()) continue;
    paths.push_back(path.get<std::string>());
    names.push_back(fs::path(paths.back()).filename().string());
  }
  const auto has = [&](const char* part) {
    return std::any_of(paths.begin(), paths.end(), [&](const std::string& path) {
      return path.find(part) != std::string::npos;
    });
  };
  const auto text_at = [&](const char* key) {
    const auto found = libraries.find(key);
    return found != libraries.end() && found->is_string() ? found->get<std::string>() : "";
  };
  const std::string products = text_at("matrix_products"), simd = text_at("simd");
  std::string text = names.empty() ? "linked into Torch" : join(names, ", ");
  if (!products.empty()) text = "by " + products + "; " + text;
  if (!simd.empty()) text += "; " + simd;
  const std::string what = report.name + ": matrix products";
  const std::string hint = "sudo apt install libopenblas0-openmp";
  if (has("openblas-pthread")) {
    text +=
        "; the pthread flavour of OpenBLAS, whose threads and Torch's are in each "
        "other's way: training is about 40 % slower";
    return {what, Health::warning, text, hint};
  }
  if ((has("/blas/libblas") || has("/libblas.so")) && !has("openblas") && !has("mkl"))
    return {what, Health::warning, text + "; the reference BLAS, which is many times slower", hint};
  return {what, Health::ok, text};
}

}  // namespace

const std::string& name_of(Health health) {
  static const std::string names[] = {"ok", "warning", "problem"};
  return names[static_cast<size_t>(health)];
}

nlohmann::json to_json(const Finding& finding) {
  return {{"what", finding.what},
          {"health", name_of(finding.health)},
          {"text", finding.text},
          {"hint", finding.hint}};
}

std::vector<Finding> check_backend(const BackendReport& report, bool is_own) {
  const std::string what = "backend " + report.name;
  if (!report.was_asked && report.problem.empty()) {
    return {{what,
             Health::ok,
             "declared here and not started; " + quoted_command("forge backends " + report.name) +
                 " asks it what it is"}};
  }
  if (!report.info) {
    return {{what,
             is_own ? Health::problem : Health::ok,
             "not here: " + first_line(report.problem),
             is_own ? "install forge's worker, or build forge with FORGE_WITH_TORCH=ON" : ""}};
  }
  const worker::BackendInfo& info = *report.info;
  const worker::Environment& environment = info.environment;
  std::string text = info.hello.backend_version;
  for (const auto& [key, name] :
       {std::pair("torch", "Torch"), std::pair("cxx", "compiler"), std::pair("python", "Python")}) {
    const auto version = environment.libraries.find(key);
    if (version != environment.libraries.end() && version->is_string())
      text += std::string(", ") + name + " " + version->get<std::string>();
  }
  text += ", on " +
          run::device_text(environment.device_type, environment.device_name, environment.threads);
  if (run::trains_by_several_processes(info)) text += "; can train a run by several processes";
  std::vector<Finding> findings = {{what, Health::ok, text}};
  if (environment.libraries.contains("blas")) findings.push_back(check_blas(report));
  return findings;
}

std::vector<Finding> check_machine(const fs::path& proc) {
  return {check_cores(proc), check_memory(proc)};
}

Finding check_gpu(const std::vector<BackendReport>& backends,
                  const fs::path& proc,
                  const fs::path& dev) {
  int count = 0;
  while (fs::exists(dev / ("nvidia" + std::to_string(count)))) ++count;
  const std::string driver =
      std::string(trim(first_line(text_of(proc / "driver" / "nvidia" / "version"))));
  if (count == 0) {
    if (driver.empty()) return {"GPU", Health::ok, "none"};
    return {"GPU",
            Health::warning,
            "a driver and no device: " + driver,
            "nvidia-smi tells more; in a container devices have to be passed in"};
  }
  const std::string text = std::to_string(count) + (driver.empty() ? "" : "; " + driver);
  const bool seen = std::any_of(backends.begin(), backends.end(), [](const BackendReport& report) {
    return report.info && report.info->environment.devices.size() > 1;
  });
  if (seen) return {"GPU", Health::ok, text};
  return {"GPU",
          Health::warning,
          text + "; no backend sees one",
          "build the worker with a LibTorch for CUDA whose version the driver knows, and see "
          "CUDA_VISIBLE_DEVICES"};
}

Finding check_space(const std::string& what, double free_bytes, const std::string& where) {
  const std::string text = human_bytes(free_bytes) + " free at " + where;
  if (free_bytes >= 10 * gib) return {what, Health::ok, text};
  return {what,
          free_bytes < gib ? Health::problem : Health::warning,
          text,
          "'forge gc' says what can be freed; FORGE_RUNS_DIR names another folder"};
}

namespace {

/// Whether a group is one user's own, as many systems give each user one.
bool is_own_group(gid_t group) {
  const passwd* const user = ::getpwuid(::geteuid());
  const std::string name = user ? user->pw_name : "";
  const struct group* const found = ::getgrgid(group);
  return found && found->gr_name == name && !found->gr_mem[0];
}

/// Why others may write in a folder; "" where they may not.
std::string shared_access(const struct stat& folder) {
  if (folder.st_uid != ::geteuid() && folder.st_uid != 0) return "belongs to another user";
  if (folder.st_mode & S_IWOTH) return "can be written by all users";
  const bool is_shared = (folder.st_mode & S_IWGRP) && !is_own_group(folder.st_gid);
  return is_shared ? "can be written by a group" : "";
}

Finding check_access(const fs::path& runs_dir) {
  struct stat status {};
  const std::string what = "access to the runs";
  if (::stat(runs_dir.c_str(), &status) != 0) return {what, Health::ok, "no runs yet", ""};
  const std::string shared = shared_access(status);
  if (shared.empty()) return {what, Health::ok, "nobody but you can change them", ""};
  return {what,
          Health::warning,
          shown_path(runs_dir) + " " + shared,
          "who can write there can remove and change your runs, and what they exchange while forge "
          "works there may lead elsewhere: " +
              quoted_command("chmod go-w " + shell_quoted(runs_dir.string())) +
              ", or let FORGE_RUNS_DIR name a folder of your own"};
}

}  // namespace

std::vector<Finding> check_runs_folder(const fs::path& runs_dir) {
  std::vector<Finding> findings;
  findings.push_back(check_access(runs_dir));
  const fs::path folder = existing_ancestor(fs::absolute(runs_dir));
  struct statvfs space {};
  if (::statvfs(folder.c_str(), &space) == 0) {
    findings.push_back(check_space(
        "disk of the runs", double(space.f_bavail) * double(space.f_frsize), shown_path(runs_dir)));
  }
  struct statfs system {};
  if (::statfs(folder.c_str(), &system) == 0 && store::is_remote_file_system(system.f_type)) {
    findings.push_back({"file system of the runs",
                        Health::warning,
                        "on other machines, or behind another program",
                        "runs work there, with their index in the user's cache; locks between "
                        "machines depend on the server"});
  }
  try {
    const ScratchFolder probe = probe_folder(folder);
    findings.push_back(check_locks(probe.path()));
    findings.push_back(check_syncs(probe.path()));
  } catch (const Error& problem) {
    findings.push_back(failed("folder of the runs", problem));
    if (findings.back().hint.empty())
      findings.back().hint = "FORGE_RUNS_DIR names a folder that you may write to";
  }
  return findings;
}

Finding check_cache(const fs::path& cache_dir) {
  try {
    make_directories(cache_dir);
    const ScratchFolder probe = probe_folder(cache_dir);
    write_file_atomic(probe.path() / "file", "x");
  } catch (const Error& problem) {
    Finding finding = failed("cache", problem);
    finding.hint = "prepared data cannot be kept: FORGE_CACHE_DIR names another folder";
    return finding;
  }
  struct statvfs space {};
  if (::statvfs(cache_dir.c_str(), &space) != 0)
    return {"cache", Health::ok, "can be written: " + cache_dir.string(), ""};
  Finding finding =
      check_space("cache", double(space.f_bavail) * double(space.f_frsize), shown_path(cache_dir));
  if (finding.health != Health::ok)
    finding.hint =
        "'forge gc --cache' says what can be freed; FORGE_CACHE_DIR names another folder";
  return finding;
}

Finding check_store(const fs::path& runs_dir, const store::SyncWatch& watch) {
  Finding finding{"index of the runs", Health::ok, "no runs yet", ""};
  if (!fs::exists(runs_dir)) return finding;
  try {
    store::ResultStore store(store::store_path(runs_dir));
    const store::SyncReport report = store.sync(runs_dir, watch);
    store::RunFilter all;
    all.archived = true;
    finding.text = counted(store.runs(all).size(), "run") + " in " + shown_path(store.path());
    const auto differences = store::compare_store(store.path(), runs_dir, watch).differences;
    if (!differences.empty()) {
      finding.health = Health::problem;
      finding.text += ", which another program has changed: of " + differences[0].run + ", " +
                      differences[0].what;
      if (differences.size() > 1)
        finding.text += " and " + counted(differences.size() - 1, "other difference");
      finding.hint = "'forge store check' lists them, 'forge store reindex' builds the index anew";
      return finding;
    }
    if (report.warnings.empty()) return finding;
    finding.health = Health::warning;
    finding.text += "; " + first_line(report.warnings.front());
    if (report.warnings.size() > 1)
      finding.text += " and " + std::to_string(report.warnings.size() - 1) + " more";
    finding.hint = "what is named is left out; 'forge store reindex' lists all of it";
  } catch (const Error& problem) {
    finding = failed("index of the runs", problem);
    if (finding.hint.empty()) finding.hint = "'forge store reindex' builds it anew from the runs";
  }
  return finding;
}

Finding check_queue(const fs::path& runs_dir) {
  // One start by another user, root say, is enough to leave them behind.
  for (const fs::path& place : {runs_dir / ".queue", runs_dir / ".queue" / "lock"}) {
    if (!path_exists(place) || ::access(place.c_str(), W_OK) == 0) continue;
    return {"queue",
            Health::problem,
            "this user may not write '" + shown_path(place) + "', so no run can begin",
            "it belongs to another user: where no runs of theirs wait, remove '" +
                shown_path(runs_dir / ".queue") +
                "' (sudo rm -r), or give it to you (sudo chown -R)"};
  }
  const std::string unserved = queue::unserved_run(runs_dir);
  if (!unserved.empty()) {
    return {"queue",
            Health::warning,
            "runs wait, and no process serves the queue",
            "'forge runs resume " + shell_quoted(unserved) + "' serves it"};
  }
  std::vector<std::string> problems;
  const size_t runs = queue::read_entries(runs_dir, &problems).size();
  if (!problems.empty()) return {"queue", Health::warning, problems[0], ""};
  return {"queue", Health::ok, runs == 0 ? "no runs" : counted(runs, "run")};
}

Finding check_build_tools(const std::string& path_variable) {
  std::vector<std::string> here, missing;
  for (const std::string program : {"ccache", "mold"}) {
    bool found = false;
    for (const std::string& folder : split(path_variable, ':'))
      found = found || ::access((folder + "/" + program).c_str(), X_OK) == 0;
    (found ? here : missing).push_back(program);
  }
  std::string text;
  if (!here.empty()) text = join(here, " and ") + (here.size() == 1 ? " is" : " are") + " here";
  if (missing.empty()) return {"build tools", Health::ok, text};
  if (!text.empty()) text += "; ";
  text += "without " + join(missing, " and ") + " building forge takes longer";
  return {"build tools", Health::ok, text, "sudo apt install " + join(missing, " ")};
}

}  // namespace forge::manage

#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/results/store/result_store.h"
#include "core/worker/launcher.h"

namespace forge::manage {

enum class Health { ok, warning, problem };
const std::string& name_of(Health health);

/// The result of one check, with what to do about it.
struct Finding {
  std::string what;  ///< "disk of the runs", one of each a report
  Health health = Health::ok;
  std::string text;
  std::string hint = {};  ///< "" if there is nothing to do
};
nlohmann::json to_json(const Finding& finding);

/// What a backend said when it was asked what it runs on, or why it could not.
struct BackendReport {
  std::string name;
  std::optional<worker::BackendInfo> info;
  std::string problem;
  bool was_asked = true;  ///< false: its program was not started
};

/// Its version, compiler and Torch, the BLAS in use and what of it is slow. One that forge does not
/// need may well be missing.
std::vector<Finding> check_backend(const BackendReport& report, bool is_own);

/// Cores that may be used, load, and free memory. `proc` is /proc.
std::vector<Finding> check_machine(const std::filesystem::path& proc = "/proc");

/// GPUs of the machine, their driver, and whether a backend sees them.
Finding check_gpu(const std::vector<BackendReport>& backends,
                  const std::filesystem::path& proc = "/proc",
                  const std::filesystem::path& dev = "/dev");

/// Who may write in the folder of runs, and its space, locks and syncs: it is tried with files that
/// are removed again; where it is missing, the folder above is looked at.
std::vector<Finding> check_runs_folder(const std::filesystem::path& runs_dir);

/// Whether prepared data can be kept, and where.
Finding check_cache(const std::filesystem::path& cache_dir);

/// The index over the runs, which is brought up to date, and damaged lines and folders.
Finding check_store(const std::filesystem::path& runs_dir, const store::SyncWatch& watch = {});

/// Whether a process starts the runs that wait.
Finding check_queue(const std::filesystem::path& runs_dir);

/// Programs that only building forge is faster with.
Finding check_build_tools(const std::string& path_variable);

/// Space left on a disk: under 1 GiB a problem, under 10 GiB a warning.
Finding check_space(const std::string& what, double free_bytes, const std::string& where);

}  // namespace forge::manage

#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace forge::run {

/// Names the machine for the processes that look after its queue: a name that the kernel gets
/// anew while runs wait, as from a network, would part them from their runs.
constexpr const char* host_name_variable = "FORGE_HOST_NAME";

/// Name of this machine, as files and lines can have it: as_host_name of what `host_name_variable`
/// or else the kernel says.
std::string host_name();

/// A name with "_" in place of each character that a file's name or a terminal could take for
/// something else, and before a dot at its beginning. "" is "_".
std::string as_host_name(std::string name);

/// The variables of this process's environment that choose how libraries compute, and with it the
/// last bits of a loss: the instructions that oneDNN may use, say. Values are cut to 200 bytes.
std::map<std::string, std::string> numerics_variables();

/// "Intel Xeon, 4 threads", "NVIDIA H200": the name, or else the type, and the threads of a CPU.
std::string device_text(const std::string& type, const std::string& name, int64_t threads);

/// The state of a process as /proc shows it: 'R', 'S', 'T', 'D' …; '\0' where it is gone.
char process_state(int pid);
/// Whether a state is that of a stopped process (SIGSTOP, or a debugger).
bool is_stopped(char state);

/// How often this process was continued after a stop (SIGCONT) since it first asked.
int continued_so_far();

/// The process, its children that live, and theirs.
std::vector<int> process_tree(int pid);

/// CPU time of a process and its children that live; none where it does not run.
std::optional<double> process_cpu_seconds(int pid);

/// How busy processes that are not a run's own keep the machine while it trains: what its times
/// are worth depends on that. Own are the worker's processes with all that they started, and this
/// process. Time that the host of a virtual machine gave to others counts as theirs.
class MachineLoad {
 public:
  /// `proc`: a folder with the files of proc(5).
  explicit MachineLoad(std::filesystem::path proc = "/proc") : proc_(std::move(proc)) {}

  /// Reads how much each has worked so far; the first call is the beginning. To be called now and
  /// then while the worker's processes live: what they did after the last call is not counted.
  void sample(const std::vector<int>& pids);

  /// The share of all cores that others kept busy between the first and the last look, from 0 to 1;
  /// none where that was a moment only, or the files do not tell.
  std::optional<double> other_process_load() const;

 private:
  struct Times {
    double all = 0;   ///< CPU seconds of all cores, idle ones too
    double busy = 0;  ///< of all processes
    double own = 0;
  };
  std::optional<Times> read(const std::vector<int>& pids) const;

  std::filesystem::path proc_;
  std::optional<Times> first_, last_;
};

}  // namespace forge::run

#include "core/run/host.h"

#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/files.h"
#include "core/base/text.h"

namespace forge::run {

std::string host_name() {
  if (const char* const kept = std::getenv(host_name_variable)) return as_host_name(kept);
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return as_host_name(name);
}

std::string as_host_name(std::string name) {
  const auto is_fit = [](unsigned char c) { return c > ' ' && c < 0x7f && c != '/'; };
  std::replace_if(
      name.begin(), name.end(), [&](char c) { return !is_fit(c); }, '_');
  if (name.empty() || name[0] == '.') name.insert(0, "_");
  return name;
}

std::map<std::string, std::string> numerics_variables() {
  constexpr const char* names[] = {"MKL_CBWR",
                                   "ATEN_CPU_CAPABILITY",
                                   "NVIDIA_TF32_OVERRIDE",
                                   "CUBLAS_WORKSPACE_CONFIG",
                                   "OPENBLAS_CORETYPE",
                                   "FORGE_PYTORCH_COMPILE"};
  constexpr const char* beginnings[] = {"DNNL_", "ONEDNN_", "TORCH_"};
  // They choose what a library says, where it keeps files and for which GPUs it is built.
  constexpr const char* harmless[] = {"DNNL_VERBOSE",
                                      "ONEDNN_VERBOSE",
                                      "TORCH_CUDA_ARCH_LIST",
                                      "TORCH_HOME",
                                      "TORCH_LOGS",
                                      "TORCH_SHOW_CPP_STACKTRACES",
                                      "TORCH_CPP_LOG_LEVEL",
                                      "TORCH_EXTENSIONS_DIR"};
  constexpr size_t most_bytes = 200;
  std::map<std::string, std::string> variables;
  for (char** variable = environ; variable && *variable; ++variable) {
    const std::string text = *variable;
    const std::string name = text.substr(0, text.find('='));
    const auto is_name = [&](const char* other) { return name == other; };
    const auto begins = [&](const char* beginning) { return starts_with(name, beginning); };
    const bool counts = std::any_of(std::begin(names), std::end(names), is_name) ||
                        std::any_of(std::begin(beginnings), std::end(beginnings), begins);
    if (counts && std::none_of(std::begin(harmless), std::end(harmless), is_name))
      variables[name] = text.substr(std::min(name.size() + 1, text.size()), most_bytes);
  }
  return variables;
}

std::string device_text(const std::string& type, const std::string& name, int64_t threads) {
  const std::string text = name.empty() ? type : name;
  if (type != "cpu" || threads <= 0) return text;
  return text + ", " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
}

namespace {

namespace fs = std::filesystem;

double ticks_per_second() { return static_cast<double>(::sysconf(_SC_CLK_TCK)); }

/// The numbers of the line "cpu" of proc's stat, in ticks: user, nice, system, idle, iowait, irq,
/// softirq, steal; two more are parts of the first two. Empty where there is no such line.
std::vector<double> machine_ticks(const fs::path& proc) {
  std::ifstream file(proc / "stat");
  std::string word;
  if (!(file >> word) || word != "cpu") return {};
  std::vector<double> ticks;
  std::string line;
  std::getline(file, line);
  std::istringstream numbers(line);
  for (double number = 0; numbers >> number;) ticks.push_back(number);
  constexpr size_t up_to_steal = 8;
  if (ticks.size() < up_to_steal) return {};
  ticks.resize(up_to_steal);
  return ticks;
}

/// What a process and the children that it has waited for worked, in ticks; 0 where it is gone.
double own_ticks(const fs::path& process) {
  std::ifstream file(process / "stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');  // the name may hold anything
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(line.substr(name_end + 1));
  std::string skipped;
  for (int i = 3; i < 14; ++i) fields >> skipped;  // state … cmajflt
  double user = 0, system = 0, children_user = 0, children_system = 0;
  fields >> user >> system >> children_user >> children_system;
  return user + system + children_user + children_system;
}

constexpr int generations = 8;  // of children, and theirs

void add_process_tree(const fs::path& proc, int pid, int depth, std::vector<int>& pids) {
  pids.push_back(pid);
  if (depth == 0) return;
  std::ifstream children(proc / std::to_string(pid) / "task" / std::to_string(pid) / "children");
  for (int child = 0; children >> child;) add_process_tree(proc, child, depth - 1, pids);
}

std::vector<int> process_tree(const fs::path& proc, int pid) {
  std::vector<int> pids;
  add_process_tree(proc, pid, generations, pids);
  return pids;
}

double process_tree_ticks(const fs::path& proc, int pid) {
  double ticks = 0;
  for (const int process : process_tree(proc, pid))
    ticks += own_ticks(proc / std::to_string(process));
  return ticks;
}

}  // namespace

char process_state(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');  // the name may hold anything
  const size_t state = name_end == std::string::npos ? line.size() : name_end + 2;
  return state < line.size() ? line[state] : '\0';
}

bool is_stopped(char state) { return state == 'T' || state == 't'; }

namespace {

volatile std::sig_atomic_t continued = 0;

void count_continued(int) { continued = continued + 1; }

}  // namespace

int continued_so_far() {
  static const bool counts = [] {
    struct sigaction action {};
    action.sa_handler = count_continued;
    action.sa_flags = SA_RESTART;
    return ::sigaction(SIGCONT, &action, nullptr) == 0;
  }();
  return counts ? continued : 0;
}

std::vector<int> process_tree(int pid) { return process_tree("/proc", pid); }

std::optional<double> process_cpu_seconds(int pid) {
  const fs::path proc = "/proc";
  if (!path_exists(proc / std::to_string(pid))) return std::nullopt;
  return process_tree_ticks(proc, pid) / ticks_per_second();
}

std::optional<MachineLoad::Times> MachineLoad::read(const std::vector<int>& pids) const {
  const std::vector<double> machine = machine_ticks(proc_);
  if (machine.empty()) return std::nullopt;
  constexpr size_t idle = 3, waiting = 4;
  Times times;
  for (size_t i = 0; i < machine.size(); ++i) {
    times.all += machine[i];
    if (i != idle && i != waiting) times.busy += machine[i];
  }
  times.own = own_ticks(proc_ / std::to_string(::getpid()));
  for (const int pid : pids) times.own += process_tree_ticks(proc_, pid);
  for (double* ticks : {&times.all, &times.busy, &times.own}) *ticks /= ticks_per_second();
  return times;
}

void MachineLoad::sample(const std::vector<int>& pids) {
  const std::optional<Times> now = read(pids);
  if (!now) return;
  if (!first_) first_ = now;
  // A worker that is gone no longer says what it did.
  if (!last_ || now->own >= last_->own) last_ = now;
}

std::optional<double> MachineLoad::other_process_load() const {
  if (!first_ || !last_) return std::nullopt;
  constexpr double least = 1;  // seconds of a core: ticks are hundredths
  const double all = last_->all - first_->all;
  if (all < least) return std::nullopt;
  const double others = (last_->busy - first_->busy) - (last_->own - first_->own);
  return std::clamp(others / all, 0.0, 1.0);
}

}  // namespace forge::run

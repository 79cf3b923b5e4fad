#include "core/run/host.h"

#include <unistd.h>
#include <cstdlib>

#include "core/base/files.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::run {
namespace {

using tests::TemporaryFolder;

/// A folder like /proc of a machine with two cores.
class Machine {
 public:
  /// Ticks since the machine was started.
  void work(long user, long idle, long steal) {
    std::string cpu = std::to_string(user) + " 0 0 " + std::to_string(idle) + " 0 0 0 " +
                      std::to_string(steal) + " 0 0\n";
    write_file_atomic(proc() / "stat", "cpu  " + cpu + "cpu0 1 2 3\ncpu1 1 2 3\nintr 5\n");
  }

  void process(int pid, long user, long children, const std::string& child_pids = "") {
    const std::filesystem::path folder = proc() / std::to_string(pid);
    std::filesystem::create_directories(folder / "task" / std::to_string(pid));
    write_file_atomic(folder / "stat",
                      std::to_string(pid) + " (a) b (c) R 1 1 1 0 -1 0 0 0 0 0 " +
                          std::to_string(user) + " 0 " + std::to_string(children) + " 0 20 0\n");
    write_file_atomic(folder / "task" / std::to_string(pid) / "children", child_pids);
  }

  const std::filesystem::path& proc() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

TEST_CASE("variables that change how libraries compute are told from others", "[run][host]") {
  const auto before = numerics_variables();
  ::setenv("DNNL_MAX_CPU_ISA", "SSE41", 1);
  ::setenv("NVIDIA_TF32_OVERRIDE", std::string(1000, '1').c_str(), 1);
  ::setenv("TORCH_HOME", "/nowhere", 1);
  auto after = numerics_variables();
  for (const char* name : {"DNNL_MAX_CPU_ISA", "NVIDIA_TF32_OVERRIDE", "TORCH_HOME"})
    ::unsetenv(name);
  CHECK(after.at("DNNL_MAX_CPU_ISA") == "SSE41");
  CHECK(after.at("NVIDIA_TF32_OVERRIDE").size() == 200);
  after.erase("DNNL_MAX_CPU_ISA");
  after.erase("NVIDIA_TF32_OVERRIDE");
  CHECK(after == before);
}

const long second = ::sysconf(_SC_CLK_TCK);

}  // namespace

TEST_CASE("what a worker, its children and its supervisor do is their own", "[run][machine_load]") {
  Machine machine;
  MachineLoad load(machine.proc());
  machine.work(100 * second, 100 * second, 0);
  machine.process(7, 5 * second, 0, "8 ");
  machine.process(8, 1 * second, 0);
  machine.process(::getpid(), 0, 0);
  load.sample({7});
  REQUIRE_FALSE(load.other_process_load());
  // Ten seconds of two cores: worker 6, its child 2, what that waited for 1, supervisor 1.
  machine.work(110 * second, 110 * second, 0);
  machine.process(7, 11 * second, 0, "8 ");
  machine.process(8, 3 * second, 1 * second);
  machine.process(::getpid(), 1 * second, 0);
  load.sample({7});
  REQUIRE(load.other_process_load().value() == 0);
}

TEST_CASE("others and what the host took are a share of all cores", "[run][machine_load]") {
  Machine machine;
  MachineLoad load(machine.proc());
  machine.work(0, 0, 0);
  machine.process(7, 0, 0);
  load.sample({7});
  machine.work(8 * second, 10 * second, 2 * second);
  machine.process(7, 5 * second, 0);
  load.sample({7});
  REQUIRE(load.other_process_load().value() == 0.25);
  // The worker has gone, and what it did with it.
  std::filesystem::remove_all(machine.proc() / "7");
  machine.work(30 * second, 30 * second, 2 * second);
  load.sample({7});
  REQUIRE(load.other_process_load().value() == 0.25);
}

TEST_CASE("without the files nothing is said", "[run][machine_load]") {
  const TemporaryFolder folder;
  MachineLoad load(folder.path());
  load.sample({7});
  load.sample({7});
  REQUIRE_FALSE(load.other_process_load());
  write_file_atomic(folder / "stat", "cpu 1 2 3\n");
  load.sample({7});
  REQUIRE_FALSE(load.other_process_load());
}

TEST_CASE("a machine's name is that of a file below a folder", "[run][hostile]") {
  CHECK(as_host_name("gpu-7.cluster") == "gpu-7.cluster");
  CHECK(as_host_name("../../../evil") == "_.._.._.._evil");
  CHECK(as_host_name("a/b") == "a_b");
  CHECK(as_host_name(".") == "_.");
  CHECK(as_host_name("") == "_");
  CHECK(as_host_name("a\033[1m\n") == "a_[1m_");
}

TEST_CASE("what looks after a queue keeps the name that the machine had", "[run][host]") {
  const std::string now = host_name();
  ::setenv(host_name_variable, "before/the network", 1);
  const std::string kept = host_name();
  ::unsetenv(host_name_variable);
  CHECK(kept == "before_the_network");
  CHECK(host_name() == now);
}

}  // namespace forge::run

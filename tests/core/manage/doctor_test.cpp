#include "core/manage/doctor.h"

#include "core/base/files.h"
#include "core/run/host.h"
#include "core/run/queue/queue.h"
#include "tests/support/catch.h"
#include "tests/support/fake_runs.h"
#include "tests/support/other_user.h"
#include "tests/support/support.h"

namespace forge::manage {
namespace {

using namespace tests;

BackendReport torch_with(const std::string& blas) {
  worker::BackendInfo info;
  info.hello.backend_version = "1.0";
  info.environment.device_type = "cpu";
  info.environment.device_name = "Test CPU";
  info.environment.threads = 2;
  info.environment.devices = {"cpu"};
  info.environment.libraries = {{"torch", "2.1"}, {"cxx", "12.2.0"}, {"blas", {blas}}};
  return {"libtorch", info, ""};
}

TEST_CASE("a slow BLAS is a warning that says how to mend it", "[upkeep][doctor]") {
  const auto slow = check_backend(torch_with("/usr/lib/openblas-pthread/libopenblas.so"), true);
  REQUIRE(slow.size() == 2);
  REQUIRE(slow[0].health == Health::ok);
  REQUIRE(slow[0].text == "1.0, Torch 2.1, compiler 12.2.0, on Test CPU, 2 threads");
  REQUIRE(slow[1].health == Health::warning);
  REQUIRE(contains(slow[1].hint, "libopenblas0-openmp"));
  const auto fast = check_backend(torch_with("/usr/lib/openblas-openmp/libopenblas.so"), true);
  REQUIRE(fast[1].health == Health::ok);
}

TEST_CASE("forge's own backend must be there and others may be missing", "[upkeep][doctor]") {
  REQUIRE(check_backend({"libtorch", {}, "not found"}, true)[0].health == Health::problem);
  REQUIRE(check_backend({"pytorch", {}, "no python"}, false)[0].health == Health::ok);
}

TEST_CASE("little memory and much load are told from what the kernel says", "[upkeep][doctor]") {
  const TemporaryFolder proc;
  proc.write("loadavg", "0.10 0.20 0.30 1/100 1000\n");
  proc.write("meminfo", "MemTotal:  8388608 kB\nMemAvailable:  4194304 kB\n");
  auto findings = check_machine(proc.path());
  REQUIRE(findings[0].health == Health::ok);
  REQUIRE(findings[1].text == "4.00 GiB of 8.00 GiB available");
  proc.write("loadavg", "9000.0 0.20 0.30 1/100 1000\n");
  proc.write("meminfo", "MemTotal:  8388608 kB\nMemAvailable:  1024 kB\n");
  findings = check_machine(proc.path());
  REQUIRE(findings[0].health == Health::warning);
  REQUIRE(findings[1].health == Health::problem);
}

TEST_CASE("a GPU that no backend sees is a warning", "[upkeep][doctor]") {
  const TemporaryFolder proc, dev;
  REQUIRE(check_gpu({}, proc.path(), dev.path()).text == "none");
  proc.write("driver/nvidia/version", "NVRM version: 570.1\nGCC\n");
  REQUIRE(check_gpu({}, proc.path(), dev.path()).health == Health::warning);
  dev.write("nvidia0", "");
  REQUIRE(contains(check_gpu({torch_with("")}, proc.path(), dev.path()).text, "no backend"));
  BackendReport sees = torch_with("");
  sees.info->environment.devices = {"cpu", "cuda:0"};
  const Finding good = check_gpu({sees}, proc.path(), dev.path());
  REQUIRE(good.health == Health::ok);
  REQUIRE(good.text == "1; NVRM version: 570.1");
}

TEST_CASE("space is judged by what a run needs", "[upkeep][doctor]") {
  constexpr double gib = 1 << 30;
  REQUIRE(check_space("disk", 100 * gib, "x").health == Health::ok);
  REQUIRE(check_space("disk", 5 * gib, "x").health == Health::warning);
  REQUIRE(check_space("disk", 0.5 * gib, "x").health == Health::problem);
}

TEST_CASE("a folder of runs is tried and left as it was", "[upkeep][doctor]") {
  const TemporaryFolder folder;
  for (const Finding& finding : check_runs_folder(folder.path())) {
    INFO(finding.what << ": " << finding.text);
    if (finding.what == "locks") REQUIRE(finding.health == Health::ok);
  }
  REQUIRE(fs::is_empty(folder.path()));
  check_runs_folder(folder / "not/yet");
  REQUIRE(fs::is_empty(folder.path()));
}

TEST_CASE("a folder of runs that others may write to is a warning", "[upkeep][doctor][hostile]") {
  const TemporaryFolder folder;
  const auto access = [&] {
    for (const Finding& finding : check_runs_folder(folder.path()))
      if (finding.what == "access to the runs") return finding;
    return Finding();
  };
  fs::permissions(folder.path(), fs::perms::owner_all);
  CHECK(access().health == Health::ok);
  fs::permissions(folder.path(), fs::perms::all);
  CHECK(access().health == Health::warning);
  CHECK(contains(access().text, "can be written by all users"));
  CHECK(contains(access().hint, "chmod go-w " + folder.path().string()));
}

TEST_CASE("a queue that no process serves is a warning", "[upkeep][doctor]") {
  const TemporaryFolder folder;
  REQUIRE(check_queue(folder.path()).health == Health::ok);
  const run::RunFolder run = make_failed_run(folder.path(), {}, 1, "why");
  queue::QueueEntry entry;
  entry.run = run.id();
  entry.host = run::host_name();
  entry.devices = {{"cpu", 1}};
  queue::Queue(folder.path()).put(entry);
  const Finding unserved = check_queue(folder.path());
  REQUIRE(unserved.health == Health::warning);
  REQUIRE(contains(unserved.hint, "forge runs resume " + run.id()));
}

TEST_CASE("a queue that belongs to another user is a problem", "[upkeep][doctor][hostile]") {
  const TemporaryFolder folder;
  folder.write(".queue/lock", "");
  fs::permissions(folder.path(), fs::perms(0755));
  const std::string said = tests::words_of_other_user([&] {
    const Finding finding = check_queue(folder.path());
    return std::string(finding.health == Health::problem ? "problem: " : "") + finding.text;
  });
  INFO(said);
  REQUIRE(contains(said, "problem: this user may not write '"));
  REQUIRE(contains(said, ".queue"));
  REQUIRE(contains(said, "no run can begin"));
}

TEST_CASE("the index says how many runs there are and what is damaged", "[upkeep][doctor]") {
  const TemporaryFolder folder;
  REQUIRE(check_store(folder / "none").text == "no runs yet");
  const run::RunFolder run = make_completed_run(folder.path(), {});
  REQUIRE(contains(check_store(folder.path()).text, "1 run in"));
  REQUIRE(check_store(folder.path()).health == Health::ok);
  append_line(run, "rubbish\n");
  REQUIRE(check_store(folder.path()).health == Health::warning);
  folder.write("forge.sqlite",
               "no database, and longer than a header of one would be, surely, is it");
  remove_tree(folder / "forge.sqlite-wal");
  const Finding broken = check_store(folder.path());
  REQUIRE(broken.health == Health::problem);
  REQUIRE_FALSE(broken.hint.empty());
}

}  // namespace
}  // namespace forge::manage

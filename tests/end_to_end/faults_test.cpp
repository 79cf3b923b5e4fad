#include <signal.h>
#include <sys/resource.h>

#include <cmath>
#include <fstream>

#include "core/base/files.h"
#include "core/base/hash.h"
#include "tests/end_to_end/program.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

using nlohmann::json;

/// So many steps take seconds: a test that looks every few milliseconds meets the run in the middle
/// however busy the machine is. What takes longer than a look holds the worker.
constexpr int long_steps = 2000;
constexpr int longer_steps = 6000;

/// A run long enough to be interrupted; it evaluates and saves rarely, so that it is training.
std::vector<std::string> long_run(const std::string& config, int steps = long_steps) {
  std::vector<std::string> arguments = tiny({"run", config, "--json"}, steps);
  for (const char* setting :
       {"train.eval_every=0", "train.log_every=10", "train.checkpoint_every=100"}) {
    arguments.insert(arguments.end(), {"--set", setting});
  }
  return arguments;
}

int parent_of(int pid) {
  const std::string status = read_file("/proc/" + std::to_string(pid) + "/stat");
  return std::stoi(status.substr(status.rfind(')') + 4));
}

int newest_checkpoint(const Program& forge) {
  int step = 0;
  for (const auto& entry : std::filesystem::directory_iterator(forge.only_run() / "checkpoints")) {
    step = std::max(step, std::atoi(entry.path().filename().c_str()));
  }
  return step;
}

/// So many words.
std::string story_of(int words) {
  const char* const known[] = {"the", "dog", "cat", "ran", "to", "a", "big", "tree", "and", "sat"};
  std::string text;
  for (int i = 0; i < words; ++i) {
    const std::string hash = hash_hex(std::to_string(i));
    text += known[hash[0] % 10] + hash.substr(1, 2);
    text += i % 50 == 49 ? ".\n\n" : " ";
  }
  return text;
}

/// Whether `later` begins with every event of `earlier`.
bool keeps(const std::vector<json>& earlier, const std::vector<json>& later) {
  return later.size() >= earlier.size() &&
         std::equal(earlier.begin(), earlier.end(), later.begin());
}

TEST_CASE("a killed worker is started again from its checkpoint and loses nothing acknowledged") {
  const Program forge;
  const int pid = forge.start(long_run("train_canon_a"));
  REQUIRE(wait_until([&] { return forge.steps_done() >= 150; }));
  const std::vector<json> before = forge.events(forge.only_run());
  REQUIRE(::kill(forge.worker_pid(), SIGKILL) == 0);
  REQUIRE(Program::wait_for(pid).exit_code == 0);
  const std::vector<json> after = forge.events(forge.only_run());
  REQUIRE(keeps(before, after));
  const json ended = after.back();
  REQUIRE(ended.at("event") == "ended");
  REQUIRE(ended.at("status") == "completed");
  REQUIRE(ended.at("attempt") == 2);
  // The second attempt went on from a checkpoint and ends where an undisturbed run ends.
  const json disturbed = json::parse(forge.call({"runs", "--json"}).out);
  const Program other;
  const json straight = json::parse(other.call(long_run("train_canon_a")).out);
  REQUIRE(disturbed[0].at("eval_loss") == straight[0].at("eval_loss"));
  REQUIRE(disturbed[0].at("attempts") == 2);
}

TEST_CASE("a run is stopped by another forge and goes on by the same command") {
  const Program forge;
  const int pid = forge.start(long_run("train_canon_a"));
  REQUIRE(wait_until([&] { return forge.steps_done() >= 20; }));
  const std::string id = forge.only_run().filename().string();
  {
    const HeldProcess held(forge.worker_pid());
    const Outcome stopped = forge.call({"runs", "stop", "--all"});
    REQUIRE(stopped.exit_code == 0);
    REQUIRE(stopped.out == id + ": stopping after saving a checkpoint\n");
  }
  REQUIRE(Program::wait_for(pid).exit_code == 3);
  REQUIRE(forge.events(forge.only_run()).back().at("status") == "stopped");
  REQUIRE(forge.call({"runs", "stop", id}).out == id + ": stopped, not running\n");
  REQUIRE(forge.call({"runs", "stop", "--all"}).out == "no active or queued runs\n");
  REQUIRE(forge.call({"runs", "stop"}).exit_code == 2);
  const json ended = json::parse(forge.call(long_run("train_canon_a")).out);
  REQUIRE(ended[0].at("id") == id);
  REQUIRE(ended[0].at("status") == "completed");
  REQUIRE(ended[0].at("attempts") == 2);
}

TEST_CASE("a run goes on when forge is killed and forge finds it again") {
  const Program forge;
  const int pid = forge.start(long_run("train_canon_b"));
  REQUIRE(wait_until([&] { return forge.steps_done() >= 20; }));
  const std::vector<json> before = forge.events(forge.only_run());
  REQUIRE(::kill(pid, SIGKILL) == 0);
  REQUIRE(Program::wait_for(pid).exit_code == 128 + SIGKILL);
  const int64_t step = forge.steps_done();
  REQUIRE(wait_until([&] { return forge.steps_done() > step; }));
  auto held = std::make_unique<HeldProcess>(forge.worker_pid());
  const json shown = json::parse(forge.call({"runs", "--json"}).out);
  REQUIRE(shown.size() == 1);
  REQUIRE(shown[0].at("status") == "running");
  const int following = forge.start(long_run("train_canon_b"));
  REQUIRE(wait_until([&] { return contains(forge.errors(), "already running"); }));
  held.reset();
  REQUIRE(Program::wait_for(following).exit_code == 0);
  const json found = json::parse(forge.call({"runs", "--json"}).out);
  REQUIRE(found[0].at("status") == "completed");
  REQUIRE(keeps(before, forge.events(forge.only_run())));
}

TEST_CASE(
    "a signal to any process of a run saves and stops and the same command goes on from there") {
  const Program forge;
  const auto forge_itself = [](int pid) { return pid; };
  const auto supervisor = [&](int) { return parent_of(forge.worker_pid()); };
  const auto worker = [&](int) { return forge.worker_pid(); };
  const std::vector<std::pair<int, std::function<int(int)>>> strikes = {{SIGINT, forge_itself},
                                                                        {SIGUSR2, forge_itself},
                                                                        {SIGTERM, supervisor},
                                                                        {SIGUSR2, supervisor},
                                                                        {SIGHUP, worker},
                                                                        {SIGUSR2, worker}};
  int step = 0;
  for (const auto& [signal, victim] : strikes) {
    INFO("signal " << signal << " after step " << step);
    const int pid = forge.start(long_run("train_canon_ac", longer_steps));
    REQUIRE(wait_until([&] { return forge.steps_done() >= step + 20; }));
    REQUIRE(::kill(victim(pid), signal) == 0);
    REQUIRE(Program::wait_for(pid).exit_code == 3);
    const std::vector<json> stopped = forge.events(forge.only_run());
    INFO(stopped.back().dump());
    REQUIRE(stopped.back().at("status") == "stopped");
    REQUIRE(stopped.back().at("exit_status") == 3);
    REQUIRE_FALSE(std::filesystem::exists(forge.only_run() / "DONE"));
    step = forge.steps_done();
    REQUIRE(newest_checkpoint(forge) >= step);
  }
  const json resumed = json::parse(forge.call(long_run("train_canon_ac", longer_steps)).out);
  REQUIRE(resumed[0].at("status") == "completed");
  REQUIRE(resumed[0].at("attempts") == strikes.size() + 1);
  const Program other;
  const json straight = json::parse(other.call(long_run("train_canon_ac", longer_steps)).out);
  REQUIRE(resumed[0].at("eval_loss") == straight[0].at("eval_loss"));
}

TEST_CASE("a run goes on from another one's checkpoint with a longer budget") {
  Program forge;
  const std::string text = forge.folder().write("stories.txt", story_of(6000)).string();
  const auto command = [&](int steps, std::vector<std::string> more) {
    std::vector<std::string> arguments = tiny({"run", "train_baseline", "--json"}, steps);
    more.insert(more.end(),
                {"--set",
                 "data.path=" + text,
                 "--set",
                 "schedule.type=constant",
                 "--set",
                 "train.log_every=3"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  const auto losses = [&](const json& result) {
    std::map<std::pair<std::string, int>, double> found;
    for (const json& event : forge.events(forge.runs_dir() / result.at("id").get<std::string>())) {
      const std::string kind = event.at("event");
      if (kind == "train" || kind == "evaluation")
        found[{kind, event.at("step")}] = event.at("loss");
    }
    return found;
  };
  const Outcome shorter = forge.call(command(20, {}));
  INFO(shorter.err);
  REQUIRE(shorter.exit_code == 0);
  const std::string id = json::parse(shorter.out)[0].at("id");
  const Outcome planned = forge.call(command(32, {"--continue", id, "--dry-run"}));
  INFO(planned.err);
  const json plan = json::parse(planned.out)[0];
  CHECK(plan.at("steps") == 12);
  CHECK(plan.at("continues") == json{{"run", id}, {"step", 20}});
  std::vector<std::string> words = command(32, {"--continue", id, "--dry-run"});
  words.erase(std::find(words.begin(), words.end(), "--json"));
  CHECK(contains(forge.call(words).out, "train_baseline goes on from step 20 of " + id));
  const Outcome longer = forge.call(command(32, {"--continue", id.substr(0, id.size() - 4)}));
  INFO(longer.err);
  REQUIRE(longer.exit_code == 0);
  const json continued = json::parse(longer.out)[0];
  REQUIRE(continued.at("id") != id);
  const Outcome shown = forge.call({"runs", "show", continued.at("id")});
  CHECK(contains(shown.out, "step 20 of " + id));
  const Outcome whole = forge.call(command(32, {"--force"}));
  REQUIRE(losses(continued) == losses(json::parse(whole.out)[0]));
  REQUIRE(losses(continued).size() ==
          19);  // 10 windows of three steps and one of two, 8 evaluations
  bool from_there = false;
  for (const json& event : forge.events(forge.runs_dir() / continued.at("id").get<std::string>())) {
    if (event.at("event") == "started") from_there = event.at("first_step") == 20;
  }
  REQUIRE(from_there);
  const Outcome other = forge.call(command(32, {"--continue", id, "--set", "train.grad_clip=0.3"}));
  REQUIRE(other.exit_code == 2);
  REQUIRE(other.err.find("train.grad_clip is 0.3 and was 0.0") != std::string::npos);
  const Outcome measured =
      forge.call(command(40, {"--continue", id, "--set", "train.eval_rows=3"}));
  REQUIRE(measured.exit_code == 2);
  REQUIRE(contains(measured.err, "train.eval_rows is 3 and was 4 when the losses"));
  const Outcome unknown = forge.call(command(48, {"--continue", "no_such_run"}));
  REQUIRE(unknown.exit_code == 2);
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, {"--dry-run"}}) {  // of a config that is completed
    std::vector<std::string> options = {"--continue", "no_such_run"};
    options.insert(options.end(), more.begin(), more.end());
    const Outcome completed = forge.call(command(20, options));
    CHECK(completed.exit_code == 2);
    CHECK(contains(completed.err, "no_such_run"));
  }
}

TEST_CASE("a worker that prints rubbish or dies leaves a failed run with its last words") {
  Program forge;
  const std::filesystem::path real =
      std::filesystem::path(FORGE_BUILD_DIR) / "forge-worker-libtorch";
  // Answers as the real one does until it is told to train.
  const std::filesystem::path script = forge.folder().write(
      "worker",
      "#!/bin/sh\nread request\ncase \"$request\" in\n*'\"job\":\"train\"'*)\n"
      "  echo '{\"job\":\"describe\"}' | " +
          real.string() +
          " | head -n 1\n"
          "  echo 'the disk caught fire' >&2\n  echo 'this is no protocol line'\n  exit 7;;\n"
          "*) echo \"$request\" | " +
          real.string() + ";;\nesac\n");
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  forge.environment["FORGE_WORKER_LIBTORCH"] = script.string();
  forge.working_directory = make_tiny_workspace(forge.folder());
  const Outcome outcome = forge.call({"run", "train_canon_a", "--json"});
  REQUIRE(outcome.exit_code == 1);
  REQUIRE(json::parse(outcome.out)[0].at("status") == "failed");
  REQUIRE(outcome.err.find("the disk caught fire") != std::string::npos);
  REQUIRE(outcome.err.find("stderr.log") != std::string::npos);
  const std::string shown = forge.call({"runs", "show", "train_canon_a"}).out;
  REQUIRE(contains(shown, "  reason "));
  REQUIRE(contains(shown, "broke the protocol"));
  const Outcome table = forge.call({"compare", "--table", "positions"});
  REQUIRE(table.exit_code == 0);
  REQUIRE(table.out.find("failed") != std::string::npos);
}

TEST_CASE("a failure and the place of its log are printed once") {
  const Program forge;
  std::vector<std::string> diverging = tiny({"run", "train_llama"}, 30);
  diverging.insert(diverging.end(), {"--set", "optimizer.lr=1e30", "--set", "train.log_every=1"});
  const Outcome outcome = forge.call(diverging);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 1);
  for (const char* text : {"the training loss is not a finite number", "stderr.log"}) {
    const size_t at = outcome.err.find(text);
    CHECK(at != std::string::npos);
    CHECK(outcome.err.find(text, at + 1) == std::string::npos);
  }
}

TEST_CASE("a run is reported as completed where the disk has no room for its row in the index") {
  for (const bool as_json : {false, true}) {
    Program forge;
    const WorkerGate gate(forge);
    std::vector<std::string> command = tiny({"run", "train_canon_a"});
    if (as_json) command.push_back("--json");
    const int pid = forge.start(command);
    REQUIRE(wait_until([&] { return forge.worker_pid() > 0; }));
    // From here on forge can write nothing more behind the first bytes of a file, and its
    // supervisor and worker can.
    const rlimit small{8192, 8192};
    REQUIRE(::prlimit(pid, RLIMIT_FSIZE, &small, nullptr) == 0);
    gate.open();
    const int exit_code = Program::wait_for(pid).exit_code;
    const std::string out = read_file(forge.folder() / "out");
    INFO(out << forge.errors());
    CHECK(exit_code == 0);
    CHECK(contains(forge.errors(), "the results store"));
    CHECK(contains(forge.errors(), "the runs' folders have their results"));
    const std::string id = forge.only_run().filename().string();
    if (as_json) {
      CHECK(json::parse(out).at(0).at("status") == "completed");
      CHECK(json::parse(out).at(0).at("eval_loss").is_number());
    } else {
      CHECK(contains(out, id + "  completed  all steps done at step 12, eval loss"));
    }
    const Outcome later = forge.call({"runs", "--json"});
    REQUIRE(json::parse(later.out).at(0).at("status") == "completed");
  }
}

TEST_CASE("memory that does not hold a step is made to suffice and the run says so") {
  std::vector<std::string> large = tiny({"run", "train_llama", "--json"}, 8);
  large.insert(large.end(), {"--set", "train.batch_size=16"});
  const Program plenty;
  const json straight = json::parse(plenty.call(large).out);
  REQUIRE(straight[0].at("micro_batch_size").is_null());
  const int64_t peak = straight[0].at("peak_memory_bytes");

  Program forge;
  forge.environment["FORGE_MEMORY_LIMIT"] = std::to_string(peak * 7 / 10);
  const Outcome outcome = forge.call(large);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  REQUIRE(outcome.err.find("memory ran out after step 0: train computes") != std::string::npos);
  const json halved = json::parse(outcome.out);
  const int64_t rows = halved[0].at("micro_batch_size");
  REQUIRE(rows < 16);
  REQUIRE(halved[0].at("tokens") == straight[0].at("tokens"));
  REQUIRE(halved[0].at("key") == straight[0].at("key"));
  int64_t said = 0;
  for (const json& event : forge.events(forge.only_run())) {
    if (event.at("event") == "micro_batch") said = event.at("rows");
  }
  REQUIRE(said == rows);
  const double difference =
      halved[0].at("eval_loss").get<double>() - straight[0].at("eval_loss").get<double>();
  REQUIRE(std::fabs(difference) < 1e-4);

  SECTION("but not where it does not hold the model") {
    Program tight;
    tight.environment["FORGE_MEMORY_LIMIT"] = "20000";
    const Outcome refused = tight.call(large);
    REQUIRE(refused.exit_code == 1);
    const json ended = tight.events(tight.only_run()).back();
    REQUIRE(ended.at("status") == "failed");
    REQUIRE(ended.at("retry") == false);
    REQUIRE(ended.at("reason").get<std::string>().find("out of memory") != std::string::npos);
    REQUIRE(ended.at("hint").get<std::string>().find("train.seq_len") != std::string::npos);
  }
}

TEST_CASE("a run that has ended and cannot leave the queue says so") {
  const Program forge;
  const int pid = forge.start(long_run("train_canon_a", 300));
  REQUIRE(wait_until([&] { return forge.steps_done() >= 20; }));
  {
    const FileLock held = FileLock::acquire(forge.runs_dir() / ".queue/lock");
    REQUIRE(wait_until([&] {
      return contains(forge.errors(),
                      "it has ended, and waits for the queue, which another process has locked");
    }));
    CHECK(contains(forge.errors(), "fuser -v"));
  }
  CHECK(Program::wait_for(pid).exit_code == 0);
}

TEST_CASE("after a crash of all processes status says so and resume serves the queue") {
  const Program forge;
  const int pid = forge.start(long_run("train_canon_a", 300));
  REQUIRE(wait_until([&] { return forge.steps_done() >= 20; }));
  const std::string id = forge.only_run().filename().string();
  {
    const HeldProcess held(forge.worker_pid());
    REQUIRE(::kill(pid, SIGKILL) == 0);
    REQUIRE(::kill(parent_of(forge.worker_pid()), SIGKILL) == 0);
    REQUIRE(Program::wait_for(pid).exit_code == 128 + SIGKILL);
  }
  REQUIRE(wait_until([&] {
    return json::parse(forge.call({"runs", "--json"}).out).at(0).at("status") == "queued";
  }));
  for (const auto& sign : std::filesystem::directory_iterator(forge.runs_dir() / ".queue/hosts"))
    std::filesystem::last_write_time(sign, sign.last_write_time() - std::chrono::hours(1));
  REQUIRE(contains(forge.call({"status"}).out,
                   "No process serves the queue; 'forge runs resume " + id + "' does.\n"));
  REQUIRE(json::parse(forge.call({"status", "--json"}).out).at("unserved") == id);
  const std::string warning = "no process serves the queue; 'forge runs resume " + id + "' does";
  for (const std::vector<std::string>& follows : std::vector<std::vector<std::string>>{
           {"runs", "logs", "-f", id},
           {"export", "--format", "tensorboard", "-o", "board", "--follow"}}) {
    const int follower = forge.start(follows);
    REQUIRE(wait_until([&] { return contains(forge.errors(), warning); }));
    ::kill(follower, SIGKILL);
    Program::wait_for(follower);
  }
  const Outcome resumed = forge.call({"runs", "resume", id, "--json"});
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  REQUIRE(json::parse(resumed.out).at(0).at("status") == "completed");
  REQUIRE(json::parse(forge.call({"status", "--json"}).out).at("unserved").is_null());
}

TEST_CASE("resuming a run that is stopping waits for its end") {
  const bool by_same_command = GENERATE(false, true);
  const Program forge;
  const int pid = forge.start(long_run("train_canon_a"));
  REQUIRE(wait_until([&] { return forge.steps_done() >= 20; }));
  const std::string id = forge.only_run().filename().string();
  auto held = std::make_unique<HeldProcess>(forge.worker_pid());
  REQUIRE(forge.call({"runs", "stop", id}).exit_code == 0);
  const int resuming = forge.start(
      by_same_command ? long_run("train_canon_a") : std::vector<std::string>{"runs", "resume", id});
  REQUIRE(wait_until([&] { return contains(forge.errors(), "is stopping"); }));
  held.reset();
  REQUIRE(Program::wait_for(resuming).exit_code == 0);
  Program::wait_for(pid);
  const json runs = json::parse(forge.call({"runs", "--json"}).out);
  REQUIRE(runs.at(0).at("status") == "completed");
  REQUIRE(runs.at(0).at("attempts") == 2);
}

TEST_CASE("a TMPDIR that is no folder is named") {
  Program forge;
  const std::string missing = (forge.folder() / "missing").string();
  forge.environment["TMPDIR"] = missing;
  const Outcome refused = forge.call(tiny({"run", "train_canon_a"}));
  REQUIRE(refused.exit_code == 1);
  REQUIRE(contains(refused.err, "error: TMPDIR names no folder: '" + missing + "'"));
  forge.environment["TMPDIR"] = "";  // as if it were not set
  REQUIRE(forge.call(tiny({"run", "train_canon_a", "--dry-run"})).exit_code == 0);
}

}  // namespace
}  // namespace forge::tests

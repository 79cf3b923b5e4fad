// One run by several processes, as a user starts it.

#include <signal.h>

#include "core/base/files.h"
#include "core/base/text.h"
#include "core/model/weights/checkpoint.h"
#include "tests/end_to_end/program.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

using nlohmann::json;

/// So many steps take seconds: a test that looks every few milliseconds meets the run in the
/// middle.
constexpr int steps_of_long_run = 1500;

/// Of a model so large that each of four processes owns some of its weights.
std::vector<std::string> slotted_run(int processes, int steps) {
  std::vector<std::string> arguments = tiny({"run", "train_llama", "--json"}, steps);
  for (const char* setting : {"model.hidden_size=64",
                              "model.mlp.intermediate_size=96",
                              "train.batch_size=4",
                              "train.gradient_slots=4"}) {
    arguments.insert(arguments.end(), {"--set", setting});
  }
  arguments.insert(arguments.end(), {"--processes", std::to_string(processes)});
  return arguments;
}

/// Evaluates rarely and saves often, so that it is training when it is disturbed.
std::vector<std::string> long_run(int processes) {
  std::vector<std::string> arguments = slotted_run(processes, steps_of_long_run);
  for (const char* setting :
       {"train.eval_every=0", "train.log_every=10", "train.checkpoint_every=50"}) {
    arguments.insert(arguments.end(), {"--set", setting});
  }
  return arguments;
}

json completed(const Program& forge, const std::vector<std::string>& arguments) {
  const Outcome outcome = forge.call(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return json::parse(outcome.out).at(0);
}

std::string last_weights(const Program& forge) {
  const auto checkpoints = weights::list_checkpoints(forge.only_run() / "checkpoints");
  REQUIRE_FALSE(checkpoints.empty());
  return weights::content_hash(weights::ModelFiles(checkpoints.back()).tensors());
}

/// What one process makes of the long run.
struct Straight {
  Straight() {
    const Program forge;
    eval_loss = completed(forge, long_run(1)).at("eval_loss");
    weights = last_weights(forge);
  }
  double eval_loss;
  std::string weights;
};

/// The process of a rank that trains the only run; 0 where there is none.
int process_of(const Program& forge, int rank) {
  const std::string rank_is = std::string("FORGE_RANK=") + std::to_string(rank);
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string pid = entry.path().filename().string();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path() / "cwd", gone) != forge.only_run()) continue;
    try {
      for (const std::string& word : split(read_file(entry.path() / "environ"), '\0'))
        if (word == rank_is) return std::stoi(pid);
    } catch (const Error&) {
      // It has ended meanwhile.
    }
  }
  return 0;
}

TEST_CASE("two processes train what one trains and it is the same run") {
  const Program alone, two;
  const json by_one = completed(alone, slotted_run(1, 12));
  const json by_two = completed(two, slotted_run(2, 12));
  CHECK(by_one.at("processes") == "1");
  CHECK(by_two.at("processes") == "2");
  REQUIRE(by_two.at("id") == by_one.at("id"));
  REQUIRE(by_two.at("eval_loss") == by_one.at("eval_loss"));
  REQUIRE(last_weights(two) == last_weights(alone));
  const Outcome again = two.call(slotted_run(4, 12));
  REQUIRE(again.exit_code == 0);
  REQUIRE(contains(again.err, "already completed"));
}

TEST_CASE("a run goes on by another number of processes") {
  const Straight straight;
  const Program forge;
  for (const int processes : {2, 4}) {
    const int64_t begin = forge.steps_done();
    const int pid = forge.start(long_run(processes));
    REQUIRE(wait_until([&] { return forge.steps_done() >= begin + 60; }));
    {
      const HeldProcess held(forge.worker_pid());
      REQUIRE(forge.call({"runs", "stop", "--all"}).exit_code == 0);
    }
    REQUIRE(Program::wait_for(pid).exit_code == 3);
    REQUIRE(forge.events(forge.only_run()).back().at("status") == "stopped");
  }
  const json ended = completed(forge, long_run(1));
  REQUIRE(ended.at("attempts") == 3);
  REQUIRE(ended.at("eval_loss") == straight.eval_loss);
  REQUIRE(last_weights(forge) == straight.weights);
}

TEST_CASE("a run goes on when one of its processes was killed and the log names it") {
  const Straight straight;
  const Program forge;
  const int pid = forge.start(long_run(2));
  REQUIRE(wait_until([&] { return forge.steps_done() >= 60; }));
  const int killed = process_of(forge, 1);
  REQUIRE(killed > 0);
  REQUIRE(::kill(killed, SIGKILL) == 0);
  REQUIRE(Program::wait_for(pid).exit_code == 0);
  std::vector<json> ends;
  for (const json& event : forge.events(forge.only_run()))
    if (event.at("event") == "ended") ends.push_back(event);
  REQUIRE(ends.size() == 2);
  CHECK(ends[0].at("reason") == "process 1 was killed by signal 9 (Killed)");
  CHECK(ends[0].at("rank") == 1);
  CHECK(ends[0].at("retry") == true);
  CHECK(ends[1].at("status") == "completed");
  const std::string id = forge.only_run().filename().string();
  CHECK(contains(forge.call({"runs", "logs", id}).out, "process 1 was killed by signal 9"));
  REQUIRE(last_weights(forge) == straight.weights);
}

TEST_CASE("processes train a task, whose rows have targets that are not scored, as one does") {
  const auto trained = [](int processes) {
    const Program forge;
    std::vector<std::string> arguments = {"run", "-p", "playground", "mano/rope_abcd", "--json"};
    for (const char* setting : {"model.hidden_size=32",
                                "model.mlp.intermediate_size=48",
                                "model.attention.num_heads=2",
                                "model.num_layers=1",
                                "train.max_steps=6",
                                "train.batch_size=4",
                                "train.gradient_slots=2",
                                "train.seq_len=128",
                                "train.eval_rows=4",
                                "train.eval_batch_size=2",
                                "train.log_every=2",
                                "train.eval_every=4"}) {
      arguments.insert(arguments.end(), {"--set", setting});
    }
    arguments.insert(arguments.end(), {"--threads", "1", "--processes", std::to_string(processes)});
    const double loss = completed(forge, arguments).at("eval_loss");
    return std::pair(loss, last_weights(forge));
  };
  REQUIRE(trained(2) == trained(1));
}

TEST_CASE("the words of every process are shown and packed") {
  Program forge;
  const std::filesystem::path script = forge.folder().write(
      "talking-worker",
      "#!/bin/sh\n[ -n \"$FORGE_RANK\" ] && echo \"here is $FORGE_RANK\" >&2\nexec '" +
          (std::filesystem::path(FORGE_BUILD_DIR) / "forge-worker-libtorch").string() + "'\n");
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  forge.environment["FORGE_WORKER_LIBTORCH"] = script.string();
  completed(forge, slotted_run(2, 4));
  const std::string id = forge.only_run().filename().string();
  const std::string logs = forge.call({"runs", "logs", id}).out;
  CHECK(contains(logs, "| process 0: here is 0\n"));
  CHECK(contains(logs, "| process 1: here is 1\n"));
  CHECK(logs.find("process 1: here is 1") < logs.find("checkpoint of step"));
  const std::string words = forge.call({"runs", "logs", id, "--stderr"}).out;
  CHECK(contains(words, "process 0: here is 0\n"));
  CHECK(contains(words, "process 1: here is 1\n"));
  CHECK(contains(forge.call({"runs", "logs", id, "--json"}).out, R"("rank":1)"));

  const std::string pack = (forge.folder() / "run.pack").string();
  REQUIRE(forge.call({"pack", id, "-o", pack}).exit_code == 0);
  const Program elsewhere;
  const Outcome imported = elsewhere.call({"import", pack});
  INFO(imported.err);
  REQUIRE(imported.exit_code == 0);
  CHECK(elsewhere.call({"runs", "logs", id, "--stderr"}).out == words);
}

TEST_CASE("forge bench measures a config by several processes") {
  const Program forge;
  const std::vector<std::string> bench = {"bench",     "train_llama",
                                          "-p",        "canon",
                                          "--set",     "train.gradient_slots=2",
                                          "--set",     "train.batch_size=2",
                                          "--set",     "train.seq_len=16",
                                          "--set",     "model.hidden_size=16",
                                          "--set",     "model.num_layers=1",
                                          "--threads", "1",
                                          "--windows", "2",
                                          "--steps",   "2"};
  const auto call = [&](const std::vector<std::string>& options) {
    std::vector<std::string> words = bench;
    words.insert(words.end(), options.begin(), options.end());
    return forge.call(words);
  };
  const Outcome measured = call({"--processes", "2", "--json"});
  INFO(measured.err);
  REQUIRE(measured.exit_code == 0);
  const json record = json::parse(measured.out).at("benchmarks").at(0);
  CHECK(record.at("processes") == 2);
  CHECK(record.at("windows").size() == 2);
  CHECK(record.at("exchange").at("alone") > 0);
  CHECK(record.at("exchange").at("visible").is_number());
  CHECK(record.at("exchange").at("waiting").is_number());
  CHECK(record.at("parts").is_null());
  CHECK(record.at("peak_memory_bytes") > 0);
  const std::string shown = call({"--processes", "2"}).out;
  CHECK(contains(shown, "2 processes; what they send each other takes "));
  CHECK(contains(shown, "ms a step for the slowest of them"));
  const Outcome one = call({"--processes", "1"});
  CHECK(one.exit_code == 0);
  CHECK_FALSE(contains(one.out, "processes;"));
  const Outcome gpus = call({"--gpus", "2"});
  CHECK(gpus.exit_code == 2);
  CHECK(contains(gpus.err, "--gpus 2 asks for GPUs"));
  CHECK(call({"--gpus", "2", "--processes", "2"}).exit_code == 2);
}

TEST_CASE("forge bench links measures what processes exchange") {
  const Program forge;
  const Outcome measured =
      forge.call({"bench", "links", "--processes", "4", "--bytes", "4096", "--json"});
  INFO(measured.err);
  REQUIRE(measured.exit_code == 0);
  const json bench = json::parse(measured.out);
  CHECK(bench.at("processes") == 4);
  REQUIRE(bench.at("links").size() == 2);
  for (const json& link : bench.at("links")) {
    CHECK(link.at("bytes") == 4096);
    CHECK(link.at("seconds") > 0);
    CHECK(link.at("bytes_per_second") > 0);
  }
  const Outcome odd = forge.call({"bench", "links", "--processes", "2", "--bytes", "4097"});
  CHECK(odd.exit_code != 0);
  CHECK(contains(odd.err, "4097 bytes have no equal parts for 2 processes"));
  CHECK(forge.call({"bench", "links", "--processes", "1"}).exit_code == 2);
  CHECK(contains(forge.call({"bench", "links"}).out, "all_gather"));
}

}  // namespace
}  // namespace forge::tests

// Metrics that are streamed while a run trains: into event files, and into the client of W&B.
#include "core/base/files.h"
#include "core/base/text.h"
#include "tests/end_to_end/program.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

using nlohmann::json;

/// Stands in for the package wandb: writes down how it is called.
constexpr const char* recording_wandb = R"(
import json
import os
import subprocess

def record(*call):
    with open(os.environ["WANDB_RECORD"], "a") as file:
        file.write(json.dumps(call) + "\n")

class Summary:
    def __setitem__(self, key, value):
        record("summary", key, value)

class Run:
    def __init__(self):
        self.summary = Summary()
    def log(self, values, step):
        if os.environ.get("WANDB_FAILS"):
            raise RuntimeError("the disk of the stand-in is full")
        record("log", step, values)
    def finish(self, exit_code):
        record("finish", exit_code)

def init(**arguments):
    record("init", arguments)
    subprocess.run(["git", "diff", "HEAD"], stdout=subprocess.DEVNULL)  # as the package does
    return Run()
)";

/// Makes forge find this text as the package wandb.
void install_wandb(Program& forge, const std::string& text) {
  forge.folder().write("packages/wandb/__init__.py", text);
  forge.environment["PYTHONPATH"] = (forge.folder() / "packages").string();
  forge.environment["PYTHONDONTWRITEBYTECODE"] = "1";
  forge.environment["WANDB_RECORD"] = (forge.folder() / "calls").string();
}

std::vector<json> calls(const Program& forge) {
  std::vector<json> list;
  for (const std::string& line : split(read_file(forge.folder() / "calls"), '\n')) {
    if (!line.empty()) list.push_back(json::parse(line));
  }
  return list;
}

std::filesystem::path only_file_below(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  REQUIRE(files.size() == 1);
  return files.front();
}

TEST_CASE("an event file that followed a run is the one that is written afterwards") {
  Program forge;
  const WorkerGate gate(forge);
  REQUIRE(forge.call(tiny({"run", "train_canon_a", "--detach"}, 40)).exit_code == 0);
  const std::string followed = (forge.folder() / "followed").string();
  const std::string written = (forge.folder() / "written").string();
  const int pid =
      forge.start({"export", "--format", "tensorboard", "-p", "canon", "-o", followed, "--follow"});
  REQUIRE(wait_until([&] { return forge.errors().find("following 1 run") != std::string::npos; }));
  gate.open();
  const Outcome outcome = Program::wait_for(pid);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  REQUIRE(
      forge.call({"export", "--format", "tensorboard", "-p", "canon", "-o", written}).exit_code ==
      0);
  const std::string bytes = read_file(only_file_below(followed));
  REQUIRE(bytes.size() > 1000);
  REQUIRE(bytes == read_file(only_file_below(written)));
  REQUIRE(only_file_below(followed).filename() == only_file_below(written).filename());

  // Followed again, with nothing left to follow, it ends at once with the same file.
  REQUIRE(
      forge.call({"export", "--format", "tensorboard", "-p", "canon", "-o", followed, "--follow"})
          .exit_code == 0);
  REQUIRE(read_file(only_file_below(followed)) == bytes);

  // A stranger's folder has a link in the place of the run's.
  const std::filesystem::path run = only_file_below(written).parent_path().filename();
  for (const char* more : {"", "--follow"}) {
    CAPTURE(more);
    const std::filesystem::path victim = forge.folder() / "victim";
    const std::filesystem::path strange = forge.folder() / ("strange" + std::string(more));
    for (const auto& made : {victim, strange}) std::filesystem::create_directories(made);
    std::filesystem::create_symlink(victim, strange / run);
    std::vector<std::string> command = {
        "export", "--format", "tensorboard", "-p", "canon", "-o", strange.string()};
    if (*more) command.push_back(more);
    const Outcome linked = forge.call(command);
    CHECK(linked.exit_code == 1);
    INFO(linked.err);
    CHECK(contains(linked.err, "a symbolic link"));
    CHECK(std::filesystem::is_empty(victim));
  }
}

TEST_CASE("W&B's client meets no repository and no settings of a stranger", "[hostile]") {
  Program forge;
  install_wandb(forge, recording_wandb);
  REQUIRE(forge.call(tiny({"run", "train_canon_a"}, 2)).exit_code == 0);
  const std::filesystem::path stranger = forge.folder() / "stranger";
  forge.folder().write("spy", "#!/bin/sh\necho ran >> " + (forge.folder() / "ran").string() + "\n");
  forge.folder().write("stranger/file", "a\n");
  const std::string git = "cd " + stranger.string() + " && chmod +x ../spy && git init -q . && " +
                          "git add file && git -c user.email=a@b -c user.name=a commit -qm a && " +
                          "echo b > file && git config core.fsmonitor ../spy && " +
                          "git config diff.external ../spy";
  REQUIRE(std::system(git.c_str()) == 0);
  const std::vector<std::string> command = {
      "export",
      "--format",
      "wandb",
      "-p",
      (forge.working_directory / "projects" / "canon").string(),
      "-o",
      stranger.string()};
  forge.working_directory = stranger;
  REQUIRE(forge.call(command).exit_code == 0);
  CHECK_FALSE(path_exists(forge.folder() / "ran"));
  forge.folder().write("stranger/wandb/settings", "[default]\nbase_url = http://127.0.0.1:9\n");
  const Outcome refused = forge.call(command);
  CHECK(refused.exit_code == 2);
  CHECK(refused.err.find("wandb/settings' would tell W&B's client what to do") !=
        std::string::npos);
}

TEST_CASE("W&B's client is called with every metric of a run") {
  Program forge;
  install_wandb(forge, recording_wandb);
  REQUIRE(forge.call(tiny({"run", "train_canon_a"}, 8)).exit_code == 0);
  const std::string run = forge.only_run().filename().string();
  const std::string output = (forge.folder() / "wandb").string();
  // Files of the folder that one is in are not Python's packages.
  const std::string project = (forge.working_directory / "projects" / "canon").string();
  for (const char* name : {"elsewhere/json.py", "elsewhere/wandb.py"})
    forge.folder().write(name, "raise SystemExit('a file of this folder ran')\n");
  for (const char* name : {"elsewhere/sitecustomize.py", "elsewhere/below/wandb.py"})
    forge.folder().write(name, "open('ran', 'w')\n");
  forge.working_directory = forge.folder() / "elsewhere";
  forge.environment["PYTHONPATH"] = ":below:.:" + forge.environment["PYTHONPATH"];
  const Outcome outcome =
      forge.call({"export", "--format", "wandb", "-p", project, "-o", output, "--json"});
  CHECK_FALSE(path_exists(forge.folder() / "elsewhere/ran"));
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const std::vector<json> said = calls(forge);
  const json& init = said.front()[1];
  REQUIRE(said.front()[0] == "init");
  REQUIRE(init.at("id") == run);
  REQUIRE(init.at("project") == "canon");
  REQUIRE(init.at("group") == "train_canon_a");
  REQUIRE(init.at("mode") == "offline");
  REQUIRE(init.at("dir") == output);
  REQUIRE(init.at("config").at("train").at("max_steps") == 8);
  size_t metrics = 0;
  int64_t step = 0;
  json last_evaluation;
  for (const json& call : said) {
    if (call[0] != "log") continue;
    REQUIRE(call[1] >= step);
    step = call[1];
    metrics += call[2].size();
    if (call[2].contains("eval_loss")) last_evaluation = call[2];
  }
  REQUIRE(step == 8);
  REQUIRE(json::parse(outcome.out).at("metrics") == metrics);
  const json summary = json::parse(forge.call({"runs", "--json"}).out)[0];
  REQUIRE(last_evaluation.at("eval_loss") == summary.at("eval_loss"));
  REQUIRE(said[said.size() - 2] == json({"summary", "status", "completed"}));
  REQUIRE(said.back() == json({"finish", 0}));
}

TEST_CASE("an export of a run that lost steps has their last values and no files of another one") {
  Program forge;
  install_wandb(forge, recording_wandb);
  REQUIRE(forge.call(tiny({"run", "train_canon_a"}, 4)).exit_code == 0);
  const std::filesystem::path run = forge.only_run(), board = forge.folder() / "board";
  const auto exported = [&](const char* format, const std::filesystem::path& output) {
    const Outcome outcome =
        forge.call({"export", "--format", format, "-p", "canon", "-o", output.string()});
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
  };
  // An attempt before told a step of which the machine forgot everything.
  std::vector<std::string> lines, before;
  for (const std::string& line : split(read_file(run / "events.jsonl"), '\n')) {
    const bool is_train = contains(line, "\"event\":\"train\"");
    if (before.empty() && is_train) {
      json lost = json::parse(line);
      lost["loss"] = 9.5;
      lost["time"] = lost.at("time").get<double>() - 5;
      before = lines;
      lines.push_back(lost.dump());
      const auto started = std::find_if(before.begin(), before.end(), [](const auto& other) {
        return contains(other, "\"event\":\"started\"");
      });
      REQUIRE(started != before.end());
      lines.push_back(*started);
    }
    lines.push_back(line);
  }
  exported("tensorboard", board);
  write_file_atomic(run / "events.jsonl", join(lines, "\n"));
  exported("tensorboard", board);
  only_file_below(board);
  exported("wandb", forge.folder() / "wandb");
  int of_step = 0;
  for (const json& call : calls(forge)) {
    if (call[0] != "log" || !call[2].contains("train_loss")) continue;
    of_step += call[1] == 2 ? 1 : 0;
    CHECK(call[2].at("train_loss") != 9.5);
  }
  CHECK(of_step == 1);
}

TEST_CASE("a missing or failing client of W&B is said, with its last words") {
  Program forge;
  REQUIRE(forge.call(tiny({"run", "train_canon_a"}, 4)).exit_code == 0);
  const std::vector<std::string> command = {
      "export", "--format", "wandb", "-p", "canon", "-o", (forge.folder() / "wandb").string()};
  install_wandb(forge, "raise ImportError('not here')\n");
  const Outcome missing = forge.call(command);
  REQUIRE(missing.exit_code == 1);
  REQUIRE(missing.err.find("the Python package wandb is not installed") != std::string::npos);
  install_wandb(forge, recording_wandb);
  forge.environment["WANDB_FAILS"] = "1";
  const Outcome failed = forge.call(command);
  REQUIRE(failed.exit_code == 1);
  REQUIRE(failed.err.find("W&B's client did not take run") != std::string::npos);
  REQUIRE(failed.err.find("the disk of the stand-in is full") != std::string::npos);
}

}  // namespace
}  // namespace forge::tests

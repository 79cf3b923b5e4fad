#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "core/base/files.h"
#include "core/run/run_folder.h"
#include "core/run/runs_dir.h"
#include "tests/end_to_end/program.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

using nlohmann::json;

/// A run that goes on until it is stopped and saves nothing by itself.
std::vector<std::string> endless(const std::string& config, int steps = 200'000) {
  std::vector<std::string> arguments = tiny({"run", config, "--detach"}, steps);
  for (const char* setting :
       {"train.eval_every=0", "train.log_every=10", "train.checkpoint_every=0"})
    arguments.insert(arguments.end(), {"--set", setting});
  return arguments;
}

json json_of(const Program& forge, std::vector<std::string> arguments) {
  arguments.push_back("--json");
  const Outcome outcome = forge.call(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return json::parse(outcome.out);
}

bool is_state(const Program& forge, const std::string& status) {
  return json_of(forge, {"runs"})[0].at("status") == status;
}

TEST_CASE("a damaged run stops no other run of its command") {
  const Program forge;
  const std::vector<std::string> both = tiny({"run", "train_canon_a", "train_canon_b"}, 4);
  REQUIRE(forge.call(tiny({"run", "train_canon_a"}, 4)).exit_code == 0);
  const fs::path damaged = forge.only_run();
  fs::resize_file(damaged / "events.jsonl", fs::file_size(damaged / "events.jsonl") / 2);
  const auto with = [&](const std::string& option) {
    std::vector<std::string> arguments = both;
    arguments.push_back(option);
    return forge.call(arguments);
  };
  const Outcome planned = with("--dry-run");
  INFO(planned.out + planned.err);
  REQUIRE(planned.exit_code == 1);
  REQUIRE(contains(planned.out, "1 new, 1 damaged"));
  const Outcome careful = with("--fail-fast");
  REQUIRE(careful.exit_code == 1);
  REQUIRE(run::list_runs(forge.runs_dir()).size() == 1);
  const Outcome done = forge.call(both);
  INFO(done.out + done.err);
  REQUIRE(done.exit_code == 1);
  REQUIRE(contains(done.err, "error: train_canon_a cannot be run: "));
  REQUIRE(contains(done.err, "hint: "));
  REQUIRE(contains(done.out, "train_canon_b"));
  REQUIRE(contains(done.out, "completed"));
}

TEST_CASE("a run saves on request and goes on and is resumed without its command") {
  const Program forge;
  const Outcome started = forge.call(endless("train_canon_a"));
  INFO(started.err);
  REQUIRE(started.exit_code == 0);
  REQUIRE(wait_until([&] { return forge.steps_done() >= 20; }));
  const std::string id = forge.only_run().filename().string();

  const json saved = json_of(forge, {"runs", "save", id});
  REQUIRE(saved.at("saved") == true);
  REQUIRE(fs::exists(fs::path(saved.at("path").get<std::string>()) / "manifest.json"));
  const int64_t at = saved.at("step");
  REQUIRE(wait_until([&] { return forge.steps_done() > at + 10; }));
  REQUIRE(forge.call({"runs", "rm", id}).exit_code == 1);
  REQUIRE(forge.call({"pack", id}).exit_code == 1);

  REQUIRE(forge.call({"runs", "stop", id}).exit_code == 0);
  REQUIRE(wait_until([&] { return is_state(forge, "stopped"); }));
  REQUIRE(forge.call({"runs", "save", id}).exit_code == 1);
  const int64_t stopped_at = json_of(forge, {"runs"})[0].at("step");

  const Outcome resumed = forge.call({"runs", "resume", id, "--detach"});
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  REQUIRE(resumed.out == id + "\n");
  REQUIRE(wait_until([&] { return forge.steps_done() > stopped_at + 10; }));
  REQUIRE(forge.call({"runs", "stop", id}).exit_code == 0);
  // Follows until the run ends.
  const Outcome logs = forge.call({"runs", "logs", id, "-f"});
  REQUIRE(logs.exit_code == 0);
  REQUIRE(contains(logs.out, "attempt 1 on "));
  REQUIRE(contains(logs.out, "checkpoint of step " + std::to_string(at)));
  REQUIRE(contains(logs.out, "attempt 2 on "));
  REQUIRE(contains(logs.out, "going on after step " + std::to_string(stopped_at)));
  REQUIRE(contains(logs.out, "stopped on request"));
}

TEST_CASE("a stopped run that is resumed ends as if it had never stopped") {
  const Program straight;
  REQUIRE(straight.call(tiny({"run", "train_canon_a"}, 400)).exit_code == 0);
  const Program forge;
  std::vector<std::string> arguments = tiny({"run", "train_canon_a", "--detach"}, 400);
  REQUIRE(forge.call(arguments).exit_code == 0);
  wait_until([&] { return forge.steps_done() >= 20; });
  forge.call({"runs", "stop", "--all"});
  REQUIRE(wait_until([&] { return !is_state(forge, "running"); }));
  const json ended = json_of(forge, {"runs", "resume", "--where", "config=train_canon_a"});
  const json wanted = json_of(straight, {"runs"});
  if (!ended.empty()) REQUIRE(ended[0].at("eval_loss") == wanted[0].at("eval_loss"));
}

TEST_CASE("a run folder that was copied or renamed goes on where it lies") {
  Program forge;
  const WorkerGate gate(forge);
  REQUIRE(forge.call(tiny({"run", "train_canon_a", "--detach"}, 8)).exit_code == 0);
  REQUIRE(wait_until([&] { return is_state(forge, "running"); }));
  REQUIRE(forge.call({"runs", "stop", "--all", "--now"}).exit_code == 0);
  REQUIRE(wait_until([&] { return is_state(forge, "stopped"); }));
  gate.open();
  const fs::path run = forge.only_run(), other = forge.runs_dir() / "my-best";
  const std::string events = read_file(run / "events.jsonl");
  const bool is_copy = GENERATE(true, false);
  CAPTURE(is_copy);
  if (is_copy) {
    fs::copy(run, other, fs::copy_options::recursive);
  } else {
    fs::rename(run, other);
  }
  const Outcome resumed = forge.call({"runs", "resume", "my-best"});
  INFO(resumed.out + resumed.err);
  REQUIRE(resumed.exit_code == 0);
  CHECK(contains(resumed.err, "my-best: resuming"));
  CHECK(fs::exists(other / "DONE"));
  CHECK(fs::exists(run) == is_copy);
  if (is_copy) CHECK(read_file(run / "events.jsonl") == events);
}

TEST_CASE("runs of a workspace that was moved go on from where it is now") {
  Program forge;
  const fs::path before = make_tiny_workspace(forge.folder()), now = forge.folder() / "moved";
  std::string text;
  for (int i = 0; i < 400; ++i) text += "Text " + std::to_string(i * i) + " of this test.\n";
  const fs::path file = before / "projects/canon/text.txt";
  write_file_atomic(file, text);
  const auto on_text = [&](std::vector<std::string> arguments, int steps) {
    for (const std::string& setting :
         {std::string("data.source=text"), "data.path=" + file.string()})
      arguments.insert(arguments.end(), {"--set", setting});
    return tiny(arguments, steps);
  };
  forge.working_directory = before / "projects/canon";
  REQUIRE(forge.call(on_text({"run", "train_canon_a"}, 4)).exit_code == 0);
  const std::string completed = forge.only_run().filename().string();
  const std::string plan = (forge.folder() / "plan.json").string();
  REQUIRE(forge.call(on_text({"run", "train_canon_b", "--save-plan", plan}, 4)).exit_code == 0);
  const WorkerGate gate(forge);
  REQUIRE(forge.call(on_text({"run", "train_canon_b", "--detach"}, 8)).exit_code == 0);
  const auto count = [&](const std::string& status) {
    const json runs = json_of(forge, {"runs"});
    return std::count_if(
        runs.begin(), runs.end(), [&](const json& run) { return run.at("status") == status; });
  };
  REQUIRE(wait_until([&] { return count("running") == 1; }));
  REQUIRE(forge.call({"runs", "stop", "--all", "--now"}).exit_code == 0);
  REQUIRE(wait_until([&] { return count("stopped") == 1; }));
  gate.open();
  const json loss = json_of(forge, {"eval", completed}).at("loss");

  fs::rename(before, now);
  forge.working_directory = now / "projects/canon";
  CHECK(json_of(forge, {"eval", completed}).at("loss") == loss);
  const auto require_done = [&](const std::vector<std::string>& arguments) {
    const Outcome outcome = forge.call(arguments);
    INFO(outcome.out + outcome.err);
    REQUIRE(outcome.exit_code == 0);
  };
  require_done({"runs", "resume", "--where", "config=train_canon_b"});
  require_done({"run", "--plan", plan});
  for (const json& run : json_of(forge, {"runs"})) {
    CHECK(run.at("status") == "completed");
    const run::RunFolder folder(forge.runs_dir() / run.at("id").get<std::string>());
    if (run.at("config") == "train_canon_b") {
      CHECK(folder.record().workspace == now.string());
      CHECK(folder.config()["data"]["path"] == (now / "projects/canon/text.txt").string());
    }
  }
  // Without the text anywhere its tokens are enough.
  fs::remove(now / "projects/canon/text.txt");
  CHECK(json_of(forge, {"eval", completed}).at("loss") == loss);
}

TEST_CASE("runs are removed and brought back and archived and tagged") {
  const Program forge;
  REQUIRE(forge.call(tiny({"run", "train_canon_a"}, 4)).exit_code == 0);
  const std::string id = forge.only_run().filename().string();
  const json all = json_of(forge, {"runs"});
  const Outcome removed = forge.call({"runs", "rm", "--where", "status=completed"});
  INFO(removed.err);
  REQUIRE(contains(removed.out, "removed 1 run,"));
  REQUIRE(json_of(forge, {"runs"}).empty());
  REQUIRE(json_of(forge, {"runs", "undo", "--list"})[0].at("runs")[0].at("run") == id);
  REQUIRE(contains(forge.call({"runs", "undo"}).out, "restored 1 run"));
  REQUIRE(json_of(forge, {"runs"}) == all);
  REQUIRE(forge.call({"runs", "rm"}).exit_code == 2);

  REQUIRE(forge.call({"runs", "tag", id, "paper", "b"}).out == id + ": b, paper\n");
  REQUIRE(forge.call({"runs", "note", id, "a", "note"}).out == id + ": a note\n");
  REQUIRE(json_of(forge, {"runs", "--where", "tag=paper"}).size() == 1);
  REQUIRE(json_of(forge, {"runs", "--where", "tag=none"}).empty());
  REQUIRE(contains(forge.call({"runs", "show", id}).out, "b, paper"));
  REQUIRE(forge.call({"runs", "archive", id}).exit_code == 0);
  REQUIRE(json_of(forge, {"runs"}).empty());
  REQUIRE(forge.call({"store", "reindex"}).exit_code == 0);
  REQUIRE(json_of(forge, {"runs", "--archived"})[0].at("note") == "a note");
  const std::string again = forge.call(tiny({"run", "train_canon_a"}, 4)).err;
  REQUIRE(contains(again, "already completed and archived"));
  REQUIRE(contains(again, "forge runs archive --restore " + id));
  REQUIRE(forge.call({"runs", "archive", id, "--restore"}).exit_code == 0);
  REQUIRE(json_of(forge, {"runs"}).size() == 1);
}

TEST_CASE("a packed run is imported elsewhere and what it does is the same") {
  const Program forge;
  REQUIRE(forge.call(tiny({"run", "train_canon_a"}, 4)).exit_code == 0);
  const std::string id = forge.only_run().filename().string();
  const std::string file = (forge.folder() / "run.tar.zst").string();
  const json packed = json_of(forge, {"pack", id, "-o", file});
  REQUIRE(packed.at("run") == id);
  REQUIRE(forge.call({"pack", id, "-o", file}).exit_code == 1);  // never replaced
  // Nor is a link followed that waits there and leads to no file yet.
  std::filesystem::create_symlink("elsewhere", forge.folder() / "link");
  REQUIRE(forge.call({"pack", id, "-o", (forge.folder() / "link").string()}).exit_code == 1);
  REQUIRE_FALSE(path_exists(forge.folder() / "elsewhere"));
  const Program other;
  const json imported = json_of(other, {"import", file});
  REQUIRE(imported.at("made") == true);
  REQUIRE(imported.at("missing").empty());
  json theirs = json_of(other, {"runs"}), ours = json_of(forge, {"runs"});
  REQUIRE(theirs.at(0).at("workspace") == other.working_directory.string());
  REQUIRE(theirs.at(0).at("imported") != "");
  ours.at(0)["imported"] = theirs.at(0).at("imported");
  REQUIRE(theirs == ours);
  // Who packs it again packs no file that it names.
  const auto files_packed = [&](const char* name) {
    return json_of(other, {"pack", id, "-o", (other.folder() / name).string()}).at("files");
  };
  const json before = files_packed("before");
  write_file_atomic(other.only_run() / "config.origin.json",
                    R"({"seed": {"at": "forge_workspace/workspace.yaml:1:1"}})");
  REQUIRE(files_packed("after") == before);
  const std::vector<std::string> words = {
      "generate", id, "--prompt", "Once", "--max-tokens", "5", "--seed", "1"};
  REQUIRE(other.call(words).out == forge.call(words).out);
  REQUIRE(json_of(other, {"import", file}).at("made") == false);
  REQUIRE(forge.call({"import", "/nowhere"}).exit_code == 2);  // as 'forge pack nowhere'
}

TEST_CASE("garbage is only freed when that is said") {
  const Program forge;
  REQUIRE(forge.call(tiny({"run", "train_canon_a"}, 4)).exit_code == 0);
  REQUIRE(forge.call({"runs", "rm", "train_canon_a"}).exit_code == 0);
  REQUIRE(contains(forge.call({"gc"}).out, "nothing to free"));
  const Outcome said = forge.call({"gc", "--older-than", "0"});
  REQUIRE(contains(said.out, "removed runs"));
  REQUIRE(contains(said.out, "nothing was freed; --yes frees"));
  REQUIRE(json_of(forge, {"runs", "undo", "--list"}).size() == 1);
  REQUIRE(contains(forge.call({"gc", "--older-than", "0", "--yes"}).out, "freed "));
  REQUIRE(json_of(forge, {"runs", "undo", "--list"}).empty());
}

TEST_CASE("the doctor says how things stand") {
  const Program forge;
  const Outcome outcome = forge.call({"doctor", "--json"});
  const json report = json::parse(outcome.out);
  REQUIRE(outcome.exit_code == (report.at("problems") == 0 ? 0 : 1));
  std::vector<std::string> names;
  for (const json& finding : report.at("findings")) names.push_back(finding.at("what"));
  for (const char* name : {"cores", "memory", "GPU", "backend libtorch", "locks", "syncs", "cache"})
    REQUIRE(std::count(names.begin(), names.end(), name) == 1);
  REQUIRE(contains(forge.call({"doctor"}).out, "backend libtorch"));
}

using nlohmann::json;

TEST_CASE("an installed tree works from anywhere") {
  Program forge;
  const std::string prefix = (forge.folder() / "prefix").string();
  const std::string install = "cmake --install " + std::string(FORGE_BUILD_DIR) + " --prefix " +
                              prefix + " > " + (forge.folder() / "install.log").string();
  REQUIRE(std::system(install.c_str()) == 0);
  forge.binary = std::filesystem::path(prefix) / "bin" / "forge";
  forge.working_directory = forge.folder().path();
  forge.environment["FORGE_RUNS_DIR"] = "";  // ./runs, because the shipped workspace is read-only
  const json projects = json::parse(forge.call({"ls", "--json"}).out);
  REQUIRE(projects.size() == 13);
  const Outcome outcome = forge.call(tiny({"run", "train_canon_ac", "--json"}));
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  REQUIRE(json::parse(outcome.out)[0].at("status") == "completed");
  REQUIRE_FALSE(
      std::filesystem::exists(std::filesystem::path(prefix) / "share" / "forge" / "runs"));
}

/// The first line or byte that a name of an attacker got through, "" for none.
std::string what_acts(const std::string& text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool is_c1 = c == 0xc2 && i + 1 < text.size() && (text[i + 1] & 0xe0) == 0x80;
    const bool is_break = c == '\n' || c == '\t' || text.substr(i, 2) == "\r\n";
    if ((c < ' ' && !is_break) || c == 0x7f || is_c1) return "byte " + std::to_string(c);
    if (text.substr(i, 5) == "\nFAKE") return "a line";
  }
  return "";
}

TEST_CASE("no command prints what names and logs of others would do to a terminal", "[hostile]") {
  static const std::string evil = "e\x1b]0;title\x07\x1b[2J\x1b[31m\nFAKE\x7f\xc2\x9b";
  Trained trained("train_llama");
  const fs::path before = trained.forge.runs_dir() / trained.run;
  const std::string id = trained.run;
  const auto edit = [&](const std::string& file, const auto& change) {
    json value = json::parse(read_file(before / file));
    change(value);
    write_file_atomic(before / file, value.dump());
  };
  edit("run.json", [&](json& run) {
    for (auto& [key, value] : run.items()) {
      if (value.is_string() && key != "created" && key != "key") value = evil;
    }
    run["id"] = "run" + evil;
  });
  write_file_atomic(before / "remarks.json",
                    json{{"note", evil}, {"tags", {evil}}, {"archived", false}}.dump());
  write_file_atomic(before / "stderr.log", evil.substr(0, evil.find('\n')) + "\x7f\xc2\x9b\n");
  fs::copy(before, trained.forge.runs_dir() / ("run" + evil), fs::copy_options::recursive);

  const std::string project = "tree/p";
  const TemporaryFolder& folder = trained.forge.folder();
  folder.write("tree/forge_workspace/meta_defaults.yaml",
               "-- block configs\nconfig_prefix: configs\n-- endblock\n");
  folder.write(project + "/meta.yaml", "-- extends 'meta_defaults.yaml'\n[configs]\nname: P\n");
  folder.write(project + "/templates/configs/" + evil + ".yaml", "model: {{ nothing }}\n");
  folder.write(project + "/templates/configs/good.yaml", "model:\n  hidden_size: 64\n");

  const std::vector<std::vector<std::string>> of_runs = {
      {"runs"},
      {"runs", "--columns", "note", "--columns", "config"},
      {"runs", "show", id},
      {"runs", "logs", id},
      {"runs", "logs", id, "--stderr"},
      {"runs", "logs", id, "--supervisor"},
      {"runs", "logs", id, "--events"},
      {"runs", "note", id},
      {"runs", "tag", id, evil},
      {"runs", "save", id},
      {"runs", "stop", id},
      {"runs", "show", id, "--json"},
      {"status"},
      {"why", id, "train_llama"},
      {"diff", id, "train_llama"},
      {"compare"},
      {"doctor"},
      {"gc"},
      {"store", "reindex"},
      {"generate", id, "--prompt", "x", "--json"},  // another program gets the model's own bytes
      {"eval", id},
      {"pack", id, "-o", folder.path() / "pack.tar.zst"},
      {"export", "--format", "csv"},
      {"export", "--format", "metrics-csv"},
      {"export-markdown", "-o", "/dev/stdout"},
      {"import", folder.path() / evil},
      {"runs", "rm", id},
      {"runs", "undo", "--list"},
      {"runs", "undo"}};
  const std::vector<std::vector<std::string>> of_configs = {{"ls"},
                                                            {"ls", "-r"},
                                                            {"check"},
                                                            {"check", "--all"},
                                                            {"index"},
                                                            {"tlist"},
                                                            {"run", "e"},
                                                            {"show", evil},
                                                            {"pp", "e"},
                                                            {"model", "e"},
                                                            {"run", "--all", "--dry-run"},
                                                            {evil},
                                                            {"run", "--" + evil},
                                                            {"run", "good", "--set", evil}};
  const auto require_inert = [&](const std::vector<std::string>& arguments) {
    const Outcome outcome = trained.forge.call(arguments);
    INFO(arguments[0] << " " << (arguments.size() > 1 ? arguments[1] : ""));
    INFO(outcome.out << outcome.err);
    CHECK(what_acts("\n" + outcome.out) == "");
    CHECK(what_acts("\n" + outcome.err) == "");
    CHECK(outcome.out.size() + outcome.err.size() > 0);
  };
  for (const auto& arguments : of_runs) require_inert(arguments);
  trained.forge.working_directory = folder / "tree" / "p";
  for (const auto& arguments : of_configs) require_inert(arguments);
  const std::string completions = trained.forge.call({"__complete", "--", "show", ""}).out;
  CHECK(contains(completions, "good\t"));
  CHECK_FALSE(contains(completions, "FAKE"));
}

}  // namespace
}  // namespace forge::tests

#include <fcntl.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>

#include "core/base/files.h"
#include "tests/end_to_end/program.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

using nlohmann::json;

json checks_of(const Program& forge, const std::vector<std::string>& command) {
  std::vector<std::string> arguments = {"backend-test", "--json", "--"};
  arguments.insert(arguments.end(), command.begin(), command.end());
  const Outcome outcome = forge.call(arguments);
  INFO(outcome.out << outcome.err);
  REQUIRE((outcome.exit_code == 0 || outcome.exit_code == 1));
  const json found = json::parse(outcome.out);
  CHECK(found.at("passed") == (outcome.exit_code == 0));
  return found;
}

/// The losses of a run by step.
std::map<int64_t, double> losses_of(const Program& forge, const std::string& run_id) {
  std::map<int64_t, double> losses;
  for (const json& event : forge.events(forge.runs_dir() / run_id)) {
    if (event.at("event") == "train") losses[event.at("step")] = event.at("loss");
  }
  return losses;
}

json last_evaluation_of(const Program& forge, const std::string& run_id) {
  json last;
  for (const json& event : forge.events(forge.runs_dir() / run_id)) {
    if (event.at("event") == "evaluation") last = event;
  }
  return last;
}

TEST_CASE("PyTorch trains what libtorch trains, and a table shows both") {
  if (!has_python_torch()) return;
  Program forge;
  const auto run = [&](const std::string& backend) {
    std::vector<std::string> command =
        tiny({"run", "train_canon_ac", "--backend", backend, "--json"}, 50);
    for (const char* setting : {"train.batch_size=8",
                                "train.seq_len=128",
                                "train.log_every=1",
                                "train.validation_rows=3"})
      command.insert(command.end(), {"--set", setting});
    const Outcome outcome = forge.call(command);
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return json::parse(outcome.out)[0];
  };
  const json own = run("libtorch"), theirs = run("pytorch");
  CHECK(own.at("backend") == "libtorch");
  CHECK(theirs.at("backend") == "pytorch");
  CHECK(own.at("parameters") == theirs.at("parameters"));
  const auto a = losses_of(forge, own.at("id")), b = losses_of(forge, theirs.at("id"));
  REQUIRE(a.size() == b.size());
  REQUIRE(a.count(1) == 1);
  REQUIRE(a.count(50) == 1);
  CHECK(std::abs(a.at(1) - b.at(1)) <= 1e-5);
  for (const auto& [step, loss] : a) CHECK(std::abs(loss - b.at(step)) <= 1e-3);
  for (const char* figure : {"eval_loss", "validation_loss"}) {
    INFO(figure);
    CHECK(std::abs(own.at(figure).get<double>() - theirs.at(figure).get<double>()) <= 1e-3);
  }
  CHECK(own.at("validation_loss") != own.at("eval_loss"));
  const json ours = last_evaluation_of(forge, own.at("id"));
  const json rows = last_evaluation_of(forge, theirs.at("id"));
  REQUIRE(ours.at("row_losses").size() == ours.at("row_tokens").size());
  REQUIRE(rows.at("row_tokens") == ours.at("row_tokens"));
  for (size_t i = 0; i < rows.at("row_losses").size(); ++i)
    CHECK(std::abs(rows.at("row_losses")[i].get<double>() -
                   ours.at("row_losses")[i].get<double>()) <= 1e-2);
  CHECK(a.at(50) < a.at(1));

  const Outcome evaluated = forge.call({"eval", theirs.at("id"), "--json"});
  INFO(evaluated.err);
  REQUIRE(evaluated.exit_code == 0);
  CHECK(json::parse(evaluated.out).at("loss").get<double>() ==
        Approx(theirs.at("eval_loss").get<double>()).margin(1e-6));
}

TEST_CASE("PyTorch generates the text that libtorch generates from the same weights") {
  if (!has_python_torch()) return;
  Program forge;
  const Outcome trained =
      forge.call(tiny({"run", "train_llama", "--backend", "pytorch", "--json"}, 30));
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  const std::string id = json::parse(trained.out)[0].at("id");
  const std::string folder = (forge.folder() / "model").string();
  REQUIRE(forge.call({"export-hf", id, folder}).exit_code == 0);
  const auto samples = [&](const std::string& model, const std::vector<std::string>& options) {
    std::vector<std::string> words = {"generate",
                                      model,
                                      "--prompt",
                                      "Once",
                                      "--prompt",
                                      "The dog",
                                      "--max-tokens",
                                      "12",
                                      "--samples",
                                      "2",
                                      "--json"};
    words.insert(words.end(), options.begin(), options.end());
    const Outcome outcome = forge.call(words);
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return json::parse(outcome.out).at("samples");
  };
  for (const std::vector<std::string>& options : std::vector<std::vector<std::string>>{
           {"--temperature", "0"},
           {"--temperature", "1", "--seed", "9"},
           {"--temperature", "0.8", "--top-k", "50", "--top-p", "0.9", "--seed", "4"}}) {
    const json own = samples(folder, options),
               theirs = samples(id, options);  // libtorch reads folders
    CHECK(own.size() == 4);
    CHECK(own == theirs);
  }
}

TEST_CASE(
    "every option of a block trains alike in both workers, is evaluated, generates and leaves") {
  if (!has_python_torch()) return;
  const std::vector<std::vector<std::string>> options = {
      {"model.attention.num_kv_heads=1", "model.attention.window=5", "model.mlp.kind=geglu"},
      {"model.norm.kind=layer_norm", "model.mlp.kind=gelu", "model.attention.qk_norm=full"},
      {"model.mlp.kind=relu_squared", "model.attention.qk_norm=per_head", "model.canon.set=ABCD"},
      {"model.layers=[gla5, attention]",
       "model.num_layers=2",
       "model.gla5.num_heads=2",
       "model.canon.set=AbCD"},
      {"model.layers=[gdn2, attention]",
       "model.num_layers=2",
       "model.gdn2.num_heads=2",
       "model.canon.set=AbBCD"},
      {"model.layers=[mamba2, {mixer: attention, attention: {window: 3}}]",
       "model.num_layers=2",
       "model.mamba2.num_heads=2",
       "model.mamba2.state_size=8",
       "model.canon.set=AbCD"}};
  for (const std::vector<std::string>& settings : options) {
    Program forge;
    const auto run = [&](const std::string& backend) {
      std::vector<std::string> command = tiny(
          {"run", "train_llama", "--backend", backend, "--json", "--set", "train.log_every=1"});
      for (const std::string& setting : settings) command.insert(command.end(), {"--set", setting});
      const Outcome outcome = forge.call(command);
      INFO(outcome.err);
      REQUIRE(outcome.exit_code == 0);
      return json::parse(outcome.out)[0];
    };
    INFO(settings[0]);
    const json own = run("libtorch"), theirs = run("pytorch");
    CHECK(own.at("parameters") == theirs.at("parameters"));
    const auto a = losses_of(forge, own.at("id")), b = losses_of(forge, theirs.at("id"));
    REQUIRE(a.size() == b.size());
    for (const auto& [step, loss] : a) CHECK(std::abs(loss - b.at(step)) <= 1e-4);
    const std::string id = own.at("id"), folder = (forge.folder() / "model").string();
    for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
             {"eval", id, "--json"},
             {"generate", id, "--prompt", "a", "--max-tokens", "9"},
             {"export-hf", id, folder},
             {"import-hf", folder}}) {
      const Outcome outcome = forge.call(command);
      INFO(command[0] << ": " << outcome.err);
      CHECK(outcome.exit_code == 0);
    }
  }
}

TEST_CASE("runs of two backends stand side by side in a table") {
  Program forge;
  forge.working_directory = make_tiny_workspace(forge.folder());
  const auto run = [&](const std::string& backend) {
    const Outcome outcome = forge.call({"run",
                                        "train_canon_ac",
                                        "train_llama",
                                        "--backend",
                                        backend,
                                        "--set",
                                        "data.order=sequential",
                                        "--threads",
                                        "1"});
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
  };
  run("libtorch");
  run("bigram");
  const Outcome table =
      forge.call({"compare", "--table", "positions", "--by", "backend", "--json"});
  INFO(table.out << table.err);
  REQUIRE(table.exit_code == 0);
  std::map<std::string, std::set<std::string>> backends;
  const json shown = json::parse(table.out);
  for (const json& row : shown.at("rows")) {
    if (!row.at("run_id").is_null()) backends[row.at("config")].insert(row.at("backend"));
  }
  const std::set<std::string> both = {"bigram", "libtorch"};
  CHECK(backends["train_canon_ac"] == both);
  CHECK(backends["train_llama"] == both);
  const std::string text = forge.call({"compare", "--table", "positions", "--by", "backend"}).out;
  INFO(text);
  CHECK(contains(text, "Backend"));
  CHECK(contains(text, "bigram"));
  CHECK(contains(text, "libtorch"));
}

TEST_CASE("a run that goes on between two reports has the losses of one made at once") {
  for (const char* backend : {"pytorch", "bigram"}) {
    const auto losses_of = [&](const Program& forge, int begins_at) {
      const auto run = [&](int steps, const std::vector<std::string>& more) {
        std::vector<std::string> arguments = tiny({"run",
                                                   "train_canon_ac",
                                                   "--backend",
                                                   backend,
                                                   "--json",
                                                   "--set",
                                                   "data.order=sequential",
                                                   "--set",
                                                   "schedule.type=constant"},
                                                  steps);
        arguments.insert(arguments.end(), more.begin(), more.end());
        const Outcome outcome = forge.call(arguments);
        INFO(outcome.err);
        REQUIRE(outcome.exit_code == 0);
        return json::parse(outcome.out)[0];
      };
      const json last =
          begins_at == 0 ? run(9, {}) : run(9, {"--continue", run(begins_at, {}).at("id")});
      std::map<int, double> losses;
      for (const json& event : forge.events(forge.runs_dir() / last.at("id").get<std::string>()))
        if (event.at("event") == "train") losses[event.at("step")] = event.at("loss");
      return losses;
    };
    INFO(backend);
    const Program at_once, in_parts;
    const std::map<int, double> whole = losses_of(at_once, 0);
    CHECK(whole.size() == 5);  // of two steps each, and the last one
    CHECK(losses_of(in_parts, 5) == whole);
  }
}

TEST_CASE("a job that a backend lacks is refused before it starts") {
  Program forge;
  const Outcome trained = forge.call(tiny({"run",
                                           "train_canon_ac",
                                           "--backend",
                                           "bigram",
                                           "--set",
                                           "data.order=sequential",
                                           "--json"}));
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  const std::string id = json::parse(trained.out)[0].at("id");
  const Outcome text = forge.call({"generate", id, "--prompt", "a"});
  CHECK(text.exit_code == 2);
  CHECK(contains(text.err, "backend bigram cannot do the job generate"));
  CHECK(contains(text.err, "it does describe, train, evaluate"));
  const std::string file = (forge.folder() / "logits.safetensors").string();
  CHECK(contains(forge.call({"logits", id, file}).err, "cannot do the job logits"));
}

TEST_CASE("the backends that come with forge do what the protocol says") {
  const Program forge;
  const json bigram = checks_of(forge, {"bigram"});
  INFO(bigram.dump(2));
  CHECK(bigram.at("passed") == true);
  if (!has_python_torch()) return;
  const json pytorch = checks_of(forge, {"pytorch"});
  INFO(pytorch.dump(2));
  CHECK(pytorch.at("passed") == true);
}

TEST_CASE("libtorch does what the protocol says") {
  const Program forge;
  const json found = checks_of(
      forge, {(std::filesystem::path(FORGE_BUILD_DIR) / "forge-worker-libtorch").string()});
  INFO(found.dump(2));
  CHECK(found.at("passed") == true);
}

TEST_CASE("what a backend lacks is refused before it starts, at the key's place") {
  Program forge;
  const Outcome refused = forge.call(tiny({"run", "train_canon_ac", "--backend", "bigram"}));
  CHECK(refused.exit_code == 2);
  CHECK(contains(refused.err, "backend bigram cannot do data.order: shuffled"));
  CHECK(contains(refused.err, "it can do sequential"));
  CHECK_FALSE(std::filesystem::exists(forge.runs_dir()));
  const Outcome placed = forge.call(
      tiny({"run", "train_canon_ac", "--backend", "bigram", "--set", "data.order=shuffled"}));
  CHECK(contains(placed.err, "--set data.order=shuffled"));
}

TEST_CASE("a backend in shell and awk trains, is cached, evaluated and shown") {
  Program forge;
  const std::vector<std::string> command = tiny(
      {"run", "train_canon_ac", "--backend", "bigram", "--set", "data.order=sequential", "--json"});
  const Outcome outcome = forge.call(command);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const json run = json::parse(outcome.out)[0];
  CHECK(run.at("status") == "completed");
  CHECK(run.at("backend") == "bigram");
  CHECK(run.at("eval_loss").get<double>() < run.at("train_loss").get<double>() + 5);
  const std::filesystem::path folder = forge.only_run();
  const auto checkpoint = folder / "checkpoints" / "000000012";
  CHECK(std::filesystem::exists(checkpoint / "manifest.json"));
  CHECK(contains(forge.call(command).err, "already completed"));

  const Outcome evaluated = forge.call({"eval", run.at("id"), "--json"});
  INFO(evaluated.err);
  REQUIRE(evaluated.exit_code == 0);
  CHECK(json::parse(evaluated.out).at("loss").get<double>() ==
        Approx(run.at("eval_loss").get<double>()).margin(1e-9));
}

TEST_CASE("a run is evaluated by the program that trained it alone") {
  Program forge;
  const std::filesystem::path program = forge.folder() / "bigram";
  std::filesystem::copy(tests_dir().parent_path() / "backends" / "bigram", program);
  const Outcome outcome =
      forge.call(tiny({"run",
                       "train_canon_ac",
                       "--set",
                       "backend=external",
                       "--set",
                       "external.command=[/bin/sh, " + (program / "worker.sh").string() + "]",
                       "--set",
                       "data.order=sequential",
                       "--json"}));
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const std::string id = json::parse(outcome.out)[0].at("id");
  const Outcome same = forge.call({"eval", id});
  INFO(same.err);
  CHECK(same.exit_code == 0);
  const std::filesystem::path worker = program / "worker.sh";
  write_file_atomic(worker, read_file(worker) + "# edited\n");
  const Outcome edited = forge.call({"eval", id});
  INFO(edited.err << edited.out);
  CHECK(edited.exit_code == 2);
  CHECK(contains(edited.err, "are not those that trained run '" + id + "'"));
}

TEST_CASE("any command can be a backend, without a shell") {
  Program forge;
  const std::string worker =
      (tests_dir().parent_path() / "backends" / "bigram" / "worker.sh").string();
  const Outcome outcome =
      forge.call(tiny({"run",
                       "train_canon_ac",
                       "--set",
                       "backend=external",
                       "--set",
                       "external.command=[" + worker + ", \"$(touch no)\", \"; exit\"]",
                       "--set",
                       "data.order=sequential",
                       "--json"}));
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(json::parse(outcome.out)[0].at("backend") == "bigram");
  CHECK_FALSE(std::filesystem::exists(forge.working_directory / "no"));

  const Outcome gone = forge.call(tiny({"run",
                                        "train_canon_ac",
                                        "--set",
                                        "backend=external",
                                        "--set",
                                        "external.command=[/no/such]"}));
  CHECK(gone.exit_code == 1);
  CHECK(contains(gone.err, "/no/such"));
}

TEST_CASE("a program's result is not shown as that of another of the same name") {
  Program forge;
  const auto run = [&](const std::string& folder) {
    const Outcome outcome =
        forge.call(tiny({"run",
                         "train_canon_ac",
                         "--set",
                         "backend=external",
                         "--set",
                         "external.command=[./worker.sh]",
                         "--set",
                         "external.working_directory=" + (forge.folder() / folder).string(),
                         "--set",
                         "data.order=sequential"}));
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return outcome.err;
  };
  const std::filesystem::path bigram = tests_dir().parent_path() / "backends" / "bigram";
  for (const char* copy : {"a", "b"}) std::filesystem::copy(bigram, forge.folder() / copy);
  const std::filesystem::path edited = forge.folder() / "b" / "worker.sh";
  run("a");
  CHECK(contains(run("b"), "already completed"));  // the same program in another folder
  write_file_atomic(edited, read_file(edited) + "# another program\n");
  std::filesystem::permissions(edited, std::filesystem::perms::owner_all);
  CHECK_FALSE(contains(run("b"), "already completed"));
  CHECK(contains(run("b"), "already completed"));
  CHECK(contains(run("a"), "already completed"));
}

/// Trains by a program of these lines. It is started with a file that it edits, net.txt, and the
/// folder of runs.
Outcome run_editing_program(const Program& forge, const std::string& lines) {
  const std::filesystem::path folder = forge.folder() / "a";
  std::filesystem::copy(tests_dir().parent_path() / "backends" / "bigram", folder);
  write_file_atomic(folder / "net.txt", "one\n");
  write_file_atomic(folder / "edited.sh", lines);
  std::filesystem::permissions(folder / "edited.sh", std::filesystem::perms::owner_all);
  return forge.call(
      tiny({"run",
            "train_canon_ac",
            "--set",
            "backend=external",
            "--set",
            "external.command=[./edited.sh, net.txt, " + forge.runs_dir().string() + "]",
            "--set",
            "external.working_directory=" + folder.string(),
            "--set",
            "data.order=sequential"}));
}

TEST_CASE("a program that is edited while it starts gives no result under its old identity",
          "[hostile]") {
  Program forge;
  // Edits a file of its command before it trains, as somebody might meanwhile.
  const Outcome outcome =
      run_editing_program(forge,
                          "#!/bin/sh\n"
                          "read -r request\n"
                          "case $request in *'\"job\":\"train\"'*) echo two >\"$1\" ;; esac\n"
                          "printf '%s\\n' \"$request\" | ./worker.sh\n");
  INFO(outcome.err);
  CHECK(outcome.exit_code == 1);
  const std::string events = read_file(forge.only_run() / "events.jsonl");
  CHECK(contains(events, "were changed while the worker started"));
  CHECK_FALSE(contains(events, "\"event\":\"finished\""));
}

TEST_CASE("a program that is edited while its run trains leaves a warning with the run",
          "[hostile]") {
  Program forge;
  // Edits a file of its command once forge has compared it, as somebody might meanwhile.
  const Outcome outcome = run_editing_program(
      forge,
      "#!/bin/sh\n"
      "read -r request\n"
      "printf '%s\\n' \"$request\" | ./worker.sh | while read -r line; do\n"
      "  case $line in *'\"event\":\"finished\"'*)\n"
      "    until grep -qs '\"event\":\"started\"' \"$2\"/train_*/events.jsonl; do :; done\n"
      "    echo two >\"$1\" ;;\n"
      "  esac\n"
      "  printf '%s\\n' \"$line\"\n"
      "done\n");
  INFO(outcome.err);
  CHECK(outcome.exit_code == 0);
  const std::string warning = "files that it reads were changed while it trained: net.txt\n";
  CHECK(contains(outcome.err, warning));
  const std::string run = forge.only_run().filename().string();
  CHECK(contains(forge.call({"runs", "show", run}).out, warning));
}

TEST_CASE("programs are started whatever locale the environment names") {
  Program forge;
  for (const char* name : {"LC_ALL", "LANG", "LC_CTYPE"}) forge.environment[name] = "xx_XX.UTF-8";
  const Outcome trained = forge.call(tiny({"run", "train_llama", "--json"}, 2));
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  const std::string id = json::parse(trained.out)[0].at("id");
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"run", "train_llama", "--dry-run"},
                                             {"backends"},
                                             {"eval", id},
                                             {"generate", id, "--prompt", "a", "--max-tokens", "2"},
                                             tiny({"bench", "train_llama"}, 2)}) {
    const Outcome outcome = forge.call(command);
    INFO(command[0] << ": " << outcome.out << outcome.err);
    CHECK(outcome.exit_code == 0);
  }
}

TEST_CASE("the program that a run folder of others names is started only if it is allowed",
          "[hostile]") {
  Program forge;
  const std::string worker =
      (tests_dir().parent_path() / "backends" / "bigram" / "worker.sh").string();
  REQUIRE(forge
              .call(tiny({"run",
                          "train_canon_ac",
                          "--set",
                          "backend=external",
                          "--set",
                          "external.command=[" + worker + "]",
                          "--set",
                          "data.order=sequential"}))
              .exit_code == 0);
  const std::string run = forge.only_run().filename().string();
  REQUIRE(forge.call({"eval", run, "--json"}).exit_code == 0);

  // Somebody else, who was given the folder.
  Program other;
  other.environment["FORGE_CACHE_DIR"] = (other.folder() / "cache").string();
  const Outcome imported = other.call({"import", forge.only_run().string()});
  INFO(imported.err);
  REQUIRE(imported.exit_code == 0);
  const Outcome refused = other.call({"eval", run, "--json"});
  CHECK(refused.exit_code == 2);
  CHECK(contains(refused.err, "would start a program that you have not allowed: "));
  CHECK(contains(refused.err, worker));
  std::filesystem::remove(other.only_run() / "DONE");
  CHECK(contains(other.call({"supervise", other.only_run().string()}).err, "not allowed"));
  const Outcome allowed = other.call({"eval", run, "--allow-command", "--json"});
  INFO(allowed.err);
  CHECK(allowed.exit_code == 0);
  CHECK(other.call({"eval", run, "--json"}).exit_code == 0);
}

TEST_CASE("a link that comes into the place of a run's checkpoints while it trains leads nowhere",
          "[hostile]") {
  std::vector<std::string> backends = {"libtorch", "bigram"};
  if (has_python_torch()) backends.emplace_back("pytorch");
  for (const std::string& backend : backends) {
    INFO(backend);
    const Program forge;
    const TemporaryFolder home;
    home.write("000000001/thesis.txt", "three years of work");
    std::vector<std::string> command =
        tiny({"run", "train_canon_ac", "--backend", backend}, 20'000);
    for (const char* setting :
         {"data.order=sequential", "train.checkpoint_every=5", "train.eval_every=0"})
      command.insert(command.end(), {"--set", setting});
    const int pid = forge.start(command);
    REQUIRE(wait_until([&] {
      const auto runs = folder_entries(forge.runs_dir());
      return std::any_of(runs.begin(), runs.end(), [](const auto& run) {
        return is_file(run / "checkpoints/000000005/acknowledged") ||
               is_folder(run / "checkpoints/000000015");
      });
    }));
    const fs::path run = forge.only_run();
    fs::create_directory_symlink(home.path(), run / "away");
    REQUIRE(::renameat2(AT_FDCWD,
                        (run / "away").c_str(),
                        AT_FDCWD,
                        (run / "checkpoints").c_str(),
                        RENAME_EXCHANGE) == 0);
    // 4 where the worker finds first that it cannot save, 1 where its supervisor does.
    const int exit_code = Program::wait_for(pid).exit_code;
    CHECK((exit_code == 1 || exit_code == 4));
    const std::string reason = forge.events(run).back().at("reason");
    INFO(reason);
    CHECK(contains(reason, "checkpoints"));
    CHECK(folder_entries(home.path()).size() == 1);
    CHECK(folder_entries(home / "000000001").size() == 1);
    CHECK(!folder_entries(run / "away").empty());
  }
}

TEST_CASE("the backends are listed with what they can do") {
  const Program forge;
  const Outcome outcome = forge.call({"backends", "--json"});
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  std::map<std::string, json> backends;
  for (const json& backend : json::parse(outcome.out)) backends[backend.at("name")] = backend;
  CHECK(backends.at("libtorch").at("available") == true);
  CHECK(contains(backends.at("libtorch").at("jobs").dump(), "bench_ops"));
  CHECK(backends.at("bigram").at("config").at("data.order") == json({"sequential"}));
  CHECK(backends.count("pytorch") == 1);
  const Outcome text = forge.call({"backends"});
  CHECK(contains(text.out, "data.order: sequential"));
}

using nlohmann::json;

std::vector<std::string> tiny_bench(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "bench");
  arguments.insert(arguments.end(), {"--windows", "2", "--steps", "2", "-p", "canon"});
  return tiny(arguments);
}

TEST_CASE("forge bench measures configs in turns, stores and lists what it found") {
  const Program forge;
  const Outcome measured = forge.call(tiny_bench({"train_llama", "train_baseline", "--json"}));
  INFO(measured.err);
  REQUIRE(measured.exit_code == 0);
  CHECK(contains(measured.err, "window 1 of 2, train_baseline"));
  const json records = json::parse(measured.out).at("benchmarks");
  REQUIRE(records.size() == 2);
  CHECK(records[0].at("config") == "train_llama");
  CHECK(records[1].at("config") == "train_baseline");
  for (const json& record : records) {
    CHECK(record.at("windows").size() == 2);
    CHECK(record.at("window_steps") == 2);
    CHECK(record.at("tokens_per_step") == 32);
    CHECK(record.at("project") == "projects/canon");
    CHECK(record.at("call") == records[0].at("call"));
    CHECK(record.at("call").at("configs") == json({"train_llama", "train_baseline"}));
    CHECK(contains(record.at("call").at("command"), "forge bench train_llama train_baseline"));
    CHECK(record.at("device").at("threads") == 1);
    CHECK(record.at("device").at("libraries").contains("torch"));
    CHECK(record.at("model").at("hidden_size") == 16);
    CHECK(record.at("mfu").get<double>() > 0);
    CHECK(record.at("mfu").get<double>() < 1);
    const auto id = record.at("id").get<std::string>();
    CHECK(json::parse(read_file(forge.runs_dir() / "benchmarks" / (id + ".json"))) == record);
  }
  CHECK(records[1].at("ratio").at("config") == "train_llama");

  const Outcome listed = forge.call({"bench", "list"});
  CHECK(listed.exit_code == 0);
  CHECK(contains(listed.out, "train_baseline"));
  CHECK(json::parse(forge.call({"bench", "list", "--json"}).out).at("benchmarks").size() == 2);
  // Measurements are no runs.
  CHECK(json::parse(forge.call({"runs", "--json"}).out).empty());
  CHECK(contains(forge.call({"store", "reindex"}).out, "2 benchmarks"));
}

TEST_CASE("forge bench prints a table and compares with the first config") {
  const Program forge;
  const Outcome measured = forge.call(tiny_bench({"train_llama", "train_canon_a"}));
  INFO(measured.err);
  REQUIRE(measured.exit_code == 0);
  CHECK(contains(measured.out, "Tok/s"));
  CHECK(contains(measured.out, "vs train_llama"));
  CHECK(contains(measured.out, "1 thread, float32, ceiling"));
  CHECK(contains(measured.out, "torch "));
}

TEST_CASE("a backend of one's own beside forge's own ones is known by its program") {
  Program forge;
  const std::filesystem::path tree = make_tiny_workspace(forge.folder());
  make_directories(tree / "backends");
  for (const char* name : {"bigram", "mine"})
    std::filesystem::copy(tests_dir().parent_path() / "backends" / "bigram",
                          tree / "backends" / name,
                          std::filesystem::copy_options::recursive);
  std::string worker = read_file(tree / "backends/mine/worker.sh");
  const std::string name = R"("backend":"bigram")";
  worker.replace(worker.find(name), name.size(), R"("backend":"mine")");
  std::ofstream(tree / "backends/mine/worker.sh") << worker;
  make_directories(tree / "build/release");
  std::filesystem::copy_file(forge.binary, tree / "build/release/forge");
  forge.binary = tree / "build/release/forge";
  forge.working_directory = tree / "projects/canon";
  const auto program_of = [&](const std::string& backend) {
    std::vector<std::string> command =
        tiny({"run", "train_llama", "--json", "--force", "--backend", backend}, 2);
    command.insert(command.end(), {"--set", "data.order=sequential"});
    const Outcome made = forge.call(command);
    INFO(made.err);
    REQUIRE(made.exit_code == 0);
    const std::string id = json::parse(made.out).at(0).at("id");
    const json record = json::parse(read_file(forge.runs_dir() / id / "run.json"));
    return record.at("identity").at("program").get<std::string>();
  };
  CHECK(program_of("bigram").empty());  // by its numerics_version
  CHECK_FALSE(program_of("mine").empty());
}

TEST_CASE("a table takes its speeds from measurements of its configs as they are") {
  Program forge;
  const TemporaryFolder folder;
  const std::filesystem::path workspace = make_tiny_workspace(folder);
  forge.working_directory = workspace / "projects" / "canon";
  const std::filesystem::path table = forge.working_directory / "tables" / "positional.yaml";
  write_file_atomic(table, read_file(table) + "\ntokens_per_second: benchmark\n");
  const auto rows = [&] {
    const Outcome outcome = forge.call({"compare", "--table", "positional", "--json"});
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return json::parse(outcome.out).at("rows");
  };
  const auto measure = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "bench");
    arguments.insert(arguments.end(), {"--windows", "1", "--steps", "1", "--threads", "1"});
    const Outcome outcome = forge.call(arguments);
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
  };
  CHECK(rows()[0].at("benchmark").is_null());
  measure({"train_llama", "train_nope"});
  CHECK(rows()[0].at("tokens_per_second").get<double>() > 0);
  CHECK(rows()[2].at("benchmark").at("call") == rows()[0].at("benchmark").at("call"));
  CHECK(rows()[1].at("benchmark").is_null());
  CHECK_FALSE(rows()[2].at("throughput_change").is_null());
  // A model that is not the config's must not stand under its name.
  measure({"train_baseline", "--set", "model.hidden_size=8"});
  CHECK(rows()[1].at("benchmark").is_null());
  measure({"train_baseline"});
  CHECK(contains(rows()[1].at("benchmark").at("otherwise"), "measured in another call"));
  CHECK(contains(forge.call({"compare", "--table", "positional"}).out, "forge bench on 20"));
}

TEST_CASE("what forge bench measured is printed though it cannot be stored") {
  const Program forge;
  const std::filesystem::path runs = forge.runs_dir();
  make_directories(runs);
  write_file_atomic(runs / "benchmarks", "a file in the place of the folder");
  const Outcome measured = forge.call(tiny_bench({"train_llama"}));
  CHECK(measured.exit_code == 1);
  CHECK(contains(measured.out, "Tok/s"));
  CHECK(contains(measured.err, "error: not stored: "));
}

TEST_CASE("forge bench says what it cannot do") {
  const Program forge;
  const auto error = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "bench");
    const Outcome outcome = forge.call(arguments);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.out.empty());
    return outcome.err;
  };
  CHECK(contains(error({"train_lama", "-p", "canon"}), "train_llama"));
  CHECK(contains(error({"train_llama", "--windows", "0"}), "--windows"));
  CHECK(contains(error({"train_llama", "--steps", "-1"}), "--steps"));
  CHECK(contains(error({"train_llama", "list"}), "takes no CONFIG before 'list'"));
  CHECK(contains(error({"ops", "swiglo"}), "no operation 'swiglo'"));
  CHECK(contains(error({"ops", "--size", "huge"}), "no size 'huge'"));
  CHECK(contains(error({"ops", "--precision", "float7"}), "float32"));
  CHECK(contains(forge.call({"bench", "list"}).err, "no benchmarks in"));
  CHECK(contains(forge.call({"bench", "--help"}).out, "forge bench train_llama train_baseline"));
}

TEST_CASE("forge bench ops measures the worker's operations and stores them") {
  const Program forge;
  const Outcome measured =
      forge.call({"bench", "ops", "adamw", "--size", "4m", "--threads", "1", "--json"});
  INFO(measured.err);
  REQUIRE(measured.exit_code == 0);
  const json record = json::parse(measured.out).at("benchmarks").at(0);
  CHECK(record.at("kind") == "operations");
  CHECK(record.at("operations").at(0).at("operation") == "adamw");
  CHECK(record.at("ceilings").contains("memory"));
  CHECK(contains(forge.call({"bench", "list"}).out, "1 operations"));
}

}  // namespace
}  // namespace forge::tests

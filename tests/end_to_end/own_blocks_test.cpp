#include <csignal>

#include <cmath>

#include "core/base/files.h"
#include "core/base/text.h"
#include "tests/end_to_end/program.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

/// forge in a workspace with a project of a tiny model, in which blocks are written.
struct Project {
  Project() {
    forge.working_directory = make_tiny_workspace(forge.folder()) / "projects/own_block";
  }
  fs::path folder() const { return forge.working_directory; }
  json run(const std::string& config, std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {"run", config, "--json", "--set", "train.log_every=1"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = forge.call(words);
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return json::parse(outcome.out)[0];
  }
  std::map<int64_t, double> losses(const json& run) const {
    std::map<int64_t, double> losses;
    for (const json& event : forge.events(forge.runs_dir() / run.at("id"))) {
      if (event.at("event") == "train") losses[event.at("step")] = event.at("loss");
    }
    return losses;
  }
  Program forge;
};

std::string text_of(const Outcome& outcome) { return outcome.out + outcome.err; }

void add_dropout(const Project& project) {
  const fs::path file = project.folder() / "blocks/gated_attention.py";
  std::string source = read_file(file);
  const std::string end = "return self.o_proj(mixed)";
  source.replace(source.find(end),
                 end.size(),
                 "return self.o_proj(torch.nn.functional.dropout(mixed, 0.2, self.training))");
  write_file_atomic(file, source);
}

TEST_CASE("a block that is attention's twin has attention's losses", "[own_blocks]") {
  if (!has_python_torch()) return;
  const Project project;
  const std::vector<std::string> fifty = {
      "--set", "train.max_steps=50", "--set", "train.batch_size=8", "--set", "train.seq_len=64"};
  std::vector<std::string> heads = fifty;  // the tiny model's
  heads.insert(heads.end(), {"--set", "model.blocks.gated_attention.num_heads=2"});
  const json twin = project.run("train_twin", heads);
  const json own = project.run("train_attention", fifty);
  CHECK(twin.at("parameters") == own.at("parameters"));
  const auto a = project.losses(twin), b = project.losses(own);
  REQUIRE(a.size() == 50);
  REQUIRE(a.size() == b.size());
  CHECK(a.at(50) < a.at(1));
  for (const auto& [step, loss] : a) {
    INFO("step " << step);
    CHECK(std::abs(loss - b.at(step)) <= 1e-5 * b.at(step));
  }
}

TEST_CASE("a run of a block is stopped and resumes with the same bits, chance included",
          "[own_blocks]") {
  if (!has_python_torch()) return;
  const Project project;
  add_dropout(project);
  const std::vector<std::string> whole = {"--set",
                                          "train.max_steps=9",
                                          "--set",
                                          "train.micro_batch_size=1",
                                          "--set",
                                          "data.order=sequential"};
  const auto expected = project.losses(project.run("train_gated", whole));
  std::vector<std::string> first = whole;
  first[1] = "train.max_steps=5";
  const json begun = project.run("train_gated", first);
  std::vector<std::string> on = whole;
  on.insert(on.end(), {"--force", "--continue", begun.at("id")});
  const json resumed = project.run("train_gated", on);
  CHECK(resumed.at("status") == "completed");
  CHECK(project.losses(resumed) == expected);
}

TEST_CASE("a run of a block that SIGTERM stops goes on with the same bits", "[own_blocks]") {
  if (!has_python_torch()) return;
  const Project whole, stopped;
  for (const Project* project : {&whole, &stopped}) add_dropout(*project);
  const std::vector<std::string> steps = {"--set", "train.max_steps=300"};
  const auto expected = whole.losses(whole.run("train_gated", steps));
  const Program& forge = stopped.forge;
  std::vector<std::string> words = {"run", "train_gated", "--set", "train.log_every=1"};
  words.insert(words.end(), steps.begin(), steps.end());
  const int pid = forge.start(words);
  REQUIRE(wait_until([&] { return forge.steps_done() >= 20; }));
  REQUIRE(::kill(pid, SIGTERM) == 0);
  const Outcome first = Program::wait_for(pid);
  INFO(first.out << first.err);
  REQUIRE(first.exit_code == 3);
  const int64_t done = forge.steps_done();
  REQUIRE(done < 300);
  const std::string id = forge.only_run().filename().string();
  const Outcome second = forge.call({"runs", "resume", id});
  INFO(second.out << second.err);
  REQUIRE(second.exit_code == 0);
  CHECK(stopped.losses({{"id", id}}) == expected);
}

TEST_CASE("rows in Python and in C++ compare in loss, and in speed where Python trained all",
          "[own_blocks]") {
  if (!has_python_torch()) return;
  const Project project;
  const Program& forge = project.forge;
  project.run("train_gated");
  CHECK(project.run("train_attention", {"--backend", "libtorch"}).at("backend") == "libtorch");
  const char* said = "by backend pytorch: compared in loss, not in speed and memory";
  const Outcome mixed = forge.call({"compare", "--table", "gate"});
  INFO(mixed.out);
  CHECK(contains(mixed.out, said));
  CHECK(contains(mixed.out, "unlike the baseline: its loss is comparable"));
  CHECK_FALSE(contains(mixed.out, "cannot be compared"));
  const Outcome all =
      forge.call({"run", "--all", "--backend", "pytorch", "--set", "train.log_every=1"});
  INFO(text_of(all));
  REQUIRE(all.exit_code == 0);
  const Outcome same = forge.call({"compare", "--table", "gate"});
  INFO(same.out);
  CHECK_FALSE(contains(same.out, said));
  CHECK_FALSE(contains(same.out, "missing"));
}

TEST_CASE("an edited block is another run, and diff, why and show tell what changed",
          "[own_blocks]") {
  if (!has_python_torch()) return;
  const Project project;
  const Program& forge = project.forge;
  const json before = project.run("train_gated");
  CHECK(project.run("train_gated").at("id") == before.at("id"));
  const fs::path file = project.folder() / "blocks/gated_attention.py";
  const std::string old = read_file(file);
  std::string source = old;
  source.replace(source.find("torch.sigmoid("), 14, "torch.tanh(");
  write_file_atomic(file, source);
  const json after = project.run("train_gated");
  CHECK(after.at("id") != before.at("id"));
  CHECK(after.at("eval_loss") != before.at("eval_loss"));
  const Outcome table = forge.call({"compare"});
  INFO(text_of(table));
  CHECK(contains(table.out, "model.blocks.gated_attention.source is"));
  const Outcome why = forge.call({"why", before.at("id"), after.at("id")});
  CHECK(contains(why.out, "model.blocks.gated_attention.source"));
  const Outcome diff = forge.call({"diff", before.at("id"), "train_gated"});
  CHECK(contains(diff.out, "mixed = mixed * torch.sigmoid(self.gate_proj(x))"));
  CHECK(contains(diff.out, "mixed = mixed * torch.tanh(self.gate_proj(x))"));
  const Outcome shown = forge.call({"block", "show", before.at("id")});
  CHECK(starts_with(shown.out, old.substr(0, old.size() - 1)));
  // A run computes the text that it was begun with.
  const Outcome said = forge.call({"generate",
                                   before.at("id"),
                                   "--prompt",
                                   "Once",
                                   "--seed",
                                   "1",
                                   "--max-tokens",
                                   "5",
                                   "--json"});
  INFO(text_of(said));
  CHECK(said.exit_code == 0);
}

TEST_CASE("mistakes of a block are named before anything is trained", "[own_blocks]") {
  if (!has_python_torch()) return;
  const Project project;
  const fs::path file = project.folder() / "blocks/gated_attention.py";
  std::string source = read_file(file);
  const std::string end = "return self.o_proj(mixed)";
  source.replace(source.find(end), end.size(), "return self.o_proj(mixed[:, :, 1:])");
  write_file_atomic(file, source);
  for (const char* command : {"check", "model", "run"}) {
    INFO(command);
    const Outcome outcome = project.forge.call({command, "train_gated"});
    const std::string text = text_of(outcome);
    INFO(text);
    CHECK(outcome.exit_code == (std::string(command) == "check" ? 1 : 2));
    CHECK(contains(text, "block 'gated_attention' fails in forward for an input of [1, "));
    CHECK(contains(text, "blocks/gated_attention.py\", line "));
    CHECK(contains(text, "return self.o_proj(mixed[:, :, 1:])"));
  }
  CHECK(folder_entries(project.forge.runs_dir()).empty());
  const Outcome libtorch = project.forge.call({"run", "train_gated", "--backend", "libtorch"});
  CHECK(libtorch.exit_code == 2);
  CHECK(contains(text_of(libtorch), "backend libtorch cannot compute 'gated_attention'"));
  // Looking at configs runs no code.
  CHECK(project.forge.call({"show", "train_gated"}).exit_code == 0);
}

TEST_CASE("where Python has no torch, a block says what is missing", "[own_blocks]") {
  const Project project;
  const fs::path root = tests_dir().parent_path();
  write_file_atomic(project.forge.folder() / "torch.py",
                    "raise ModuleNotFoundError(\"No module named 'torch'\")\n");
  fs::create_directories(project.folder() / "backends/pytorch");
  write_file_atomic(
      project.folder() / "backends/pytorch/backend.yaml",
      "command: [/usr/bin/python3, -B, " + (root / "backends/pytorch/worker.py").string() +
          "]\nenvironment: [PYTHONPATH=" + project.forge.folder().path().string() + "]\n");
  const Outcome outcome = project.forge.call({"model", "train_gated"});
  INFO(text_of(outcome));
  CHECK(outcome.exit_code != 0);
  CHECK(contains(outcome.err, "a block in Python needs torch"));
  CHECK(contains(outcome.err, "apt install python3-torch"));
}

TEST_CASE("the code of a block that came with a run does not run unasked",
          "[own_blocks][hostile]") {
  if (!has_python_torch()) return;
  const Project project;
  const Program& forge = project.forge;
  const fs::path mark = forge.folder() / "ran";
  const fs::path file = project.folder() / "blocks/gated_attention.py";
  write_file_atomic(file,
                    "open(" + json(mark.string()).dump() + ", 'a').write('x')\n" + read_file(file));
  const std::string id = project.run("train_gated").at("id");
  const fs::path pack = forge.folder() / "run.tar.gz";
  REQUIRE(forge.call({"pack", id, "-o", pack.string()}).exit_code == 0);
  fs::rename(forge.runs_dir() / id, forge.folder() / "away");
  fs::remove_all(mark);
  // Somebody else: what this user has allowed lies in the cache.
  Program other;
  other.working_directory = forge.working_directory;
  other.environment["FORGE_CACHE_DIR"] = (other.folder() / "cache").string();
  const Outcome imported = other.call({"import", pack.string()});
  INFO(text_of(imported));
  REQUIRE(imported.exit_code == 0);
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"runs"},
                                             {"block", "show", id},
                                             {"diff", id, id},
                                             {"compare"},
                                             {"generate", id, "--prompt", "Once"}})
    other.call(words);
  CHECK_FALSE(path_exists(mark));
  const Outcome refused = other.call({"generate", id, "--prompt", "Once", "--max-tokens", "1"});
  CHECK(refused.exit_code == 2);
  INFO(text_of(refused));
  CHECK(contains(text_of(refused), "which would run the Python code of gated_attention"));
  const Outcome allowed =
      other.call({"generate", id, "--prompt", "Once", "--max-tokens", "1", "--allow-command"});
  INFO(text_of(allowed));
  CHECK(allowed.exit_code == 0);
  CHECK(path_exists(mark));
}

TEST_CASE("a new block, its config, table and test pass at once", "[own_blocks]") {
  if (!has_python_torch()) return;
  const Project project;
  const Program& forge = project.forge;
  for (const char* place : {"mixer", "mlp", "canon"}) {
    const std::string name = std::string("my_") + place;
    const Outcome made = forge.call({"block", "new", name, "--place", place});
    INFO(text_of(made));
    REQUIRE(made.exit_code == 0);
    const Outcome checked = forge.call({"check", "train_" + name});
    INFO(text_of(checked));
    CHECK(checked.exit_code == 0);
    CHECK(forge.call({"block", "new", name}).exit_code == 2);  // nothing is written over
    const fs::path test = project.folder() / "tests" / ("test_" + name + ".py");
    CHECK(std::system(("/usr/bin/python3 -B '" + test.string() + "' > /dev/null 2>&1").c_str()) ==
          0);
    CHECK(project.run("train_" + name).at("status") == "completed");
    const Outcome table = forge.call({"compare", "--table", name});
    INFO(text_of(table));
    CHECK(table.exit_code == 0);
    CHECK_FALSE(contains(table.out, "not the config's"));  // the run is that of the config
    CHECK(contains(forge.call({"model", "train_" + name}).out, name));
  }
  CHECK(contains(text_of(forge.call({"block", "new", "attention"})), "is taken"));
  CHECK(contains(text_of(forge.call({"block", "new", "../x"})), "cannot name a block"));
}

}  // namespace
}  // namespace forge::tests

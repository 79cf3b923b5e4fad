// What a user does wrong: exit code 2 (1 where the machine refuses), a message with the reason and
// what would be right, and nothing started.
#include <SQLiteCpp/SQLiteCpp.h>

#include "tests/end_to_end/program.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

struct Mistake {
  std::vector<std::string> arguments;
  std::vector<std::string> said;  ///< parts of the message
};

void check(const Program& forge, const Mistake& mistake, int exit_code = 2) {
  const Outcome outcome = forge.call(mistake.arguments);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == exit_code);
  for (const std::string& part : mistake.said) {
    INFO("expected: " << part);
    REQUIRE(outcome.err.find(part) != std::string::npos);
  }
  REQUIRE(outcome.out.empty());
  REQUIRE(forge.only_run().empty());
}

TEST_CASE("wrong names and settings are refused with the place and what would be right") {
  const Program forge;
  const std::vector<Mistake> mistakes = {
      {{"rnu"}, {"did you mean 'run'"}},
      {{"run"}, {"--all"}},
      {{"run", "train_cannon_ac"}, {"train_cannon_ac", "did you mean", "train_canon_ac"}},
      {{"run", "4M"}, {"nothing to train"}},
      {{"run", "canon/models:canon_ac"}, {"nothing to train"}},
      {{"run", "train_llama", "--set", "train.batch_sze=4"},
       {"train.batch_sze", "did you mean 'train.batch_size'"}},
      {{"run", "train_llama", "--set", "train.batch_size=0"}, {"train.batch_size", "0"}},
      {{"run", "train_llama", "--set", "train.batch_size=many"}, {"train.batch_size", "many"}},
      {{"run", "train_llama", "--set", "train.batch_size"}, {"="}},
      {{"run", "train_llama", "--set", "model.canon.set=AX"}, {"model.canon.set", "AX"}},
      {{"run", "train_llama", "--set", "model.num_heads=3"}, {"256", "3"}},
      {{"run", "train_llama", "--set", "profile=huge"}, {"huge", "quick"}},
      {{"run", "train_llama", "--set", "data.path=/nowhere/stories.txt"}, {"/nowhere/stories.txt"}},
      {{"run", "train_llama", "--set", "backend=jax"}, {"jax", "libtorch"}},
      {{"run", "train_llama", "--set", "train.precision=float16"}, {"train.precision", "bfloat16"}},
      {{"run", "train_llama", "--device", "cuda:7"}, {"cuda:7", "cpu"}},
      {{"run", "train_llama", "-p", "canno"}, {"canno"}},
      {{"compare", "--table", "position"}, {"positions"}},
  };
  for (const Mistake& mistake : mistakes) check(forge, mistake);
}

TEST_CASE("a name that two projects have lists the candidates") {
  const Program forge;
  for (const char* project : {"one", "two"}) {
    const std::string folder = std::string("space/") + project;
    forge.folder().write(folder + "/meta.yaml", "name: " + std::string(project) + "\n");
    forge.folder().write(folder + "/templates/configs/same.yaml", "name: same\n");
  }
  forge.folder().write("space/forge_workspace/workspace.yaml", "default_project: one\n");
  Program inside;
  inside.working_directory = forge.folder() / "space";
  check(inside, {{"run", "same"}, {"'same'", "one", "two"}});
}

TEST_CASE("a text too short for the sequence length is refused with the figures") {
  const Program forge;
  std::string text;
  for (int i = 0; i < 200; ++i)
    text += "Fox " + std::to_string(i) + " saw " + std::to_string(i * 7) + " hens.\n";
  const std::string file = forge.folder().write("short.txt", text).string();
  std::vector<std::string> arguments = tiny({"run", "train_llama", "--set", "data.path=" + file});
  arguments.insert(arguments.end(), {"--set", "train.seq_len=100000"});
  check(forge, {arguments, {"short.txt", "100,000", "train.seq_len"}});
}

TEST_CASE("a runs folder that cannot be written is refused before anything starts") {
  Program forge;
  forge.folder().write("file", "in the way");
  forge.environment["FORGE_RUNS_DIR"] = (forge.folder() / "file" / "runs").string();
  check(forge, {tiny({"run", "train_llama"}), {"file/runs", "FORGE_RUNS_DIR"}}, 1);
}

TEST_CASE("a database of a newer forge is left alone") {
  const Program forge;
  std::filesystem::create_directories(forge.runs_dir());
  {
    SQLite::Database database((forge.runs_dir() / "forge.sqlite").string(),
                              SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    database.exec("PRAGMA user_version = 9999");
  }
  const Outcome outcome = forge.call(tiny({"run", "train_llama"}));
  INFO(outcome.err);
  REQUIRE(outcome.exit_code != 0);
  REQUIRE(outcome.err.find("newer") != std::string::npos);
  REQUIRE(forge.only_run().empty());
}

}  // namespace
}  // namespace forge::tests

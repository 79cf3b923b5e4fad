#include <fstream>

#include "core/base/fs.h"
#include "tests/end_to_end/program.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

using nlohmann::json;

/// First words of the completions' lines.
std::vector<std::string> completions(const Program& forge, std::vector<std::string> words) {
  words.insert(words.begin(), {"__complete", "--"});
  std::vector<std::string> found;
  std::istringstream lines(forge.call(words).out);
  for (std::string line; std::getline(lines, line);)
    found.push_back(line.substr(0, line.find('\t')));
  return found;
}

TEST_CASE("the shell is offered commands and options and configs and keys and tables") {
  const Program forge;
  REQUIRE(completions(forge, {"export-m"}) == std::vector<std::string>{"export-markdown"});
  REQUIRE(completions(forge, {"-p", "canon", "show", "train_llama_"}) ==
          std::vector<std::string>{"train_llama_nope"});
  REQUIRE(completions(forge, {"run", "train_llama", "train_canon_b", "--set", "model.canon.s"}) ==
          std::vector<std::string>{"model.canon.set="});
  REQUIRE(completions(forge, {"compare", "-p", "canon", "--table", "positiona"}) ==
          std::vector<std::string>{"positional"});
  REQUIRE(completions(forge, {"compare", "--format", "m"}) == std::vector<std::string>{"markdown"});
  REQUIRE(completions(forge, {"run", "--fo"}) == std::vector<std::string>{"--force"});
  REQUIRE(completions(forge, {"no_such_command", ""}).size() > 5);
}

TEST_CASE("completing in a folder that is no project offers something and never fails") {
  Program forge;
  forge.folder().write("forge_workspace/workspace.yaml", "bad: [\n");
  forge.working_directory = forge.folder().path();
  const Outcome outcome = forge.call({"__complete", "--", "show", ""});
  REQUIRE(outcome.exit_code == 0);
  REQUIRE(outcome.out.empty());
}

TEST_CASE("bash completes through forge's script") {
  Program forge;
  const std::string script =
      "PATH=" + forge.binary.parent_path().string() +
      ":$PATH; source <(forge completion bash); "
      "COMP_WORDS=(forge -p canon show train_canon_b); COMP_CWORD=4; _forge; "
      "echo \"${COMPREPLY[@]}\"";
  forge.binary = "/bin/bash";
  REQUIRE(forge.call({"-c", script}).out == "train_canon_b train_canon_bd\n");
}

TEST_CASE("the manual page names every command with its options") {
  const Program forge;
  const std::string page = forge.call({"man"}).out;
  REQUIRE(page.find(".TH FORGE 1") == 0);
  for (const std::string& command : completions(forge, {""})) {
    INFO(command);
    std::string name = command;
    for (size_t at = name.find('-'); at != std::string::npos; at = name.find('-', at + 2))
      name.insert(at, "\\");
    REQUIRE(page.find(".SS forge " + name) != std::string::npos);
  }
  REQUIRE(page.find("\\fB\\-\\-set\\fR") != std::string::npos);
}

TEST_CASE("a workspace of one's own is made and its first project shows and resolves") {
  Program forge;
  forge.working_directory = forge.folder().path();
  REQUIRE(forge.call({"init", "lab"}).exit_code == 0);
  forge.working_directory = forge.folder() / "lab";
  const Outcome created = forge.call({"project", "create", "First Idea", "--json"});
  INFO(created.err);
  REQUIRE(created.exit_code == 0);
  forge.working_directory = json::parse(created.out).at("project").get<std::string>();
  REQUIRE(forge.call({"project", "new-config", "train_more"}).exit_code == 0);
  const json listing = json::parse(forge.call({"ls", "--json"}).out);
  REQUIRE(listing[0].at("name") == "First Idea");
  REQUIRE(listing[0].at("configs").size() == 4);
  const json shown = json::parse(forge.call({"show", "train_var", "--json"}).out);
  REQUIRE(shown.at("model").at("canon").at("set") == "AC");
  const Outcome again = forge.call({"init", ".."});
  REQUIRE(again.exit_code == 2);
  REQUIRE(again.err.find("is a workspace already") != std::string::npos);
}

TEST_CASE("what a config's templates declare as options is not lost to the command's own") {
  const Program forge;
  const Outcome outcome = forge.call({"pp", "train_llama", "--no-such-argument", "3"});
  REQUIRE(outcome.exit_code == 2);
  REQUIRE(outcome.err.find("no-such-argument") != std::string::npos);
}

TEST_CASE("the time that templates see can be given") {
  Program forge;
  forge.folder().write("forge_workspace/workspace.yaml", "");
  forge.folder().write("p/meta.yaml", "");
  forge.folder().write("p/templates/configs/a.yaml", "time: \"{{ utcisotime() }}\"\n");
  forge.working_directory = forge.folder() / "p";
  REQUIRE(forge.call({"pp", "a", "--now", "2026-01-31T12:00:00"}).out ==
          "time: \"2026-01-31T12:00:00\"\n");
  forge.environment["SOURCE_DATE_EPOCH"] = "0";
  REQUIRE(forge.call({"pp"}).out == "time: \"1970-01-01T00:00:00\"\n");
}

}  // namespace
}  // namespace forge::tests

// The commands that look at a tree of templates, on one as Forgather's users write it.

#include <algorithm>
#include <fstream>
#include <sstream>

#include <SQLiteCpp/SQLiteCpp.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "core/base/files.h"
#include "core/base/text.h"
#include "tests/end_to_end/program.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

using nlohmann::json;

/// A workspace with a library and two projects, one of which has a config that cannot be rendered.
class Tree {
 public:
  Tree() {
    write("forgather_workspace/meta_defaults.yaml",
          "searchdir:\n"
          "  - \"{{ joinpath(project_dir, 'templates') }}\"\n"
          "  - \"{{ joinpath(workspace_root, 'library') }}\"\n"
          "-- block configs\nconfig_prefix: configs\n-- endblock\n");
    write("library/trainer.yaml",
          "-- set ns = namespace()\n"
          "-- filter trim\n"
          "-- block setup\n"
          "    -- set ns.name = 'Anonymous'\n"
          "-- endblock setup\n"
          "-- endfilter\n"
          "[main_part]\n"
          ".define: &model !singleton:models:Llama@model {hidden: {{ width | default(64) }}}\n"
          "main: !call:trainer:Trainer@trainer\n"
          "    model: *model\n"
          "    lr: 1.0e-3\n"
          "dynamic_args: !dlist\n"
          "    width: {names: --width, type: int, help: \"hidden size\"}\n"
          "meta: !dict:@meta\n"
          "    config_name: \"{{ ns.name }}\"\n"
          "    config_description: \"By {{ ns.name }}\"\n");
    write("fine/meta.yaml",
          "-- extends 'meta_defaults.yaml'\n[configs]\nname: Fine\ndefault_config: first\n");
    write("fine/templates/configs/first.yaml", config("First", ""));
    write("fine/templates/configs/second.yaml", config("Second", "lr: 2.0e-3\n"));
    write("broken/meta.yaml", "-- extends 'meta_defaults.yaml'\n[configs]\nname: Broken\n");
    write("broken/templates/configs/bad.yaml", "main: {{ nothing }}\n");
    write("broken/templates/configs/good.yaml", config("Good", ""));
    forge.working_directory = forge.folder() / "tree" / "fine" / "templates" / "configs";
  }

  static std::string config(const std::string& name, const std::string& arguments) {
    return "-- extends 'trainer.yaml'\n[setup]\n    == super()\n"
           "    -- set ns.name = '" +
           name + "'\n[main_part]\n    == super()\n" +
           (arguments.empty() ? ""
                              : "other: {" + arguments.substr(0, arguments.size() - 1) + "}\n");
  }
  void write(const std::string& path, const std::string& text) const {
    forge.folder().write("tree/" + path, text);
  }
  std::string text(const std::vector<std::string>& arguments) const {
    const Outcome outcome = forge.call(arguments);
    INFO(arguments[0] << ": " << outcome.err);
    CHECK(outcome.exit_code == 0);
    return outcome.out;
  }
  json values(std::vector<std::string> arguments) const {
    arguments.push_back("--json");
    return json::parse(text(arguments));
  }

  Program forge;
};

TEST_CASE("a template steers no terminal, and a pipe gets its bytes", "[hostile]") {
  Tree tree;
  const std::string steering = "# \033[31m\033]0;x\007red";
  tree.write("fine/templates/configs/second.yaml", Tree::config("Second", "") + steering + "\n");
  CHECK(contains(tree.text({"pp", "second"}), steering));
  const std::string program = tree.forge.binary.string();
  tree.forge.binary = "/usr/bin/script";
  if (!path_exists(tree.forge.binary)) return;
  for (const char* more : {"", " --annotate"}) {
    const std::string shown = tree.text({"-qec", program + " pp second" + more, "/dev/null"});
    INFO(shown);
    CHECK(contains(shown, "red"));
    CHECK_FALSE(contains(shown, "\033"));
  }
}

TEST_CASE("a tree is listed from within and a broken config keeps its reason to itself") {
  const Tree tree;
  REQUIRE(contains(tree.text({"ls"}), "[first]"));
  REQUIRE(tree.values({"ls"}).size() == 1);
  const Outcome all = tree.forge.call({"ls", "-r", "-p", "../../.."});
  INFO(all.out << all.err);
  REQUIRE(all.exit_code == 2);
  REQUIRE(contains(all.out, "Second"));
  REQUIRE(contains(all.out, "Good"));
  REQUIRE(contains(all.out + all.err, "'nothing' is undefined"));
  REQUIRE(contains(all.out + all.err, "bad.yaml:1"));
}

TEST_CASE("what is printed into a file replaces none and follows no link", "[hostile]") {
  const Tree tree;
  const std::filesystem::path folder = tree.forge.folder().path();
  const auto mine = folder / "mine", link = folder / "link", dangling = folder / "dangling";
  write_file_atomic(mine, "my thesis");
  std::filesystem::create_symlink(mine, link);
  std::filesystem::create_symlink(folder / "none", dangling);
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"pp", "first"}, {"index"}, {"targets", "first"}, {"tlist"}}) {
    CAPTURE(command.front());
    for (const auto& file : {mine, link, dangling}) {
      std::vector<std::string> words = command;
      words.insert(words.end(), {"-o", file.string()});
      const Outcome refused = tree.forge.call(words);
      CHECK(refused.exit_code == 2);
      CHECK(contains(refused.err, "--force"));
    }
    CHECK(read_file(mine) == "my thesis");
    CHECK_FALSE(std::filesystem::exists(folder / "none"));
  }
  REQUIRE(tree.text({"pp", "first", "-o", mine.string(), "--force"}) ==
          "Wrote output to " + mine.string() + "\n");
  CHECK(read_file(mine) == tree.text({"pp", "first"}));
}

TEST_CASE("a config is rendered by name and by beginning and with its arguments") {
  const Tree tree;
  const std::string rendered = tree.text({"pp", "first"});
  REQUIRE(contains(rendered, "Llama@model {hidden: 64}"));
  REQUIRE(tree.text({"pp"}) == rendered);
  REQUIRE(tree.text({"pp", "first.yaml"}) == rendered);
  REQUIRE(tree.text({"-t", "f", "pp"}) == rendered);
  REQUIRE(contains(tree.text({"pp", "first", "--width", "96"}), "{hidden: 96}"));
  const json lines = tree.values({"pp", "first"}).at("lines");
  REQUIRE(contains(rendered, lines.at(0).at("text").get<std::string>() + "\n"));
  REQUIRE(contains(lines.at(0).at("origins").at(0).at("file"), "library/trainer.yaml"));
  const std::string annotated = tree.text({"pp", "first", "--annotate"});
  REQUIRE(contains(annotated, "trainer.yaml:"));
}

TEST_CASE("every command that looks at templates answers in words and in JSON") {
  const Tree tree;
  REQUIRE(tree.text({"targets", "first"}) == "main\ndynamic_args\nmeta\n");
  REQUIRE(contains(tree.text({"trefs", "first"}), "library/trainer.yaml"));
  REQUIRE(contains(tree.text({"trefs", "first", "--format", "dot"}), "digraph"));
  REQUIRE(contains(tree.text({"tlist"}), "library/trainer.yaml"));
  REQUIRE(contains(tree.text({"meta"}), "searchdir"));
  REQUIRE(contains(tree.text({"index"}), "**second**"));
  REQUIRE(contains(tree.text({"graph", "first"}), "!singleton:models:Llama@model"));
  REQUIRE(contains(tree.text({"arguments", "first"}), "--width INT"));
  REQUIRE(contains(tree.text({"explain", "main.lr", "first"}), "library/trainer.yaml:11:9"));
  REQUIRE(contains(tree.text({"check"}), "no problems"));
  const Outcome difference = tree.forge.call({"diff", "first", "second", "--json"});
  REQUIRE(difference.exit_code == 1);  // as diff's own
  REQUIRE(contains(json::parse(difference.out).dump(), "0.002"));
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"targets"},
                                             {"trefs"},
                                             {"tlist"},
                                             {"meta"},
                                             {"index"},
                                             {"graph"},
                                             {"arguments"},
                                             {"explain", "main"},
                                             {"check"}}) {
    INFO(command[0]);
    REQUIRE_FALSE(tree.values(command).empty());
  }
}

TEST_CASE("what is misspelt gets a near miss and the exit code of wrong usage") {
  const Tree tree;
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"pp", "secnd"}, {"targets", "secnd"}, {"graph", "secnd"}, {"diff", "first", "secnd"}}) {
    const Outcome outcome = tree.forge.call(command);
    INFO(command[0]);
    REQUIRE(outcome.exit_code == 2);
    REQUIRE(contains(outcome.err, "did you mean 'second'"));
  }
  const Outcome show = tree.forge.call({"show", "first"});
  REQUIRE(show.exit_code == 2);
  REQUIRE(contains(show.err, "is a graph of Python objects"));
}

}  // namespace
}  // namespace forge::tests

// forge model, and options of the architecture on their way from a config to the worker.

namespace forge::tests {
namespace {

using nlohmann::json;

json summary(const Program& forge, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "model");
  arguments.push_back("--json");
  const Outcome outcome = forge.call(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return json::parse(outcome.out);
}

TEST_CASE("forge model counts a model that trains and one that does not") {
  const Program forge;
  const json trained = summary(
      forge, {"train_canon_ac", "--set", "profile=full", "--set", "train.precision=float32"});
  const json model = summary(forge, {"canon_ac"});
  REQUIRE(trained.at("parameters").at("total") == 4'442'368);
  REQUIRE(trained.at("parameters") == model.at("parameters"));
  REQUIRE(trained.at("batch_size") == 32);
  const json longer = summary(forge, {"train_canon_ac", "--batch-size", "64", "--seq-len", "256"});
  REQUIRE(longer.at("bytes").at("activations") == trained.at("bytes").at("activations"));
  const Outcome table = forge.call({"model", "train_canon_ac", "--set", "model.canon.set="});
  REQUIRE(table.exit_code == 0);
  REQUIRE(table.out.find("  total      4,434,176  100.0 %") != std::string::npos);
  REQUIRE(table.out.find("  canon_a ") == std::string::npos);
}

TEST_CASE("forge model refuses sizes and options that make no sense") {
  const Program forge;
  const auto error = [&](const std::vector<std::string>& arguments) {
    const Outcome outcome = forge.call(arguments);
    REQUIRE(outcome.exit_code == 2);
    REQUIRE(outcome.out.empty());
    return outcome.err;
  };
  REQUIRE(error({"model", "4M", "--batch-size", "0"}).find("--batch-size") != std::string::npos);
  REQUIRE(error({"model", "4M", "--set", "model.canon.kernel=3"})
              .find("has no meaning where model.canon.set is empty") != std::string::npos);
  REQUIRE(error({"model", "nope_4M", "--set", "model.attention.position.rope_dim=8"})
              .find("has no meaning where model.attention.position.kind is nope") !=
          std::string::npos);
}

double last_loss(const Program& forge, const std::vector<std::string>& overrides) {
  std::vector<std::string> arguments = tiny({"run", "train_canon_ac"}, 4);
  for (const std::string& each : overrides) arguments.insert(arguments.end(), {"--set", each});
  arguments.push_back("--json");
  const Outcome outcome = forge.call(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return json::parse(outcome.out).at(0).at("eval_loss").get<double>();
}

TEST_CASE("a document mask reaches the worker and changes what is learned") {
  const Program whole, divided;
  // Rows long enough for a story to end in them.
  const double loss = last_loss(whole, {"train.seq_len=512"});
  REQUIRE(loss > 0);
  const double masked = last_loss(divided, {"train.seq_len=512", "train.document_mask=true"});
  REQUIRE(masked > 0);
  REQUIRE(masked != loss);
}

TEST_CASE("every option of the architecture trains") {
  const Program forge;
  REQUIRE(last_loss(forge,
                    {"model.attention.num_kv_heads=1",
                     "model.attention.position.rope_dim=4",
                     "model.attention.position.pairing=lingua",
                     "model.attention.qk_norm=full",
                     "model.canon.set=ABCD",
                     "model.canon.kernel=3",
                     "model.canon.activation=silu",
                     "model.norm.rounding=lingua",
                     "model.tie_embeddings=true",
                     "model.init=lingua",
                     "model.init_std_factor=current_depth",
                     "train.z_loss.kind=lingua_code",
                     "train.document_mask=true",
                     "schedule.type=wsd"}) > 0);
}

}  // namespace
}  // namespace forge::tests

// What a user does wrong: exit code 2 (1 where the machine refuses), a message with the reason and
// what would be right, and nothing started.

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
      {{"run", "train_llama", "--set", "model.attention.num_heads=3"}, {"256", "3"}},
      {{"run", "train_llama", "--set", "profile=huge"}, {"huge", "quick"}},
      {{"run", "train_llama", "--set", "data.path=/nowhere/stories.txt"}, {"/nowhere/stories.txt"}},
      {{"run", "train_llama", "train.max_steps=5"},
       {"no config 'train.max_steps=5'", "--set train.max_steps=5"}},
      {{"run", "train_llama", "--max_steps", "5"},
       {"takes no argument '--max_steps'", "--set train.max_steps=5"}},
      {{"run", "train_llama", "--set", "optimizer.lr=1e-3,3e-3"},
       {"must be a number", "'--sweep optimizer.lr=1e-3,3e-3'"}},
      {{"run", "train_llama", "--backend", "torch"}, {"did you mean 'pytorch' or 'libtorch'?"}},
      {{"run", "train_llama", "--set", "backend=jax"}, {"jax", "libtorch"}},
      {{"run", "train_llama", "--set", "train.precision=float16"}, {"train.precision", "bfloat16"}},
      {{"run", "train_llama", "--device", "cuda:7"}, {"cuda:7", "cpu"}},
      {{"run", "train_llama", "-p", "canno"}, {"canno"}},
      {{"compare", "--table", "position"}, {"positions"}},
      {{"compare", "--profile", "ful", "-p", "canon"},
       {"the profile 'ful'", "did you mean 'full'?"}},
      {{"run", "--sweep", "optimizer.lr=010,1", "train_llama"}, {"'010' is 8 in YAML"}},
      {{"run", "--all", "--table", "positions"}, {"--table positions and --all each select"}},
      {{"import", "nope"}, {"there is no"}},
      {{"pack", "nope"}, {"no run 'nope'"}},
      {{"report", "--json", "-o", "-"}, {"both print to standard output"}},
  };
  for (const Mistake& mistake : mistakes) check(forge, mistake);
}

TEST_CASE("a wrong command line is refused in plain words") {
  const Program forge;
  const std::vector<Mistake> mistakes = {
      {{"run", "train_llama", "--seeds", "0"}, {"error: --seeds must be at least 1, not 0\n"}},
      {{"run", "train_llama", "--seeds", "few"}, {"--seeds must be a whole number, not 'few'"}},
      {{"run", "train_llama", "--jobs", "99999999999"},
       {"--jobs is too large for a whole number: 99999999999"}},
      {{"run", "train_llama", "--threads", "-1"}, {"--threads must be from 1 to 1024, not -1"}},
      {{"run", "train_llama", "--threads", "0"}, {"--threads must be from 1 to 1024, not 0"}},
      {{"compare", "--json", "--format", "csv"},
       {"--json and --format csv cannot be used together"}},
      {{"why", "a"}, {"RIGHT is required"}},
      {{"help", "nosuch"}, {"no command 'nosuch'"}},
      {{"run", "train_llama", "--seeds", "010"}, {"--seeds must be without a leading zero"}},
      {{"run", "train_llama", "--seeds"}, {"--seeds needs a value"}},
      {{"run", "-p", "canon", "train_llama", "--seed", "1,2", "--seeds", "3", "--dry-run"},
       {"--seed names 2 seeds, and --seeds asks for 3"}},
      {{"run", "train_llama", "--plan", "none.json"}, {"--plan names a file that does not exist"}},
      {{"bench", "train_llama", "--windows", "1001"}, {"--windows must be from 1 to 1000"}},
      {{"backend-test", "bigram", "--timeout", "soon"}, {"--timeout must be a number, not 'soon'"}},
      {{"compare", "--format", "xml"}, {"--format must be one of text, markdown, csv, json"}},
      {{"export", "--frmat", "csv"}, {"unknown option '--frmat'", "did you mean '--format'"}},
      {{"runs", "logs", "a", "--events", "--stderr"},
       {"--stderr and --events cannot be used together"}},
      {{"runs", "--json", "show", "a"}, {"'runs show' takes no --json before 'show'"}},
      {{"runs", "show"}, {"RUN is required", "'forge runs show --help'"}},
      {{"runs", "-n", "0"}, {"--limit must be at least 1, not 0"}},
      {{"run", "train_llama", "--jobs", "0"}, {"--jobs must be at least 1, not 0"}},
      {{"train"}, {"no command 'train'", "did you mean 'run'?"}},
      {{"undo"}, {"no command 'undo'", "did you mean 'runs undo'?"}},
      {{"create"}, {"did you mean 'ws create' or 'project create'?"}},
      {{"run", "train_llama", "--steps", "5"},
       {"takes no argument '--steps'\nhint: a key of the config is set with --set "
        "train.max_steps=5"}},
      {{"logs", "--help"}, {"no command 'logs'", "did you mean 'runs logs'?"}},
      {{"compare", "positions"}, {"unexpected argument 'positions'", "--table positions"}},
      {{"doctor", "now"}, {"unexpected argument 'now'"}},
      {{"data"}, {"'forge data' needs a command", "one of get, prepare"}},
      {{"rnu", "--help"}, {"no command 'rnu'", "did you mean 'run'"}},
      {{"data", "shwo", "--help"}, {"no command 'shwo'", "did you mean 'show'"}},
  };
  for (const Mistake& mistake : mistakes) check(forge, mistake);
}

TEST_CASE("an option that may be repeated takes one value each time") {
  const Program forge;
  const auto config_of = [&](const std::vector<std::string>& words) {
    const Outcome outcome = forge.call(words);
    INFO(join(words, " ") << "\n" << outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return json::parse(outcome.out);
  };
  const json shown = config_of({"show",
                                "--set",
                                "train.max_steps=4",
                                "--set",
                                "optimizer.betas=[0.5,0.75]",
                                "train_llama",
                                "--json"});
  REQUIRE(contains(shown.dump(), "[0.5,0.75]"));
  REQUIRE(config_of({"runs", "--where", "seed=1", "train_llama", "--json"}).empty());
  REQUIRE(
      config_of({"runs", "--columns", "id", "--sort", "seed", "train_llama", "--json"}).empty());
  const json plan = config_of({"run",
                               "--sweep",
                               "optimizer.lr=1e-3,2e-3",
                               "train_llama",
                               "train_canon_ac",
                               "--threads",
                               "1",
                               "--dry-run",
                               "--json"});
  REQUIRE(plan.size() == 4);
}

TEST_CASE("a resolved config says whose it is") {
  const Program forge;
  const std::string shown = forge.call({"show", "-p", "canon", "train_llama"}).out;
  REQUIRE(starts_with(shown, "# config train_llama of the project projects/canon\n"));
}

TEST_CASE("the projects that came with forge are found from a workspace of one's own") {
  Program forge;
  forge.environment["FORGE_RUNS_DIR"] = "";
  REQUIRE(forge.call({"init", (forge.folder() / "space").string()}).exit_code == 0);
  forge.folder().write("space/deep/file", "");
  forge.working_directory = forge.folder() / "space/deep";
  const std::string canon = (tests_dir().parent_path() / "projects/canon").string();
  check(forge, {{"ls", "-p", "canon"}, {"no project 'canon'", "-p " + canon}});
  check(forge, {{"show", "train_canon_ac"}, {"no config 'train_canon_ac'", "-p " + canon}});
  REQUIRE(contains(forge.call({"ls", "-p", canon}).out, "train_canon_ac"));
  // Its runs are the user's, and lie in his workspace.
  const Outcome trained = forge.call(tiny({"run", "-p", canon, "train_canon_ac", "--json"}, 2));
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  REQUIRE_FALSE(contains(trained.err, "not in a workspace"));
  const std::string id = json::parse(trained.out)[0].at("id");
  REQUIRE(std::filesystem::exists(forge.folder() / "space/runs" / id / "DONE"));
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

TEST_CASE("a database that is no results store is left alone") {
  const Program forge;
  const std::string path = (forge.runs_dir() / "forge.sqlite").string();
  std::filesystem::create_directories(forge.runs_dir());
  SQLite::Database(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
      .exec("CREATE TABLE letters (body TEXT)");
  const Outcome outcome = forge.call(tiny({"run", "train_llama"}));
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 1);
  REQUIRE(outcome.err.find("no results store") != std::string::npos);
  REQUIRE(forge.only_run().empty());
  REQUIRE(SQLite::Database(path).tableExists("letters"));
}

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

TEST_CASE("a name that bash completes is one word for bash, whatever somebody named it") {
  Program forge;
  forge.folder().write("forge_workspace/workspace.yaml", "");
  for (const char* name : {"a$(touch ran)", "c d", "e'f;\"!"})
    forge.folder().write(std::string(name) + "/meta.yaml", "name: One\n");
  forge.working_directory = forge.folder().path();
  const std::string folder = forge.binary.parent_path().string();
  forge.binary = "/bin/bash";
  const auto reply = [&](const std::string& typed) {
    return forge
        .call(
            {"-c",
             "PATH=" + folder + ":$PATH; source <(forge completion bash); " +
                 "COMP_WORDS=(forge ls -p \"$1\"); COMP_CWORD=3; _forge; echo \"${COMPREPLY[@]}\"",
             "bash",
             typed})
        .out;
  };
  CHECK(reply("a") == "a\\$\\(touch\\ ran\\)\n");
  CHECK(reply("a\\$\\(t") == "a\\$\\(touch\\ ran\\)\n");
  CHECK(reply("'a") == "a$(touch ran)\n");
  CHECK(reply("\"a\\$") == "a\\$(touch ran)\n");
  CHECK(reply("c") == "c\\ d\n");
  CHECK(reply("\"c ") == "c d\n");
  CHECK(reply("e") == "e\\'f\\;\\\"\\!\n");
  CHECK(reply("'e") == "e'\\''f;\"!\n");
  CHECK(reply("\"e") == "e'f;\\\"\"\\!\"\n");
}

TEST_CASE("every help has a usage line and shows no types or ranges of the parser") {
  const Program forge;
  std::vector<std::vector<std::string>> commands = {{}};
  std::istringstream page(forge.call({"man"}).out);
  for (std::string line; std::getline(page, line);) {
    line.erase(std::remove(line.begin(), line.end(), '\\'), line.end());
    if (starts_with(line, ".SS forge ")) commands.push_back(split(line.substr(10), ' '));
  }
  REQUIRE(commands.size() > 60);
  for (std::vector<std::string>& words : commands) {
    const std::string path = join(words, " ");
    words.emplace_back("--help");
    const Outcome outcome = forge.call(words);
    INFO(path << "\n" << outcome.out << outcome.err);
    REQUIRE(outcome.exit_code == 0);
    CHECK(outcome.out.find("Usage: forge" + (path.empty() ? "" : " " + path)) == 0);
    CHECK(contains(outcome.out, "-h, --help"));
    for (const char* word : {"UINT", "INT in", "TEXT:", "POSITIVE", ":{", "FLOAT", "ENUM"})
      CHECK_FALSE(contains(outcome.out, word));
  }
}

TEST_CASE("forge help is forge --help, also of a command") {
  const Program forge;
  CHECK(forge.call({"help"}).out == forge.call({"--help"}).out);
  CHECK(forge.call({"help", "run"}).out == forge.call({"run", "--help"}).out);
  CHECK(forge.call({"help", "data", "get"}).out == forge.call({"data", "get", "--help"}).out);
  CHECK(contains(forge.call({"help", "why"}).out, "Usage: forge why [OPTIONS] <LEFT> <RIGHT>\n"));
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
  const Outcome nowhere = forge.call({"project", "new-config", "train_more"});
  REQUIRE(nowhere.exit_code == 2);
  REQUIRE(nowhere.err.find("which came with forge") != std::string::npos);
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

/// Counts how often each YAML file below a folder is opened.
class OpenedFiles {
 public:
  explicit OpenedFiles(const std::filesystem::path& folder)
      : inotify_(::inotify_init1(IN_NONBLOCK)) {
    watch(folder);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.is_directory()) watch(entry.path());
    }
  }
  /// Since the last call, by path.
  std::map<std::string, int> take() {
    std::map<std::string, int> counts;
    alignas(inotify_event) char bytes[65536];
    for (ssize_t size; (size = ::read(inotify_.get(), bytes, sizeof bytes)) > 0;) {
      for (const char* at = bytes; at < bytes + size;) {
        const auto* event = reinterpret_cast<const inotify_event*>(at);
        REQUIRE((event->mask & IN_Q_OVERFLOW) == 0);
        const std::string name = event->len > 0 ? event->name : "";
        if (ends_with(name, ".yaml")) ++counts[(folders_.at(event->wd) / name).string()];
        at += sizeof(inotify_event) + event->len;
      }
    }
    return counts;
  }

 private:
  void watch(const std::filesystem::path& folder) {
    const int watched = ::inotify_add_watch(inotify_.get(), folder.c_str(), IN_OPEN);
    REQUIRE(watched >= 0);
    folders_[watched] = folder;
  }

  FileDescriptor inotify_;
  std::map<int, std::filesystem::path> folders_;
};

TEST_CASE("a command reads each template once") {
  Program forge;
  forge.working_directory = make_tiny_workspace(forge.folder()) / "projects" / "canon";
  OpenedFiles opened(forge.working_directory.parent_path().parent_path() / "projects");
  const std::vector<std::vector<std::string>> commands = {
      {"show", "train_llama"},
      {"model", "train_canon_ac"},
      {"explain", "train.max_steps", "train_llama"},
      {"diff", "train_llama", "train_canon_ac"},
      {"check"},
      {"index"},
      {"data", "prepare", "train_llama"},
      {"run", "--dry-run", "train_llama", "train_canon_ac", "--seeds", "2"},
      {"run", "--dry-run", "--all", "--sweep", "optimizer.lr=1e-3,2e-3"},
      {"compare", "--table", "positions"}};
  for (const std::vector<std::string>& command : commands) {
    INFO(join(command, " "));
    const Outcome outcome = forge.call(command);
    INFO(outcome.err);
    CHECK(outcome.exit_code < 2);
    const std::map<std::string, int> counts = opened.take();
    CHECK(!counts.empty());
    for (const auto& [file, count] : counts) {
      INFO(file);
      if (file.find("/tables/") == std::string::npos) CHECK(count == 1);
    }
  }
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

TEST_CASE("a small stack ends in words and so do templates that call themselves without end") {
  Program forge;
  forge.working_directory = make_tiny_workspace(forge.folder()) / "projects" / "canon";
  write_file_atomic(forge.working_directory / "templates" / "configs" / "endless.yaml",
                    "-- extends 'configs/train_llama.yaml'\n[overrides]\n"
                    "-- macro f(n)\n{{ f(n + 1) | upper }}\n-- endmacro\nname: {{ f(0) }}\n");
  const std::string program = forge.binary.string();
  forge.binary = "/bin/sh";
  const auto show = [&](int kibibytes) {
    return forge.call(
        {"-c", "ulimit -s " + std::to_string(kibibytes) + "; exec '" + program + "' show endless"});
  };
  const Outcome refused = show(1024);
  CHECK(refused.exit_code == 1);
  CHECK(contains(refused.err, "forge needs 2097152 bytes of stack"));
  const Outcome endless = show(2048);
  CHECK(endless.exit_code == 2);
  CHECK(contains(endless.err, "call each other too deeply"));
}

}  // namespace
}  // namespace forge::tests

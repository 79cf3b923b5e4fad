#include <fstream>
#include <map>
#include <set>

#include "core/base/files.h"
#include "core/base/text.h"
#include "core/run/runs_dir.h"
#include "tests/end_to_end/program.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

using nlohmann::json;

TEST_CASE("three configs are trained and compared and exported") {
  Program forge;
  forge.working_directory = make_tiny_workspace(forge.folder());
  const Outcome trained = forge.call(
      {"run", "train_llama", "train_canon_ac", "train_baseline", "--threads", "1", "--json"});
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  const json results = json::parse(trained.out);
  REQUIRE(results.size() == 3);
  for (const json& result : results) {
    REQUIRE(result.at("status") == "completed");
    REQUIRE(result.at("profile") == "quick");
    REQUIRE(result.at("step") == 12);
    REQUIRE(result.at("eval_loss").get<double>() < 6.5);
    REQUIRE(result.at("peak_memory_bytes").get<int64_t>() > 0);
  }
  // Canon at A and at C adds 4 taps to each of 16 channels.
  REQUIRE(results[1].at("parameters").get<int>() - results[0].at("parameters").get<int>() ==
          2 * 16 * 4);

  const std::string id = results[0].at("id");
  const json shown = json::parse(forge.call({"runs", "show", id, "--json"}).out);
  REQUIRE(shown.at("id") == id);
  REQUIRE(shown.at("scores").empty());
  const json& last = shown.at("evaluations").back();
  REQUIRE(last.at("step") == 12);
  REQUIRE(last.at("loss") == shown.at("eval_loss"));
  // On a CPU a run is deterministic without being asked.
  REQUIRE(shown.at("config").at("train").at("deterministic") == true);
  const std::string text = forge.call({"runs", "show", id.substr(0, id.size() - 4)}).out;
  REQUIRE(contains(text, "eval loss"));
  REQUIRE(contains(text, "float32, deterministic"));
  REQUIRE(forge.call({"runs", "show", "no_such_run"}).exit_code == 2);

  const Outcome table = forge.call({"compare", "--table", "positions"});
  REQUIRE(table.exit_code == 0);
  for (const char* part : {"Model",
                           "Positions",
                           "Eval Loss",
                           "Tok/s",
                           "Memory",
                           "Overhead vs Llama",
                           "Llama 4M",
                           "Canon-AC",
                           "Canon-ABCD",
                           "missing"}) {
    INFO(part << "\n" << table.out);
    REQUIRE(contains(table.out, part));
  }
  const json positional =
      json::parse(forge.call({"compare", "--table", "positional", "--json"}).out);
  REQUIRE(positional.at("rows").size() == 5);
  const Outcome published = forge.call({"compare", "--table", "positions", "--published"});
  REQUIRE(contains(published.out, "1.3011"));

  const std::string file = (forge.folder() / "RESULTS.md").string();
  REQUIRE(forge.call({"export-markdown", "-o", file}).exit_code == 0);
  const std::string exported = read_file(file);
  REQUIRE(contains(exported, "| Llama 4M"));
  REQUIRE(forge.call({"export-markdown", "-o", "-"}).out == exported);

  REQUIRE(forge.call({"export-markdown", "-o", file}).exit_code == 0);  // its own

  const std::string latex = forge.call({"export", "--format", "latex"}).out;
  REQUIRE(contains(latex, "\\label{tab:positions}"));
  REQUIRE(contains(latex, "Llama 4M & "));
  const std::string metrics = (forge.folder() / "metrics.csv").string();
  for (int time = 0; time < 2; ++time) {
    REQUIRE(forge.call({"export", "--format", "metrics-csv", "-o", metrics}).exit_code == 0);
    REQUIRE(forge.call({"export", "--format", "metrics-csv"}).out == read_file(metrics));
  }
  REQUIRE(contains(read_file(metrics), id + ",train_llama,"));
  REQUIRE(contains(read_file(metrics), ",eval_loss,"));
  const std::string folder = (forge.folder() / "tensorboard").string();
  const json written =
      json::parse(forge.call({"export", "--format", "tensorboard", "-o", folder, "--json"}).out);
  REQUIRE(written.at("runs") == 3);
  REQUIRE(written.at("files").size() == 3);
  REQUIRE(fs::file_size(written.at("files")[0].get<std::string>()) > 100);

  const std::string page = (forge.folder() / "report.html").string();
  const Outcome report = forge.call({"report", "-o", page, "--json"});
  if (contains(report.err, "built without uPlot")) return;
  REQUIRE(report.exit_code == 0);
  const json report_written = json::parse(report.out);
  REQUIRE(report_written.at("file") == page);
  REQUIRE(report_written.at("runs") >= 2);
  REQUIRE(report_written.at("bytes") == read_file(page).size());
  REQUIRE(forge.call({"report", "-o", "-"}).out == read_file(page));
  REQUIRE(forge.call({"export", "--format", "html"}).out == read_file(page));
}

TEST_CASE("a finished run is not repeated unless forced and then gives the same loss") {
  const Program forge;
  const json first = json::parse(forge.call(tiny({"run", "train_canon_b", "--json"})).out);
  const Outcome again = forge.call(tiny({"run", "train_canon_b", "--json"}));
  REQUIRE(contains(again.err, "already completed"));
  REQUIRE(json::parse(again.out) == first);
  const json forced =
      json::parse(forge.call(tiny({"run", "train_canon_b", "--force", "--json"})).out);
  REQUIRE(forced[0].at("id") == first[0].at("id").get<std::string>() + "-2");
  REQUIRE(forced[0].at("eval_loss") == first[0].at("eval_loss"));
  REQUIRE(forced[0].at("train_loss") == first[0].at("train_loss"));
}

TEST_CASE("seeds and sweeps make a run of every combination and are planned without running") {
  Program forge;
  forge.working_directory = make_tiny_workspace(forge.folder());
  const std::vector<std::string> command = {"run",
                                            "train_llam?",
                                            "--threads",
                                            "1",
                                            "--seeds",
                                            "2",
                                            "--sweep",
                                            "optimizer.lr=1e-3,2e-3",
                                            "--set",
                                            "train.max_steps=2",
                                            "--json"};
  const auto plan = [&] {
    std::vector<std::string> words = command;
    words.push_back("--dry-run");
    const Outcome outcome = forge.call(words);
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return json::parse(outcome.out);
  };
  for (const json& run : plan()) {
    REQUIRE(run.at("action") == "new");
    REQUIRE(run.at("seconds").is_null());
  }
  const Outcome ran = forge.call(command);
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  const json results = json::parse(ran.out);
  fs::remove(forge.runs_dir() / "forge.sqlite");
  const json planned = plan();
  REQUIRE_FALSE(fs::exists(forge.runs_dir() / "forge.sqlite"));  // a dry run writes nothing
  REQUIRE(results.size() == 4);
  REQUIRE(planned.size() == 4);
  for (size_t i = 0; i < 4; ++i) {
    REQUIRE(results[i].at("seed") == (i < 2 ? 42 : 43));
    REQUIRE(results[i].at("id") == planned[i].at("run"));
    REQUIRE(planned[i].at("action") == "cached");
  }
  REQUIRE(contains(forge.call(command).err, "already completed"));

  const Outcome why = forge.call({"why", results[0].at("id"), results[2].at("id"), "--json"});
  REQUIRE(why.exit_code == 1);
  const json differences = json::parse(why.out).at("differences");
  REQUIRE(differences.size() == 1);
  REQUIRE(differences[0].at("what") == "seed");
  REQUIRE(forge.call({"why", results[0].at("id"), results[0].at("id")}).exit_code == 0);
  REQUIRE(forge.call({"diff", results[0].at("id"), results[0].at("id")}).exit_code == 0);
}

TEST_CASE("a key is not both set and swept") {
  const Program forge;
  const Outcome both = forge.call({"run",
                                   "train_llama",
                                   "--dry-run",
                                   "--set",
                                   "optimizer.lr=3",
                                   "--sweep",
                                   "optimizer.lr=1e-3,2e-3"});
  CHECK(both.exit_code == 2);
  CHECK(contains(both.err, "--set optimizer.lr=3 and the sweep of 'optimizer.lr'"));
}

TEST_CASE("a table file plans the seeds of its runs, and each run keeps the plan") {
  Program forge;
  forge.working_directory = make_tiny_workspace(forge.folder());
  const fs::path project = forge.working_directory / "projects/canon";
  const fs::path table = project / "tables/planned.yaml";
  std::ofstream(table) << "title: Planned\nbaseline: train_llama\nseeds: 3\n"
                          "rows: [{config: train_llama, name: Llama}]\n"
                          "columns: [{kind: model, title: Model}, {kind: eval_loss, title: Loss}]\n"
                          "must_be_equal: [profile]\n"
                          "claims: [{config: train_llama, at_most: 9, profile: quick}]\n";
  std::vector<std::string> command = {
      "run", "-p", "canon", "--table", "planned", "--set", "train.max_steps=2", "--json"};
  const Outcome ran = forge.call(command);
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  const json runs = json::parse(ran.out);
  REQUIRE(runs.size() == 3);
  for (const json& run : runs) {
    const fs::path folder = forge.runs_dir() / run.at("id").get<std::string>();
    const json record = json::parse(read_file(folder / "run.json"));
    REQUIRE(record.at("planned_seeds") == json{42, 43, 44});
    REQUIRE(!record.at("planned_claims").empty());
    REQUIRE(record.at("planned_tables").at("planned").get<std::string>().size() == 12);
  }
  const Outcome compared = forge.call({"compare", "-p", "canon", "--table", "planned"});
  INFO(compared.out);
  REQUIRE(contains(compared.out, "as planned"));
  command.insert(command.end(), {"--seeds", "1", "--dry-run"});
  REQUIRE(json::parse(forge.call(command).out).size() == 1);
}

TEST_CASE("a run of a profile that is gone ends no table") {
  Program forge;
  forge.working_directory = make_tiny_workspace(forge.folder());
  const fs::path file = forge.working_directory / "projects/canon/templates/project.yaml";
  const std::string before = read_file(file), place = "[profiles]\n== super()\n";
  std::string with_profile = before;
  REQUIRE(before.find(place) != std::string::npos);
  with_profile.insert(before.find(place) + place.size(), "  gone: {train: {max_steps: 3}}\n");
  write_file_atomic(file, with_profile);
  const Outcome ran = forge.call({"run", "-p", "canon", "train_llama", "--set", "profile=gone"});
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  write_file_atomic(file, before);
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"compare", "-p", "canon"},
        {"compare", "-p", "canon", "--profile", "quick"},
        {"export", "-p", "canon", "--format", "json"}}) {
    const Outcome table = forge.call(command);
    INFO(table.err);
    CHECK(table.exit_code == 0);
  }
}

TEST_CASE("seeds of a table's plan may be run in several commands") {
  Program forge;
  forge.working_directory = make_tiny_workspace(forge.folder());
  const fs::path project = forge.working_directory / "projects/canon";
  std::ofstream(project / "tables/planned.yaml")
      << "title: Planned\nbaseline: train_llama\nseeds: 3\n"
         "rows: [{config: train_llama, name: Llama}]\n"
         "columns: [{kind: model, title: Model}, {kind: eval_loss, title: Loss}]\n"
         "must_be_equal: [profile]\n";
  const auto run_part = [&](const std::string& table_or_config, const std::string& seeds) {
    std::vector<std::string> command = {
        "run", "-p", "canon", "--seed", seeds, "--set", "train.max_steps=2"};
    if (table_or_config == "planned") command.emplace_back("--table");
    command.push_back(table_or_config);
    const Outcome ran = forge.call(command);
    INFO(ran.err);
    REQUIRE(ran.exit_code == 0);
  };
  const auto table_after = [&](const std::string& seeds) {
    run_part("planned", seeds);
    return forge.call({"compare", "-p", "canon", "--table", "planned"}).out;
  };
  const auto begin_anew = [&] { fs::remove_all(forge.runs_dir()); };
  CHECK(contains(table_after("11,12"), "interim"));
  CHECK(contains(table_after("13"), "as planned"));
  CHECK(contains(table_after("20"), "reopened"));
  // A part of one seed is as good, whichever it is.
  begin_anew();
  table_after("42");
  CHECK(contains(table_after("43,44"), "as planned"));
  begin_anew();
  table_after("43");
  CHECK(contains(table_after("42"), "interim: 3 seeds planned"));
  CHECK(contains(table_after("44"), "as planned"));
  // What was planned first stays planned.
  begin_anew();
  run_part("train_llama", "42,43");
  CHECK(contains(table_after("44"), "reopened: 2 seeds planned"));
}

TEST_CASE("a table tunes its rows on seeds of their own before it makes the rows' runs") {
  Program forge;
  forge.working_directory = make_tiny_workspace(forge.folder());
  const fs::path tables = forge.working_directory / "projects/canon/tables";
  std::ofstream(tables / "tuned.yaml")
      << "title: Tuned\nbaseline: train_llama\nseeds: 2\n"
         "rows: [{config: train_llama, name: Llama}]\n"
         "columns: [{kind: model, title: Model}, {kind: eval_loss, title: Loss}]\n"
         "must_be_equal: [profile]\n"
         "best_of: {key: optimizer.lr, values: [1e-3, 2e-3], by: validation_loss, take: lowest,\n"
         "          validation_rows: 4, tuning_seeds: [901], extend: true}\n";
  const std::vector<std::string> command = {
      "run", "-p", "canon", "--table", "tuned", "--set", "train.max_steps=2", "--json"};
  std::vector<std::string> dry = command;
  dry.emplace_back("--dry-run");
  const Outcome planned = forge.call(dry);
  INFO(planned.err);
  REQUIRE(json::parse(planned.out).size() == 2);
  REQUIRE(contains(planned.err, "and then the runs of the rows, with the value that is the best"));
  const Outcome ran = forge.call(command);
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  REQUIRE(contains(ran.err, "chosen by validation_loss, optimizer.lr: train_llama "));
  std::map<int, std::set<double>> rates;  // by seed
  for (const json& run : json::parse(ran.out)) {
    const fs::path folder = forge.runs_dir() / run.at("id").get<std::string>();
    const json config = json::parse(read_file(folder / "config.json"));
    rates[run.at("seed").get<int>()].insert(config.at("optimizer").at("lr").get<double>());
  }
  REQUIRE(rates.size() == 3);
  REQUIRE(rates[901].size() > 2);  // two steps always learn more at a higher rate
  REQUIRE(rates[42].size() == 1);
  REQUIRE(rates[42] == rates[43]);
  const Outcome compared = forge.call({"compare", "-p", "canon", "--table", "tuned", "--json"});
  const json row = json::parse(compared.out).at("rows").at(0);
  REQUIRE(row.at("best_of").at("value") == *rates[42].begin());
  REQUIRE(row.at("runs").size() == 2);
  REQUIRE(row.at("planned_seeds") == 2);
  // Nothing is left to do, and a row cannot show a seed that it was tuned with.
  REQUIRE(json::parse(forge.call(dry).out).size() == 2);
  std::vector<std::string> same_seed = command;
  same_seed.insert(same_seed.end(), {"--seed", "901"});
  REQUIRE(contains(forge.call(same_seed).err, "seed 901 is a tuning seed of table 'tuned'"));
}

TEST_CASE("the first run of a seed chooses the value of a tuned row, as its table shows it") {
  Program forge;
  forge.working_directory = make_tiny_workspace(forge.folder());
  std::ofstream(forge.working_directory / "projects/canon/tables/chosen.yaml")
      << "title: Chosen\nbaseline: train_llama\nseeds: 2\n"
         "rows: [{config: train_llama, name: Llama}]\n"
         "columns: [{kind: model, title: Model}, {kind: eval_loss, title: Loss}]\n"
         "must_be_equal: [profile]\n"
         "best_of: {key: optimizer.lr, values: [1e-3, 2e-3], by: eval_loss, take: lowest,\n"
         "          tuning_seeds: [901]}\n";
  for (const char* force : {"", "--force"}) {
    std::vector<std::string> tuning = {"run", "-p", "canon", "train_llama", "--seed", "901"};
    for (const char* word :
         {"--sweep", "optimizer.lr=1e-3,2e-3", "--set", "train.max_steps=2", force})
      if (*word) tuning.emplace_back(word);
    REQUIRE(forge.call(tuning).exit_code == 0);
  }
  // The repetitions say that the other value is the better one.
  for (const run::RunFolder& folder : run::list_runs(forge.runs_dir())) {
    const bool is_repetition = folder.id().substr(folder.id().size() - 2) == "-2";
    const json config = json::parse(read_file(folder.config_file()));
    if (!is_repetition || config.at("optimizer").at("lr") != 2e-3) continue;
    std::istringstream lines(read_file(folder.events_file()));
    std::string changed;
    for (std::string line; std::getline(lines, line);) {
      json event = json::parse(line);
      const std::string name = event.at("event");
      const char* const loss = name == "evaluation" ? "loss" : "eval_loss";
      if (event.contains(loss)) event[loss] = event[loss].get<double>() + 1;
      if (name == "evaluation") event["row_losses"] = event["row_tokens"] = json::array();
      changed += event.dump() + "\n";
    }
    write_file_atomic(folder.events_file(), changed);
  }
  const Outcome ran = forge.call(
      {"run", "-p", "canon", "--table", "chosen", "--set", "train.max_steps=2", "--json"});
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  CHECK(contains(ran.err, "chosen by eval_loss, optimizer.lr: train_llama 0.002"));
  const json row =
      json::parse(forge.call({"compare", "-p", "canon", "--table", "chosen", "--json"}).out)
          .at("rows")
          .at(0);
  CHECK(row.at("best_of").at("value") == 2e-3);
  CHECK(row.at("runs").size() == 2);
}

TEST_CASE("the name of a config without a run does not mean a run of another config") {
  Program forge;
  REQUIRE(forge.call(tiny({"run", "train_llama_nope"}, 2)).exit_code == 0);
  const std::string id = forge.only_run().filename().string();
  const std::vector<std::string> weights = {"--set", "train.initial_weights=train_llama"};
  std::vector<std::string> begins = tiny({"run", "train_llama_nope", "--seed", "7"}, 2);
  begins.insert(begins.end(), weights.begin(), weights.end());
  for (const auto& command : {std::vector<std::string>{"eval", "train_llama"},
                              std::vector<std::string>{"runs", "show", "train_llama"},
                              std::vector<std::string>{"runs", "rm", "train_llama"},
                              begins}) {
    const Outcome refused = forge.call(command);
    INFO(refused.err);
    CHECK(refused.exit_code != 0);
    CHECK(
        contains(refused.err, "config 'train_llama' has no run here, and '" + id + "' is one of"));
  }
  // The beginning of an id that no config has is one.
  CHECK(forge.call({"runs", "show", "train_llama_n"}).exit_code == 0);
  begins.back() = "train.initial_weights=" + id;
  CHECK(contains(forge.call(begins).err, ", from the weights of " + id + "\n"));
}

TEST_CASE("the name of a config does not mean a run of another project's config of that name") {
  Program forge;
  const fs::path workspace = make_tiny_workspace(forge.folder());
  const fs::path own = workspace / "projects/other";
  fs::copy(workspace / "projects/canon", own, fs::copy_options::recursive);
  forge.working_directory = workspace / "projects/canon";
  REQUIRE(forge.call(tiny({"run", "train_llama"}, 2)).exit_code == 0);
  const std::string id = forge.only_run().filename().string();
  const auto begin_from = [&](const std::string& config, const std::string& seed) {
    std::vector<std::string> command = tiny({"run", config, "--seed", seed}, 2);
    command.insert(command.end(), {"--set", "train.initial_weights=train_llama"});
    return forge.call(command);
  };
  REQUIRE(begin_from("train_llama", "7").exit_code == 0);
  REQUIRE(forge.call({"runs", "rm", "--where", "seed=7"}).exit_code == 0);
  const std::string refusal = "config 'train_llama' has no run here, and '" + id +
                              "' is one of project '" + (workspace / "projects/canon").string() +
                              "'";
  // In the other project, and from the root for the other project's config.
  forge.working_directory = own;
  for (const auto& command : {std::vector<std::string>{"eval", "train_llama"},
                              std::vector<std::string>{"runs", "show", "train_llama"},
                              std::vector<std::string>{"runs", "rm", "train_llama"}}) {
    const Outcome refused = forge.call(command);
    INFO(refused.err);
    CHECK(refused.exit_code != 0);
    CHECK(contains(refused.err, refusal));
  }
  CHECK(contains(begin_from("train_llama", "7").err, refusal));
  forge.working_directory = workspace;
  CHECK(contains(begin_from("projects/other:train_llama", "7").err, refusal));
  CHECK(begin_from("projects/canon:train_llama", "7").exit_code == 0);
  // There both projects have that config, and one of them the run.
  REQUIRE(forge.call({"runs", "rm", "--where", "seed=7"}).exit_code == 0);
  CHECK(forge.call({"runs", "show", "train_llama"}).exit_code == 0);
  CHECK(forge.call({"runs", "show", id}).exit_code == 0);
}

TEST_CASE("a project and conditions choose runs together") {
  Program forge;
  const fs::path workspace = make_tiny_workspace(forge.folder()),
                 canon = workspace / "projects/canon", other = workspace / "projects/other";
  fs::copy(canon, other, fs::copy_options::recursive);
  std::map<fs::path, std::string> ids;
  for (const fs::path& project : {canon, other}) {
    forge.working_directory = project;
    const Outcome made = forge.call(tiny({"run", "train_llama", "--json"}, 2));
    REQUIRE(made.exit_code == 0);
    ids[project] = json::parse(made.out).at(0).at("id");
  }
  const std::vector<std::string> where = {"--where", "config=train_llama"};
  const auto call = [&](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return forge.call(words);
  };
  const auto exported = [&](const std::vector<std::string>& more) {
    const Outcome csv = call({"export", "--format", "metrics-csv", "-o", "-"}, more);
    INFO(csv.err);
    return std::string(contains(csv.out, ids[canon] + ",") ? "canon " : "") +
           (contains(csv.out, ids[other] + ",") ? "other " : "");
  };
  CHECK(exported(where) == "other ");  // where it was called
  CHECK(exported({"train_llama*"}) == "canon other ");
  CHECK(exported({"train_llama*", "-p", canon.string()}) == "canon ");
  CHECK(exported({"--where", "config=train_llama", "--profile", "full"}).empty());
  REQUIRE(forge.call({"runs", "archive", ids[other]}).exit_code == 0);
  CHECK(exported(where).empty());
  CHECK(exported({ids[other]}) == "other ");
  CHECK(exported({(forge.runs_dir() / ids[other]).string()}) == "other ");
  CHECK(exported({ids[other], "-p", canon.string()}) == "other ");
  CHECK(exported({ids[other], ids[other].substr(0, ids[other].size() - 1)}) == "other ");
  CHECK(contains(call({"export", "--format", "metrics-csv", "-o", "-"},
                      {ids[canon], ids[other], "--where", "id=" + ids[canon]})
                     .err,
                 "run " + ids[other] + " is left out"));
  CHECK(exported({"--archived", "--where", "config=train_llama"}) == "other ");

  // A link to a project is that project.
  fs::create_directory_symlink(canon, workspace / "link");
  const Outcome known =
      forge.call(tiny({"run", "train_llama", "-p", (workspace / "link").string()}, 2));
  CHECK(contains(known.err, "already completed"));
  CHECK(forge.call({"-p", "canon", "runs", "stop", "--all"}).exit_code == 2);
  const Outcome no_project = call({"-p", (workspace / "projects").string(), "runs", "rm"}, where);
  CHECK(no_project.exit_code == 2);
  CHECK(contains(no_project.err, "no project in or above the folder"));
  const auto listed = [&](const fs::path& folder) {
    const Outcome runs = forge.call({"-p", folder.string(), "runs", "--archived", "--json"});
    INFO(runs.err);
    return json::parse(runs.out).size();
  };
  CHECK(listed(workspace) == 2);
  CHECK(listed(canon) == 1);
  // A workspace that is one project, over the same runs folder.
  const fs::path single = forge.folder() / "single";
  fs::copy(canon, single, fs::copy_options::recursive);
  for (const char* part : {"forge_workspace", "templates"})
    fs::copy(workspace / part, single / part, fs::copy_options::recursive);
  fs::remove_all(single / "forge_workspace/.local");
  write_file_atomic(single / "forge_workspace/workspace.yaml", "");
  CHECK(listed(single) == 0);
  forge.working_directory = single;
  const Outcome made_there = forge.call(tiny({"run", "train_llama"}, 2));
  INFO(made_there.err);
  REQUIRE(made_there.exit_code == 0);
  CHECK(listed(single) == 1);
  CHECK(listed(workspace) == 2);
  REQUIRE(call({"-p", single.string(), "runs", "rm"}, where).exit_code == 0);
  CHECK(listed(single) == 0);
  CHECK(listed(workspace) == 2);
  forge.working_directory = other;
  // A project on another disk is one of the workspace that it is linked in.
  fs::rename(other, forge.folder() / "elsewhere");
  fs::create_directory_symlink(forge.folder() / "elsewhere", other);
  CHECK(listed(other) == 1);
  fs::remove(other);
  fs::rename(forge.folder() / "elsewhere", other);
  REQUIRE(call({"-p", "canon", "runs", "rm"}, where).exit_code == 0);
  const json left = json::parse(forge.call({"runs", "--archived", "--json"}).out);
  REQUIRE(left.size() == 1);
  CHECK(left.at(0).at("id") == ids[other]);
}

TEST_CASE("a run that cannot be resumed does not keep the others from it") {
  Program forge;
  std::vector<std::string> command = tiny({"run", "train_llama"}, 1'000'000);
  command.insert(command.end(), {"--seeds", "2", "--jobs", "1", "--detach"});
  REQUIRE(forge.call(command).exit_code == 0);
  REQUIRE(wait_until([&] {
    return json::parse(forge.call({"status", "--json"}).out).at("running").size() == 1;
  }));
  REQUIRE(forge.call({"runs", "stop", "--all", "--now"}).exit_code == 0);
  REQUIRE(wait_until([&] {
    const json status = json::parse(forge.call({"status", "--json"}).out);
    return status.at("running").empty() && status.at("waiting").empty();
  }));
  const json runs = json::parse(forge.call({"runs", "--json"}).out);
  REQUIRE(runs.size() == 2);
  const std::string broken = runs.at(0).at("id");
  write_file_atomic(forge.runs_dir() / broken / "request.json", "{");
  const Outcome resumed = forge.call({"runs", "resume", "train_llama*", "--detach"});
  INFO(resumed.err);
  CHECK(resumed.exit_code == 1);
  CHECK(contains(resumed.err, "error: " + broken + " cannot be run: "));
  CHECK(contains(resumed.out + resumed.err, runs.at(1).at("id").get<std::string>()));
  const json status = json::parse(forge.call({"status", "--json"}).out);
  CHECK(status.at("running").size() + status.at("waiting").size() == 1);
  CHECK(forge.call({"runs", "resume", broken}).exit_code == 1);
}

TEST_CASE("a run whose folder cannot be written is refused once, and nothing is tried again") {
  Program forge;
  const std::vector<std::string> command = tiny({"run", "train_llama"}, 2);
  REQUIRE(forge.call(command).exit_code == 0);
  const fs::path run = forge.only_run();
  fs::remove(run / "run.json");
  const Outcome lost = forge.call(command);
  INFO(lost.err);
  CHECK(lost.exit_code == 1);
  CHECK(contains(lost.err, "has no run.json"));
  CHECK(fs::exists(run / "events.jsonl"));
}

TEST_CASE("what cannot be read of a completed run does not keep other runs from beginning") {
  Program forge;
  REQUIRE(forge.call(tiny({"run", "train_llama"}, 2)).exit_code == 0);
  write_file_atomic(forge.only_run() / "remarks.json", "{");
  std::vector<std::string> command = tiny({"run", "train_llama"}, 2);
  command.insert(command.end(), {"--seeds", "2"});
  const Outcome ran = forge.call(command);
  INFO(ran.err);
  CHECK(ran.exit_code == 0);
  CHECK(contains(ran.err, "; whether it is archived cannot be read: "));
  CHECK(json::parse(forge.call({"runs", "--json"}).out).size() == 2);
}

TEST_CASE("what a config and a table lose to a misspelt word is said where runs are planned") {
  Program forge;
  forge.working_directory = make_tiny_workspace(forge.folder());
  const fs::path project = forge.working_directory / "projects/canon";
  std::ofstream(project / "templates/configs/typo.yaml")
      << "-- extends 'configs/train_llama.yaml'\n[override]\noptimizer.lr: 0.1\n";
  std::ofstream(project / "tables/broken.yaml") << "titel: Broken\nbaseline: train_llama\n";
  const Outcome planned =
      forge.call({"run", "-p", "canon", "typo", "train_llama", "--dry-run", "--json"});
  INFO(planned.err);
  REQUIRE(planned.exit_code == 0);
  CHECK(contains(planned.err, "typo.yaml:2:1: warning: the block 'override' overrides nothing"));
  CHECK(contains(planned.err, "warning: the runs are planned without this table: "));
  CHECK(contains(planned.err, "broken.yaml"));
  // A variant of a variant that drops what the first one sets.
  std::ofstream(project / "templates/configs/higher.yaml")
      << "-- extends 'configs/train_llama.yaml'\n[overrides]\n== super()\noptimizer.lr: 0.1\n";
  std::ofstream(project / "templates/configs/decayed.yaml")
      << "-- extends 'configs/higher.yaml'\n[overrides]\noptimizer.weight_decay: 0.05\n";
  const Outcome dropped = forge.call({"run", "-p", "canon", "decayed", "--dry-run"});
  INFO(dropped.err);
  CHECK(contains(dropped.err, "decayed.yaml:2:1: warning: "));
  CHECK(contains(dropped.err, "optimizer.lr"));
}

TEST_CASE("a table whose grid grows without tuning seeds ends with the grid") {
  Program forge;
  forge.working_directory = make_tiny_workspace(forge.folder());
  std::ofstream(forge.working_directory / "projects/canon/tables/grown.yaml")
      << "title: Grown\nbaseline: train_llama\n"
         "rows: [{config: train_llama, name: Llama}]\n"
         "columns: [{kind: model, title: Model}, {kind: eval_loss, title: Loss}]\n"
         "must_be_equal: [profile]\n"
         "best_of: {key: optimizer.lr, values: [1e-3, 2e-3], by: eval_loss, take: lowest,\n"
         "          extend: true}\n";
  size_t made = 0;  // until now
  for (const char* force : {"", "", "--force"}) {
    std::vector<std::string> command = {
        "run", "-p", "canon", "--table", "grown", "--set", "train.max_steps=2", "--json"};
    if (*force) command.emplace_back(force);
    const Outcome ran = forge.call(command);
    INFO(force << ran.err);
    REQUIRE(ran.exit_code == 0);
    std::set<std::string> ids;
    const json runs = json::parse(ran.out);
    for (const json& run : runs) ids.insert(run.at("id"));
    CHECK(ids.size() > 2);  // two steps always learn more at a higher rate
    CHECK(ids.size() == runs.size());
    // Each run once, also where all are repeated.
    const size_t all = run::list_runs(forge.runs_dir()).size();
    CHECK(all == (*force ? 2 * made : ids.size()));
    made = all;
  }
}

TEST_CASE("a value that diverges is tried and no best, and its runs are made once") {
  Program forge;
  forge.working_directory = make_tiny_workspace(forge.folder());
  const fs::path tables = forge.working_directory / "projects/canon/tables";
  const std::string table =
      "title: Rates\nbaseline: train_llama\nseeds: 2\n"
      "rows: [{config: train_llama, name: Llama}, {config: train_baseline, name: Canon}]\n"
      "columns: [{kind: model, title: Model}, {kind: eval_loss, title: Loss}]\n"
      "must_be_equal: [profile, train]\nparameters_within: null\nflops_within: null\n"
      "best_of: {key: optimizer.lr, values: [1e-3, 1e30], by: eval_loss, take: lowest";
  std::ofstream(tables / "rates.yaml") << table << "}\n";
  std::ofstream(tables / "tuned.yaml") << table << ", tuning_seeds: [901]}\n";
  const auto run = [&](const std::string& name) {
    const Outcome outcome =
        forge.call({"run", "-p", "canon", "--table", name, "--set", "train.max_steps=6", "--json"});
    INFO(outcome.err);
    std::set<std::string> states;
    for (const json& made : json::parse(outcome.out)) states.insert(made.at("status"));
    return std::make_tuple(outcome.exit_code, states, outcome.err);
  };
  const auto require_compared = [&](const std::string& name, size_t seeds) {
    const Outcome compared = forge.call({"compare", "-p", "canon", "--table", name, "--json"});
    INFO(compared.out);
    for (const json& row : json::parse(compared.out).at("rows")) {
      CHECK(row.at("breaks").empty());
      CHECK(row.at("runs").size() == 2);
      CHECK(row.at("best_of").at("value") == 1e-3);
      const json& diverged = row.at("best_of").at("points").at(1);
      CHECK(diverged.at("status") == "diverged");
      CHECK(diverged.at("diverged_seeds") == seeds);
    }
    const std::string text = forge.call({"compare", "-p", "canon", "--table", name}).out;
    CHECK(contains(text, "diverged with optimizer.lr 1e+30 (" + std::to_string(seeds) + " of "));
    CHECK_FALSE(contains(text, "cannot be compared"));
  };
  const std::set<std::string> completed = {"completed"}, both = {"completed", "failed"};
  CHECK(std::get<0>(run("rates")) == 1);
  require_compared("rates", 2);
  const auto [again, states, said] = run("rates");
  CHECK(again == 0);
  CHECK(states == completed);
  CHECK(contains(said, "diverged before, and not run again (--force repeats them)"));
  // The runs of the rows are made although some that they are tuned with diverge.
  const auto [tuned, all_states, told] = run("tuned");
  INFO(told);
  CHECK(tuned == 1);
  CHECK(all_states == both);
  require_compared("tuned", 1);
  CHECK(std::get<0>(run("tuned")) == 0);
}

TEST_CASE("a table with a budget trains each row as long as it allows") {
  Program forge;
  forge.working_directory = make_tiny_workspace(forge.folder());
  const fs::path tables = forge.working_directory / "projects/canon/tables";
  const std::string table =
      "title: Budget\nbaseline: train_llama\n"
      "rows: [{config: train_llama, name: Llama}, {config: train_baseline, name: Canon}]\n"
      "columns: [{kind: model, title: Model}, {kind: eval_loss, title: Loss}]\n"
      "must_be_equal: [profile, train]\nparameters_within: null\nflops_within: null\n";
  std::ofstream(tables / "flops.yaml") << table << "budget: {equal: flops}\n";
  std::ofstream(tables / "time.yaml") << table << "budget: {equal: time}\n";
  const Outcome ran = forge.call(
      {"run", "-p", "canon", "--table", "flops", "--set", "train.max_steps=200", "--json"});
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  const json runs = json::parse(ran.out);
  REQUIRE(runs.at(0).at("max_steps") == 200);
  REQUIRE(runs.at(1).at("max_steps") < 200);
  const json compared =
      json::parse(forge.call({"compare", "-p", "canon", "--table", "flops", "--json"}).out);
  REQUIRE(compared.at("rows").at(1).at("breaks").empty());
  REQUIRE(compared.at("rows").at(1).at("run_id") == runs.at(1).at("id"));
  const Outcome unknown = forge.call({"run", "-p", "canon", "--table", "time", "--dry-run"});
  REQUIRE(unknown.exit_code != 0);
  REQUIRE(contains(unknown.err, "the speed of train_baseline is not known"));
  REQUIRE(contains(unknown.err, "forge bench train_llama train_baseline"));
}

TEST_CASE("a plan counts the steps from where a failed run goes on", "[end_to_end][experiment]") {
  const Program forge;
  std::vector<std::string> command = tiny({"run", "train_canon_a"}, 40);
  command.insert(command.end(), {"--set", "optimizer.lr=1e30", "--json"});
  REQUIRE(forge.call(command).exit_code == 1);
  const json failed = json::parse(forge.call({"runs", "--json"}).out).at(0);
  REQUIRE(failed.at("step") > 0);
  REQUIRE(failed.at("kept_step") == 0);
  const Outcome with_key = forge.call({"runs", "--columns", "id,optimizer.lr", "--json"});
  REQUIRE(json::parse(with_key.out).at(0).at("optimizer.lr") == 1e30);
  command.emplace_back("--dry-run");
  const json planned = json::parse(forge.call(command).out).at(0);
  REQUIRE(planned.at("action") == "resumes");
  REQUIRE(planned.at("steps") == 40);
}

TEST_CASE("an option that would be dropped is refused", "[end_to_end][experiment]") {
  const Program forge;
  const auto refused = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"run", "-p", "canon", "train_llama", "--dry-run"});
    const Outcome outcome = forge.call(options);
    REQUIRE(outcome.exit_code == 2);
    return outcome.err;
  };
  REQUIRE(contains(refused({"--seed", "1", "--set", "seed=2"}),
                   "--set seed=2 and --seed 1 set the same key"));
  REQUIRE(contains(refused({"--backend", "bigram", "--set", "backend=pytorch"}),
                   "--set backend=pytorch and --backend bigram set the same key"));
  REQUIRE(contains(refused({"--processes", "2", "--set", "parallel.processes=1"}),
                   "--set parallel.processes=1 and --processes 2 set the same key"));
  REQUIRE(contains(refused({"--seed", ""}), "--seed must not be empty"));
  REQUIRE(contains(refused({"--seed", ""}), "1,2,3 or 1..5"));
  REQUIRE(contains(refused({"--table", ""}), "--table must not be empty"));
}

TEST_CASE("runs of one config on other threads are not identical") {
  Program forge;
  forge.working_directory = make_tiny_workspace(forge.folder());
  std::vector<std::string> ids;
  for (const char* threads : {"1", "2"}) {
    const Outcome ran = forge.call(
        {"run", "train_llama", "--threads", threads, "--set", "train.max_steps=2", "--json"});
    INFO(ran.err);
    REQUIRE(ran.exit_code == 0);
    ids.push_back(json::parse(ran.out).at(0).at("id"));
  }
  const Outcome text = forge.call({"diff", ids[0], ids[1]});
  INFO(text.out);
  REQUIRE(text.exit_code == 1);
  REQUIRE(contains(text.out, "threads: CPU threads, which the order of sums depends on\n- 1\n+ 2"));
  const json differences = json::parse(forge.call({"diff", ids[0], ids[1], "--json"}).out);
  REQUIRE(differences.at("changes").empty());
  REQUIRE(differences.at("beside_config").at(0).at("what") == "threads");
  REQUIRE(differences.at("beside_config").size() == 1);
}

TEST_CASE("a sweep that the project declares is saved as a plan and executed as it is") {
  Program forge;
  forge.working_directory = make_tiny_workspace(forge.folder());
  const fs::path project = forge.working_directory / "projects" / "canon";
  std::ofstream(project / "sweeps" / "rates.yaml")
      << "configs: [train_llama]\nvalues: {optimizer.lr: [1e-3, 2e-3]}\n";
  const std::string file = (forge.folder() / "plan.json").string();
  const Outcome planned = forge.call({"run",
                                      "--sweep",
                                      "rates",
                                      "--threads",
                                      "1",
                                      "--set",
                                      "train.max_steps=2",
                                      "--probe",
                                      "--save-plan",
                                      file,
                                      "--json"});
  INFO(planned.err);
  REQUIRE(planned.exit_code == 0);
  const json plan = json::parse(planned.out);
  REQUIRE(plan.size() == 2);
  REQUIRE(plan[1].at("label") == "train_llama (optimizer.lr=2e-3)");
  REQUIRE(plan[0].at("judged_by") == "probe");
  REQUIRE(plan[0].at("seconds").get<double>() > 0);
  REQUIRE(plan[0].at("memory_bytes").get<int64_t>() > 0);
  REQUIRE(forge.call({"runs", "--json"}).out == "[]\n");  // a probe leaves nothing behind

  json edited = json::parse(read_file(file));
  edited.at("runs")[1].at("experiment").at("optimizer").at("lr") = 3e-3;
  const Outcome refused =
      forge.call({"run", "--plan", forge.folder().write("edited.json", edited.dump()).string()});
  CHECK(contains(refused.err, "the plan cannot be executed as it is"));
  CHECK(forge.call({"runs", "--json"}).out == "[]\n");  // nor does one that is refused

  // The templates are gone: the plan has all that it takes.
  fs::remove_all(project / "templates" / "configs");
  const Outcome ran = forge.call({"run", "--plan", file, "--json"});
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  const json results = json::parse(ran.out);
  REQUIRE(results.size() == 2);
  for (size_t i = 0; i < 2; ++i) {
    REQUIRE(results[i].at("id") == plan[i].at("run"));
    REQUIRE(results[i].at("status") == "completed");
  }
  REQUIRE(contains(forge.call({"run", "--plan", file}).err, "already completed"));
  REQUIRE(forge.call({"run", "--plan", file, "--all"}).exit_code == 2);
  REQUIRE(contains(forge.call({"run", "--sweep", "rate"}).err, "did you mean 'rates'?"));
}

TEST_CASE("a file that a person wrote is replaced only with --force") {
  Program forge;
  const fs::path file = forge.folder().write("notes.txt", "my notes\n");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"export-markdown", "-p", "canon", "-o"},
        {"report", "-p", "canon", "-o"},
        {"export", "-p", "canon", "--format", "json", "-o"},
        {"run", "-p", "canon", "train_llama", "--save-plan"}}) {
    CAPTURE(command.front());
    std::vector<std::string> whole = command;
    whole.push_back(file.string());
    const Outcome refused = forge.call(whole);
    CHECK(refused.exit_code == 2);
    CHECK(
        contains(refused.err, "was not written by forge, or was edited since: it is not replaced"));
    CHECK(read_file(file) == "my notes\n");
  }
  const Outcome forced =
      forge.call({"export", "-p", "canon", "--format", "json", "--force", "-o", file.string()});
  CHECK(forced.exit_code == 0);
  CHECK(json::parse(read_file(file)).is_array());
  const Outcome again =
      forge.call({"export", "-p", "canon", "--format", "latex", "-o", file.string()});
  CHECK(again.exit_code == 0);
}

TEST_CASE("what forge exported is replaced until it is edited") {
  Program forge;
  const fs::path file = forge.folder() / "tables";
  for (const std::vector<std::string>& format :
       {std::vector<std::string>{"export", "--format", "latex"},
        {"export", "--format", "json"},
        {"export", "--format", "json", "-t", "positions"},
        {"export", "--format", "csv", "-t", "positions"},
        {"export", "--format", "html"},
        {"export-markdown"},
        {"report"}}) {
    CAPTURE(join(format, " "));
    std::vector<std::string> command = format;
    command.insert(command.end(), {"-p", "canon", "-o", file.string()});
    REQUIRE(forge.call(command).exit_code == 0);
    const std::string written = read_file(file);
    REQUIRE(forge.call(command).exit_code == 0);
    CHECK(read_file(file) == written);
    write_file_atomic(file, written + "mine\n");
    const Outcome refused = forge.call(command);
    CHECK(refused.exit_code == 2);
    CHECK(contains(refused.err, "was edited since"));
    CHECK(read_file(file) == written + "mine\n");
    fs::remove(file);
  }
}

TEST_CASE("a dry run knows the model and writes nothing") {
  Program forge;
  forge.working_directory = make_tiny_workspace(forge.folder());
  const std::filesystem::path cache = forge.folder() / "cache";
  forge.environment["FORGE_CACHE_DIR"] = cache.string();
  const auto planned = [&](const std::string& hidden_size) {
    const Outcome outcome = forge.call({"run",
                                        "train_llama",
                                        "--threads",
                                        "1",
                                        "--set",
                                        "model.hidden_size=" + hidden_size,
                                        "--dry-run",
                                        "--json"});
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return json::parse(outcome.out).at(0);
  };
  const json unprepared = planned("64");
  REQUIRE(unprepared.at("run").is_null());
  REQUIRE(unprepared.at("seconds").is_null());
  REQUIRE_FALSE(std::filesystem::exists(cache / "data"));
  REQUIRE_FALSE(std::filesystem::exists(forge.runs_dir()));
  REQUIRE(planned("256").at("memory_bytes") > unprepared.at("memory_bytes"));
}

TEST_CASE("a Pareto front of no runs lists its rows as not shown") {
  const Program forge;
  const std::vector<std::string> words = {
      "compare", "-p", "canon", "--table", "learning_rates", "--pareto", "quality,speed"};
  REQUIRE(contains(forge.call(words).out, "\nNot shown: Llama 4M (missing), Canon-AC (missing)\n"));
  std::vector<std::string> as_json = words;
  as_json.emplace_back("--json");
  REQUIRE(json::parse(forge.call(as_json).out).at("pareto_missing").size() == 2);
}

TEST_CASE("a table names what is wrong in the config of a missing row") {
  Program forge;
  forge.working_directory = make_tiny_workspace(forge.folder());
  const fs::path config =
      forge.working_directory / "projects/canon/templates/configs/train_canon_b.yaml";
  write_file_atomic(config, read_file(config) + "nonsense: {\n");
  const Outcome outcome = forge.call({"compare", "-p", "canon", "--table", "positions"});
  CHECK(outcome.exit_code == 2);
  CHECK(contains(outcome.err, "train_canon_b.yaml:"));
}

TEST_CASE("a table's runs are those of its rows") {
  Program forge;
  forge.working_directory = make_tiny_workspace(forge.folder());
  const Outcome outcome = forge.call(
      {"run", "--table", "positions", "--seed", "7", "--threads", "1", "--dry-run", "--json"});
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const json plan = json::parse(outcome.out);
  REQUIRE(plan.size() == 8);
  REQUIRE(plan[0].at("config") == "train_llama");
  REQUIRE(plan[0].at("label") == "train_llama (seed=7)");
  const Outcome counted = forge.call({"run",
                                      "-p",
                                      "canon",
                                      "train_llama",
                                      "--seed",
                                      "7",
                                      "--seeds",
                                      "2",
                                      "--threads",
                                      "1",
                                      "--dry-run",
                                      "--json"});
  INFO(counted.err);
  const json from_seven = json::parse(counted.out);
  REQUIRE(from_seven.size() == 2);
  REQUIRE(from_seven[1].at("label") == "train_llama (seed=8)");
  const Outcome both = forge.call({"run", "--all", "--table", "positions"});
  REQUIRE(both.exit_code == 2);
  REQUIRE(contains(both.err, "--table positions and --all each select the configs to run"));
}

TEST_CASE("a command asks git for the revision once, however many runs it plans") {
  Program forge;
  forge.working_directory = make_tiny_workspace(forge.folder());
  const fs::path calls = forge.folder() / "git_calls";
  const fs::path git =
      forge.folder().write("bin/git", "#!/bin/sh\necho x >> '" + calls.string() + "'\necho abc\n");
  fs::permissions(git, fs::perms::owner_all);
  forge.environment["PATH"] = git.parent_path().string() + ":" + std::getenv("PATH");
  const Outcome outcome = forge.call({"run", "--all", "--dry-run", "--json"});
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  REQUIRE(json::parse(outcome.out).size() > 5);
  // The commit, the filters that are not to run, and whether files were changed.
  REQUIRE(read_file(calls) == "x\nx\nx\n");
}

TEST_CASE("a run whose model was changed does not stand in its config's row") {
  const Program forge;
  REQUIRE(forge.call(tiny({"run", "train_canon_a"})).exit_code == 0);
  const Outcome table = forge.call({"compare", "--table", "positions"});
  INFO(table.out);
  REQUIRE(table.exit_code == 0);
  REQUIRE(contains(table.out, "train_canon_a: model."));
  REQUIRE(contains(table.out, "not the config's"));
}

TEST_CASE("text of one's own is trained on") {
  const Program forge;
  std::string text;
  for (int i = 0; i < 400; ++i) {
    text += "The fox number " + std::to_string(i) + " saw " + std::to_string(i * 7) + " hens.\n\n";
  }
  const std::string file = forge.folder().write("foxes.txt", text).string();
  const Outcome outcome =
      forge.call(tiny({"run", "train_canon_a", "--set", "data.path=" + file, "--json"}));
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  REQUIRE(json::parse(outcome.out)[0].at("status") == "completed");
}

TEST_CASE("the index is rebuilt from the run folders") {
  const Program forge;
  const json trained = json::parse(forge.call(tiny({"run", "train_canon_a", "--json"})).out);
  std::filesystem::remove(forge.runs_dir() / "forge.sqlite");
  const Outcome rebuilt = forge.call({"store", "reindex"});
  REQUIRE(contains(rebuilt.out, "from 1 run folders"));
  REQUIRE(json::parse(forge.call({"runs", "--json"}).out) == trained);
}

TEST_CASE("every key of the schema is listed and a resolved config holds each") {
  const Program forge;
  const json keys = json::parse(forge.call({"keys", "--json"}).out);
  // A config has the sections of its own mixers.
  const std::vector<std::string> show = {"show", "train_canon_ac", "--json"};
  json config = json::parse(forge.call(show).out);
  for (const std::string kind : {"gla5", "gdn2", "mamba2"}) {
    REQUIRE_FALSE(config.at("model").contains(kind));
    std::vector<std::string> linear = show;
    linear.insert(
        linear.end(),
        {"--set", "model.layers=[" + kind + "]", "--set", "model." + kind + ".num_heads=4"});
    config["model"][kind] = json::parse(forge.call(linear).out).at("model").at(kind);
  }
  // And that of its own optimizer.
  for (const std::string type : {"muon", "lion", "sgd"}) {
    std::vector<std::string> other = show;
    other.insert(other.end(), {"--set", "optimizer.type=" + type});
    const json optimizer = json::parse(forge.call(other).out).at("optimizer");
    config["optimizer"][type] = optimizer.at(type);
    if (optimizer.contains("weight_decay_of"))
      config["optimizer"]["weight_decay_of"] = optimizer.at("weight_decay_of");
  }
  // And what changes no number where nothing is said.
  std::vector<std::string> unusual = show;
  unusual.insert(unusual.end(),
                 {"--set",
                  "train.gradient_slots=2",
                  "--set",
                  "train.recompute=mlp",
                  "--set",
                  "parallel.processes=2"});
  const json resolved = json::parse(forge.call(unusual).out);
  config["train"].update(resolved.at("train"));
  config["parallel"] = resolved.at("parallel");
  REQUIRE(keys.size() > 50);
  for (const json& key : keys) {
    std::string path = "/" + key.at("key").get<std::string>();
    if (contains(path, "NAME")) continue;  // of a section that a mixture alone has
    std::replace(path.begin(), path.end(), '.', '/');
    INFO(path);
    const bool may_be_unset = key.at("default") == "null";
    REQUIRE((may_be_unset || config.contains(json::json_pointer(path))));
  }
}

TEST_CASE("listings name the configs of a project and the projects of the workspace") {
  Program forge;
  const json all = json::parse(forge.call({"ls", "--json"}).out);
  std::vector<std::string> projects;
  for (const json& project : all) projects.push_back(project.at("project"));
  REQUIRE(projects == std::vector<std::string>{"projects/canon",
                                               "projects/canon/llama",
                                               "projects/canon/llama_nope",
                                               "projects/canon/models",
                                               "projects/linear",
                                               "projects/linear/models",
                                               "projects/optimizers",
                                               "projects/own_block",
                                               "projects/playground",
                                               "projects/recipes",
                                               "projects/small_llm",
                                               "projects/small_llm/custom_canon",
                                               "projects/small_llm/models"});
  forge.working_directory = forge.working_directory / "projects" / "canon" / "templates";
  const json one = json::parse(forge.call({"ls", "--json"}).out);
  REQUIRE(one.size() == 1);
  REQUIRE(one[0].at("configs").size() == 10);
}

}  // namespace
}  // namespace forge::tests

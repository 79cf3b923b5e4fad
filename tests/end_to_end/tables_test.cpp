// Which runs a table takes for those of its configs as they are now.

#include <filesystem>

#include "core/base/files.h"
#include "tests/end_to_end/program.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

/// A workspace with one project of two rows, which a worker in awk trains on a text of its own.
std::filesystem::path make_table_workspace(const Program& forge,
                                           const std::string& name,
                                           const std::string& text) {
  const std::filesystem::path workspace = forge.folder() / name;
  const auto write = [&](const std::string& file, const std::string& content) {
    forge.folder().write(name + "/" + file, content);
  };
  write("forge_workspace/workspace.yaml", "default_project: p\n");
  write("p/meta.yaml", "name: p\n");
  write(
      "p/tables/t.yaml",
      "title: T\nbaseline: one\nrows:\n  - {config: one, name: One}\n  - {config: two, name: Two}\n"
      "columns:\n  - {kind: model, title: Model}\n  - {kind: eval_loss, title: Loss}\n"
      "must_be_equal: [profile, data]\n");
  std::string words;
  for (int i = 0; i < 400; ++i) words += text + " " + std::to_string(i * i) + ".\n\n";
  write("p/text.txt", words);
  const std::string worker =
      (tests_dir().parent_path() / "backends" / "bigram" / "worker.sh").string();
  for (const char* config : {"one", "two"})
    write(std::string("p/templates/configs/") + config + ".yaml",
          std::string("name: ") + config +
              "\ndescription: d\nbackend: external\nexternal: {command: [" + worker +
              "]}\ndata: {source: text, path: " + (workspace / "p/text.txt").string() +
              ", documents: block, order: sequential}\n"
              "tokenizer: {vocab_size: 300}\n"
              "model: {vocab_size: 300, hidden_size: 16, num_layers: 1, attention: {num_heads: 2}, "
              "mlp: {intermediate_size: " +
              (config == std::string("one") ? "32" : "48") +
              "}}\n"
              "train: {max_steps: 4, batch_size: 2, seq_len: 16, eval_rows: 4, log_every: 2, "
              "eval_every: 0, checkpoint_every: 0}\n");
  return workspace / "p";
}

void run_both(Program& forge, const std::filesystem::path& project) {
  forge.working_directory = project;
  const Outcome outcome = forge.call({"run", "one", "two"});
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
}

/// The two rows of the table.
nlohmann::json rows_of(Program& forge, const std::filesystem::path& project) {
  forge.working_directory = project;
  const Outcome outcome = forge.call({"compare", "--table", "t", "--json"});
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  nlohmann::json rows = nlohmann::json::parse(outcome.out).at("rows");
  REQUIRE(rows.size() == 2);
  return rows;
}

TEST_CASE("runs of a text that was edited since are not those of the config as it is now") {
  Program forge;
  const std::filesystem::path project = make_table_workspace(forge, "w", "a cat sat on a mat");
  run_both(forge, project);
  for (const nlohmann::json& row : rows_of(forge, project))
    CHECK(row.at("differs_from_config").empty());
  const std::string before = read_file(project / "text.txt");
  write_file_atomic(project / "text.txt", before + "and a dog\n\n");
  for (const nlohmann::json& row : rows_of(forge, project)) {
    REQUIRE(row.at("differs_from_config").size() == 1);
    CHECK(contains(row.at("differs_from_config")[0].get<std::string>(), "the text "));
  }
  CHECK(forge.call({"compare", "--table", "t", "--strict"}).exit_code == 1);
  write_file_atomic(project / "text.txt", before);
  for (const nlohmann::json& row : rows_of(forge, project))
    CHECK(row.at("differs_from_config").empty());
}

TEST_CASE("a table has no runs of the project of its path in another workspace") {
  Program forge;
  const std::filesystem::path first = make_table_workspace(forge, "w1", "a cat sat on a mat"),
                              second = make_table_workspace(forge, "w2", "a cat sat on a mat");
  run_both(forge, first);
  const auto rows_with_runs = [&](const std::filesystem::path& project) {
    int found = 0;
    for (const nlohmann::json& row : rows_of(forge, project))
      found += row.at("run_id").is_null() ? 0 : 1;
    return found;
  };
  CHECK(rows_with_runs(first) == 2);
  CHECK(rows_with_runs(second) == 0);
  forge.working_directory = second;
  CHECK(contains(forge.call({"compare", "--table", "t"}).out,
                 "of the project of this path in the workspace " + first.parent_path().string()));
  run_both(forge, second);  // the same experiments, and runs of its own
  CHECK(rows_with_runs(second) == 2);
  std::filesystem::rename(first.parent_path(), forge.folder() / "moved");
  CHECK(rows_with_runs(forge.folder() / "moved" / "p") == 2);
}

TEST_CASE("runs that were moved with their workspace are its own whatever is at its old place") {
  Program forge;
  const std::filesystem::path project = make_table_workspace(forge, "w", "a cat sat on a mat"),
                              old_place = project.parent_path(),
                              new_place = forge.folder() / "moved";
  forge.environment["FORGE_RUNS_DIR"] = (old_place / "runs").string();
  run_both(forge, project);
  std::filesystem::rename(old_place, new_place);
  make_table_workspace(forge, "w", "a cat sat on a mat");
  forge.environment["FORGE_RUNS_DIR"] = (new_place / "runs").string();
  for (const nlohmann::json& row : rows_of(forge, new_place / "p"))
    CHECK_FALSE(row.at("run_id").is_null());
  forge.working_directory = new_place / "p";
  const Outcome exported = forge.call({"export", "--format", "metrics-csv"});
  INFO(exported.err);
  CHECK(exported.exit_code == 0);
}

TEST_CASE("a workspace that was moved to another disk keeps its runs beside a new one") {
  Program forge;
  const std::filesystem::path before = make_table_workspace(forge, "w", "a cat sat on a mat"),
                              now = make_table_workspace(forge, "disk", "a cat sat on a mat");
  const auto settings = [](const std::filesystem::path& project) {
    return project.parent_path() / "forge_workspace";
  };
  // Not by the worker in awk, which is known by its folder.
  const auto run_both_here = [&](const std::filesystem::path& project) {
    forge.working_directory = project;
    const Outcome outcome =
        forge.call({"run", "one", "two", "--backend", "libtorch", "--set", "data.order=shuffled"});
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
  };
  run_both_here(before);
  std::filesystem::copy(settings(before) / ".local",
                        settings(now) / ".local",
                        std::filesystem::copy_options::recursive);
  remove_tree(before.parent_path());
  run_both_here(now);
  make_table_workspace(forge, "w", "a cat sat on a mat");
  for (const std::filesystem::path& project : {now, before, now})
    for (const nlohmann::json& row : rows_of(forge, project))
      CHECK_FALSE(row.at("run_id").is_null());
}

TEST_CASE("a copy of a renamed workspace has its runs, and removes none of them by conditions") {
  Program forge;
  const std::filesystem::path project = make_table_workspace(forge, "w", "a cat sat on a mat"),
                              renamed = forge.folder() / "renamed", copy = forge.folder() / "copy";
  run_both(forge, project);
  std::filesystem::rename(project.parent_path(), renamed);
  std::filesystem::copy(renamed, copy, std::filesystem::copy_options::recursive);
  forge.working_directory = copy / "p";
  const Outcome removed = forge.call({"-p", copy.string(), "runs", "rm", "--where", "eval_loss>0"});
  CHECK(removed.out.empty());
  CHECK(contains(removed.err, "left out 2 runs"));
  for (const std::filesystem::path& workspace : {copy, renamed, copy})
    for (const nlohmann::json& row : rows_of(forge, workspace / "p"))
      CHECK_FALSE(row.at("run_id").is_null());
}

TEST_CASE("the runs of a plan are those of the workspace where it is executed") {
  Program forge;
  const std::filesystem::path theirs = make_table_workspace(forge, "w1", "a cat sat on a mat"),
                              ours = make_table_workspace(forge, "w2", "a cat sat on a mat");
  const std::string plan = (forge.folder() / "plan.json").string();
  forge.working_directory = theirs;
  REQUIRE(forge.call({"run", "one", "two", "--save-plan", plan}).exit_code == 0);
  forge.working_directory = ours;
  const Outcome executed = forge.call({"run", "--plan", plan});
  INFO(executed.err);
  REQUIRE(executed.exit_code == 0);
  for (const nlohmann::json& row : rows_of(forge, ours)) CHECK_FALSE(row.at("run_id").is_null());
  for (const nlohmann::json& row : rows_of(forge, theirs)) CHECK(row.at("run_id").is_null());
}

TEST_CASE("a tuned row is not the best of runs from before and after an edit of its config") {
  Program forge;
  const std::filesystem::path project = make_table_workspace(forge, "w", "a cat sat on a mat");
  forge.working_directory = project;
  const std::filesystem::path table = project / "tables/t.yaml",
                              config = project / "templates/configs/one.yaml";
  write_file_atomic(table,
                    read_file(table) +
                        "best_of: {key: optimizer.lr, values: [1e-3, 2e-3], by: eval_loss, take: "
                        "lowest}\n");
  const auto run = [&](const std::string& rate) {
    const Outcome outcome = forge.call({"run", "one", "--set", "optimizer.lr=" + rate});
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
  };
  const auto tried = [&] {
    int values = 0;
    const nlohmann::json best_of = rows_of(forge, project)[0].at("best_of");
    for (const nlohmann::json& point : best_of.at("points"))
      values += point.at("run_id").is_null() ? 0 : 1;
    return values;
  };
  run("1e-3");
  run("2e-3");
  CHECK(tried() == 2);
  write_file_atomic(config, read_file(config) + "optimizer: {weight_decay: 0.3}\n");
  CHECK(tried() == 2);  // those of before, which a footnote names
  run("1e-3");
  CHECK(tried() == 1);
  run("2e-3");
  CHECK(tried() == 2);
}

TEST_CASE("a copy of a project counts what was tried in it before") {
  Program forge;
  const std::filesystem::path first = make_table_workspace(forge, "w", "a cat sat on a mat"),
                              copy = first.parent_path() / "copy";
  const auto run_with = [&](const std::filesystem::path& project, const std::string& steps) {
    forge.working_directory = project;
    const Outcome outcome = forge.call({"run",
                                        "one",
                                        "two",
                                        "--seeds",
                                        "2",
                                        "--backend",
                                        "libtorch",
                                        "--set",
                                        "data.order=shuffled",
                                        "--set",
                                        "train.max_steps=" + steps});
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
  };
  for (const char* steps : {"2", "3", "4"}) run_with(first, steps);
  std::filesystem::copy(first, copy, std::filesystem::copy_options::recursive);
  run_with(copy, "4");
  const Outcome table = forge.call({"compare", "--table", "t", "--json"});
  INFO(table.out);
  const nlohmann::json setup = nlohmann::json::parse(table.out).at("setup");
  CHECK(contains(setup.at("Repetitions").get<std::string>(), "4 of 4 runs repeat older ones"));
  CHECK(contains(setup.at("Other runs").get<std::string>(), "they differ in train.max_steps"));
}

}  // namespace
}  // namespace forge::tests

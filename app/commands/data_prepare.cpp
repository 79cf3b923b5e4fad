#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands/data.h"
#include "app/output.h"
#include "app/progress_line.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/config/fields.h"
#include "core/config/paths.h"
#include "core/config/resolve.h"
#include "core/data/prepare.h"
#include "core/data/token_file.h"

namespace forge::app {
namespace {

struct DataPrepareOptions {
  std::string config;
  std::vector<std::string> overrides;
  std::string path;
  config::DataConfig data;
  std::string documents = "file";
  config::TokenizerConfig tokenizer;
  bool check = false;
  bool json = false;
};

config::DocumentKind kind_of(const std::string& name) {
  const auto& names = config::names_of(config::DocumentKind());
  return static_cast<config::DocumentKind>(std::find(names.begin(), names.end(), name) -
                                           names.begin());
}

/// Data that no config names: rows of any length, however many there are.
config::Experiment experiment_of(const DataPrepareOptions& options) {
  config::Experiment experiment;
  experiment.data = options.data;
  experiment.data.path = fs::absolute(options.path).lexically_normal().string();
  experiment.data.documents = kind_of(options.documents);
  experiment.data.source = config::is_json_lines(options.path) ? "jsonl" : "text";
  if (experiment.data.documents == config::DocumentKind::record) experiment.data.source = "jsonl";
  if (experiment.data.source == "jsonl") {
    experiment.data.documents = config::DocumentKind::record;
  }
  experiment.tokenizer = options.tokenizer;
  experiment.model.vocab_size = 1 << 24;
  experiment.train.seq_len = 1;
  experiment.train.max_steps = 1;
  return experiment;
}

config::Experiment experiment_of(const Context& context, const DataPrepareOptions& options) {
  if (!options.path.empty()) {
    if (options.config.empty()) return experiment_of(options);
    throw Error("both a config and --path are given", {}, "give one of them");
  }
  const ChosenConfig config = context.config(options.config);
  config::ResolveOptions resolve;
  resolve.overrides = options.overrides;
  resolve.surroundings = context.surroundings();
  resolve.variables = config.variables;
  const config::ResolvedConfig resolved =
      config::resolve(config.project, config.config.name, resolve);
  if (resolved.trains) return resolved.experiment;
  throw Error("'" + config.config.name + "' is a model for other configs to use: it has no data",
              {},
              "name a training config; 'forge ls' lists them");
}

nlohmann::ordered_json tokens_json(const data::PreparedRows& rows) {
  const data::TokenFile file(rows.tokens);
  nlohmann::ordered_json json;
  if (!rows.name.empty()) json = {{"source", rows.name}, {"weight", rows.weight}};
  json.update({{"path", rows.tokens.string()},
               {"tokens", file.size()},
               {"documents", file.documents()},
               {"rows", rows.rows},
               {"bytes", file.file_bytes()},
               {"content_hash", file.content_hash()}});
  return json;
}

/// Of the one text, or a list of what a mixture is made of.
nlohmann::ordered_json tokens_json(const std::vector<data::PreparedRows>& files) {
  if (files.size() == 1 && files[0].name.empty()) return tokens_json(files[0]);
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const data::PreparedRows& file : files) json.push_back(tokens_json(file));
  return json;
}

/// Rows are those of a config: files without one have none.
void print(const data::PreparedData& prepared, bool with_rows) {
  std::vector<std::vector<std::string>> lines = {{"", "tokens", "documents", "size"}};
  const auto add = [&](const std::string& split, const data::PreparedRows& rows) {
    const data::TokenFile file(rows.tokens);
    lines.push_back({rows.name.empty() ? split : rows.name + ", " + split,
                     with_thousands(file.size()),
                     with_thousands(file.documents()),
                     human_bytes(static_cast<double>(file.file_bytes()))});
    if (with_rows) lines.back().push_back(with_thousands(rows.rows));
  };
  if (with_rows) lines[0].push_back("rows");
  for (const data::PreparedRows& rows : prepared.train) add("training", rows);
  for (const data::PreparedRows& rows : prepared.evaluation) add("evaluation", rows);
  std::cout << aligned(lines, {1, 2, 3, 4}) << "in " << shown_path(prepared.tokenizer.parent_path())
            << "\n";
}

/// Of a task with ids of its own there is nothing on the disk.
int describe_task(const config::Experiment& experiment,
                  const data::PreparedData& prepared,
                  bool json) {
  if (json) {
    const nlohmann::ordered_json values = {{"task", prepared.task},
                                           {"data_fingerprint", prepared.data_fingerprint},
                                           {"train", {{"rows", prepared.train[0].rows}}},
                                           {"evaluation", {{"rows", prepared.evaluation[0].rows}}}};
    print_json(values);
    return 0;
  }
  std::cout << "the task " << experiment.data.task.name
            << " has ids of its own: " << with_thousands(prepared.train[0].rows)
            << " rows for training and " << with_thousands(prepared.evaluation[0].rows)
            << " for evaluation are made as they are read\n"
               "'forge data sample' shows its texts\n";
  return 0;
}

int prepare(const Context& context, const DataPrepareOptions& options) {
  const config::Experiment experiment = experiment_of(context, options);
  data::PreparedData prepared;
  {
    ProgressLine line("preparing data");
    const data::Progress progress = [&](double fraction, const std::string& phase) {
      line.show_phase(fraction, phase);
    };
    prepared = data::prepare(experiment, user_cache_dir(), progress, options.check);
  }
  if (prepared.tokenizer.empty()) return describe_task(experiment, prepared, options.json);
  if (!options.json) {
    print(prepared, options.path.empty());
    return 0;
  }
  const nlohmann::ordered_json json = {{"tokenizer", prepared.tokenizer.string()},
                                       {"data_fingerprint", prepared.data_fingerprint},
                                       {"tokenizer_fingerprint", prepared.tokenizer_fingerprint},
                                       {"train", tokens_json(prepared.train)},
                                       {"evaluation", tokens_json(prepared.evaluation)}};
  print_json(json);
  return 0;
}

}  // namespace

void add_data_prepare(const Command& data, Program& program) {
  auto options = std::make_shared<DataPrepareOptions>();
  const Command command = data.add_subcommand(
      "prepare", "Make the tokenizer and the tokens of a config's data, or of files of your own");
  command.footer(
      "Examples:\n"
      "  forge data prepare train_llama --set train.max_steps=6625\n"
      "  forge data prepare --path stories.txt.zst --documents separator --vocab-size 2000\n"
      "  forge data prepare --path pages.jsonl.gz --field page --tokenizer tokenizer.json\n"
      "\n"
      "Work that is broken off, also by Ctrl-C, is gone on with the next time.");
  add_config_options(command, program, options->config);
  add_set_option(command, options->overrides);
  command.add_option("--path", options->path, "Text instead of a config's: a file or a folder")
      .type_name("PATH");
  command.add_option("--documents", options->documents, "With --path: what a document is")
      .one_of(config::names_of(config::DocumentKind()))
      .capture_default();
  command.add_option("--separator", options->data.separator, "Between two documents")
      .capture_default();
  command.add_option("--field", options->data.field, "Of JSON lines: holds the text")
      .capture_default();
  command.add_option(
      "--evaluation-path", options->data.evaluation_path, "Files to evaluate on instead of a part");
  command.add_option("--tokenizer", options->tokenizer.path, "A tokenizer.json, not a new one")
      .type_name("FILE")
      .existing_file();
  command.add_option("--vocab-size", options->tokenizer.vocab_size, "Entries of a new tokenizer")
      .between(261, 1 << 24)
      .capture_default();
  command.add_flag(
      "--check", options->check, "Read every byte of large files that are there already");
  command.add_flag("--json", options->json, "As JSON");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return prepare(c, *options); };
  });
}

}  // namespace forge::app

#include <iostream>

#include <nlohmann/json.hpp>

#include "app/commands/data.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/check.h"
#include "core/config/fields.h"
#include "core/config/resolve.h"
#include "core/data/fetch/public_texts.h"
#include "core/data/rows/prepare.h"
#include "core/data/rows/token_file.h"
#include "core/data/tasks/task_spec.h"

namespace forge::app {
namespace {

struct DataGetOptions {
  std::string name;
  std::string folder;
  std::string mirror;
  bool json = false;
};

int list_sources(const DataGetOptions& options) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  std::vector<std::vector<std::string>> lines;
  for (const data::PublicText& text : data::public_texts()) {
    int64_t bytes = 0;
    for (const data::RemoteFile& file : text.files) bytes += file.bytes;
    json.push_back({{"name", text.name}, {"description", text.description}, {"bytes", bytes}});
    lines.push_back({text.name, human_bytes(static_cast<double>(bytes)), text.description});
  }
  std::cout << (options.json ? json_text(json, 2) + "\n" : aligned(lines, {1}));
  return 0;
}

int get(const DataGetOptions& options) {
  if (options.name.empty()) return list_sources(options);
  const data::PublicText& text = data::find_public_text(options.name);
  const fs::path folder =
      options.folder.empty() ? corpora_dir() / text.name : fs::absolute(options.folder);
  std::vector<fs::path> files;
  {
    ProgressLine line(text.name);
    files = data::get_public_text(
        text, folder, options.mirror, [&](double fraction, const std::string& phase) {
          line.show_phase(fraction, phase);
        });
  }
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const fs::path& file : files) {
    const auto bytes = static_cast<int64_t>(fs::file_size(file));
    json.push_back({{"path", file.string()}, {"bytes", bytes}});
    if (!options.json) {
      std::cout << human_bytes(static_cast<double>(bytes)) << "  " << shown_path(file) << "\n";
    }
  }
  if (options.json) print_json(json);
  return 0;
}

}  // namespace

void add_data_get(const Command& data, Program& program) {
  auto options = std::make_shared<DataGetOptions>();
  const Command command = data.add_subcommand("get", "Get a public text from the network");
  command.footer(
      "Examples:\n"
      "  forge data get                            which there are\n"
      "  forge data get tinystories\n"
      "  forge data get wikitext-103 --to texts/ --json\n"
      "\n"
      "Files are checked by their SHA-256. What is broken off is gone on with the next time. A "
      "path\n"
      "such as corpora:tinystories/TinyStories-train.txt in a config names a file that was got.");
  command.add_option("name", options->name, "Which text; without it they are listed")
      .type_name("NAME");
  command.add_option("--to", options->folder, "Folder to put it into; one in the user's cache")
      .type_name("DIR");
  command.add_option("--mirror", options->mirror, "Get the files by their names from here instead")
      .type_name("URL");
  command.add_flag("--json", options->json, "As JSON");
  command.callback([&program, options] {
    program.action = [options](const Context&) { return get(*options); };
  });
}

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

namespace {

struct DataSampleOptions {
  std::string config;
  std::vector<std::string> overrides;
  int count = 3;
  bool evaluation = false;
  bool json = false;
};

config::DataConfig data_of(const Context& context, const DataSampleOptions& options) {
  const ChosenConfig config = context.config(options.config);
  config::ResolveOptions resolve;
  resolve.overrides = options.overrides;
  resolve.surroundings = context.surroundings();
  resolve.variables = config.variables;
  const config::ResolvedConfig resolved =
      config::resolve(config.project, config.config.name, resolve);
  if (resolved.trains) return resolved.experiment.data;
  throw Error("'" + config.config.name + "' is a model for other configs to use: it has no data",
              {},
              "name a training config; 'forge ls' lists them");
}

/// Tokens that carry loss stand out: bold on a terminal, in brackets elsewhere.
void print(const data::tasks::Sample& sample, bool colour) {
  if (sample.tokens.empty()) {
    std::cout << sample.text << "\n";
    return;
  }
  for (size_t i = 0; i < sample.tokens.size(); ++i) {
    const std::string& token = sample.tokens[i];
    if (i > 0) std::cout << ' ';
    if (!sample.scored[i]) {
      std::cout << token;
    } else if (colour) {
      std::cout << styled(token, Style::bold, true);
    } else {
      std::cout << '[' << token << ']';
    }
  }
  std::cout << "\n";
}

nlohmann::ordered_json to_json(const data::tasks::Sample& sample) {
  nlohmann::ordered_json json = {{"text", sample.text}};
  if (sample.tokens.empty()) return json;
  json["ids"] = sample.ids;
  json["tokens"] = sample.tokens;
  json["scored"] = sample.scored;
  return json;
}

int sample(const Context& context, const DataSampleOptions& options) {
  const data::Split split = options.evaluation ? data::Split::evaluation : data::Split::training;
  const auto samples =
      data::tasks::preview_instances(data_of(context, options), split, options.count);
  if (options.json) {
    nlohmann::ordered_json json = nlohmann::ordered_json::array();
    for (const data::tasks::Sample& one : samples) json.push_back(to_json(one));
    print_json(json);
    return 0;
  }
  bool first = true;
  for (const data::tasks::Sample& one : samples) {
    if (!first) std::cout << "\n";
    first = false;
    print(one, use_colour(1));
  }
  return 0;
}

}  // namespace

void add_data_sample(const Command& data, Program& program) {
  auto options = std::make_shared<DataSampleOptions>();
  const Command command =
      data.add_subcommand("sample", "Texts of a config's synthetic task, as a model reads them");
  command.footer(
      "Examples:\n"
      "  forge data sample depo1/rope\n"
      "  forge data sample mano/rope --set data.task.variant=code -n 5\n"
      "  forge data sample brevo2/rope --evaluation --json\n"
      "\n"
      "What carries loss is bold, or stands in brackets where the output is no terminal.");
  add_config_options(command, program, options->config);
  add_set_option(command, options->overrides);
  command.add_option("-n,--count", options->count, "How many")
      .between(1, 1000000)
      .capture_default();
  command.add_flag("--evaluation", options->evaluation, "Of those that evaluations use");
  command.add_flag("--json", options->json, "As JSON, with ids and what is scored");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return sample(c, *options); };
  });
}

}  // namespace forge::app

#include <iostream>

#include <nlohmann/json.hpp>

#include "app/command_line.h"
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
#include "core/results/metrics.h"

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
  if (options.json) return print_json(json);
  std::cout << aligned(lines, {1});
  return 0;
}

int get(const Context&, const DataGetOptions& options) {
  if (options.name.empty()) return list_sources(options);
  const data::PublicText& text = data::find_public_text(options.name);
  const fs::path folder =
      options.folder.empty() ? corpora_dir() / text.name : fs::absolute(options.folder);
  const std::vector<fs::path> files =
      data::get_public_text(text, folder, options.mirror, ProgressLine(text.name).phase_reporter());
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

/// The experiment of the command line's config, which must have data.
config::Experiment resolved_experiment(const Context& context, const ConfigOptions& options) {
  const config::ResolvedConfig resolved =
      context.resolve(context.document(options.config), options.overrides);
  require_training(resolved, "it has no data");
  return resolved.experiment;
}

struct DataPrepareOptions : ConfigOptions {
  std::string path;
  config::DataConfig data;
  std::string documents = "file";
  config::TokenizerConfig tokenizer;
  bool check = false;
  bool json = false;
};

config::Experiment prepared_experiment(const Context& context, const DataPrepareOptions& options) {
  if (options.path.empty()) return resolved_experiment(context, options);
  if (!options.config.empty()) throw Error("CONFIG and --path cannot be used together");
  const auto kinds = config::names_of(config::DocumentKind());
  const auto kind = std::find(kinds.begin(), kinds.end(), options.documents) - kinds.begin();
  config::Experiment experiment;
  experiment.data = options.data;
  experiment.data.path = fs::absolute(options.path).lexically_normal().string();
  experiment.data.documents = config::DocumentKind(kind);
  if (config::is_json_lines(options.path)) experiment.data.documents = config::DocumentKind::record;
  const bool records = experiment.data.documents == config::DocumentKind::record;
  experiment.data.source = records ? "jsonl" : "text";
  experiment.tokenizer = options.tokenizer;
  // Rows of any length, however many there are.
  experiment.model.vocab_size = 1 << 24;
  experiment.train.seq_len = 1;
  experiment.train.max_steps = 1;
  return experiment;
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

/// One object for a single text, a list for a mixture.
nlohmann::ordered_json tokens_json(const std::vector<data::PreparedRows>& files) {
  if (files.size() == 1 && files[0].name.empty()) return tokens_json(files[0]);
  return json_list(files, [](const data::PreparedRows& file) { return tokens_json(file); });
}

/// The column of rows is for configs; files alone have no rows.
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
  std::cout << aligned(lines, {1, 2, 3, 4});
  const data::EvaluationText& text = prepared.evaluation_text;
  if (with_rows && text.repeated_sentences)
    std::cout << results::percent_text(*text.repeated_sentences)
              << " of the evaluated sentences are in the training text\n";
  if (with_rows && text.entropy_floor)
    std::cout << "entropy floor of the evaluation: " << results::loss_text(*text.entropy_floor)
              << " nats a token, which no model can predict\n";
  std::cout << "in " << shown_path(prepared.tokenizer.parent_path()) << "\n";
}

/// A task that generates token ids directly has no files.
int describe_task(const config::Experiment& experiment,
                  const data::PreparedData& prepared,
                  bool json) {
  if (json) {
    return print_json(
        nlohmann::ordered_json{{"task", prepared.task},
                               {"data_fingerprint", prepared.data_fingerprint},
                               {"train", {{"rows", prepared.train[0].rows}}},
                               {"evaluation", {{"rows", prepared.evaluation[0].rows}}}});
  }
  std::cout << "the task " << experiment.data.task.name
            << " generates its rows during training: " << with_thousands(prepared.train[0].rows)
            << " for training, " << with_thousands(prepared.evaluation[0].rows)
            << " for evaluation\n'forge data sample' shows examples\n";
  return 0;
}

int prepare(const Context& context, const DataPrepareOptions& options) {
  const config::Experiment experiment = prepared_experiment(context, options);
  const data::PreparedData prepared = data::prepare(
      experiment, user_cache_dir(), ProgressLine("preparing data").phase_reporter(), options.check);
  print_new_warnings(prepared.warnings);
  if (prepared.tokenizer.empty()) return describe_task(experiment, prepared, options.json);
  if (!options.json) {
    print(prepared, options.path.empty());
    return 0;
  }
  nlohmann::ordered_json json = {{"tokenizer", prepared.tokenizer.string()},
                                 {"data_fingerprint", prepared.data_fingerprint},
                                 {"tokenizer_fingerprint", prepared.tokenizer_fingerprint},
                                 {"train", tokens_json(prepared.train)},
                                 {"evaluation", tokens_json(prepared.evaluation)}};
  if (options.path.empty()) {
    json["entropy_floor"] = or_null(prepared.evaluation_text.entropy_floor);
    json["repeated_sentences"] = or_null(prepared.evaluation_text.repeated_sentences);
  }
  return print_json(json);
}

struct DataSampleOptions : ConfigOptions {
  int count = 3;
  bool evaluation = false;
  bool json = false;
};

/// Tokens that carry loss stand out: bold on a terminal, in brackets elsewhere.
void print(const data::tasks::Sample& sample) {
  if (sample.tokens.empty()) {
    std::cout << sample.text << "\n";
    return;
  }
  const bool colour = use_colour();
  for (size_t i = 0; i < sample.tokens.size(); ++i) {
    std::string token = sample.tokens[i];
    if (sample.scored[i]) token = colour ? styled(token, Style::bold) : "[" + token + "]";
    std::cout << (i > 0 ? " " : "") << token;
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
  const auto samples = data::tasks::preview_instances(
      resolved_experiment(context, options).data, split, options.count);
  if (options.json)
    return print_json(json_list(samples, [](const auto& one) { return to_json(one); }));
  for (const data::tasks::Sample& one : samples) {
    if (&one != &samples.front()) std::cout << "\n";
    print(one);
  }
  return 0;
}

}  // namespace

void add_data_get(const Command& data) {
  const auto [command, options] = data.add_command("get", "Download a public dataset", get);
  command
      .details(
          "Files are checked against their SHA-256. An interrupted download continues where it "
          "stopped. A config names a downloaded file by a path such as "
          "corpora:tinystories/TinyStories-train.txt.")
      .examples(
          "forge data get                            list the datasets\n"
          "forge data get tinystories\n"
          "forge data get wikitext-103 --to texts/ --json");
  command.add_option("NAME", options.name, "Dataset; without it all are listed");
  command.add_option("--to <DIR>",
                     options.folder,
                     "Folder to write to [default: corpora/NAME in the user's cache]");
  command.add_option("--mirror <URL>", options.mirror, "Download the files from this address");
  add_json_option(command, options.json);
}

void add_data_prepare(const Command& data) {
  const auto [command, options] =
      data.add_command("prepare", "Tokenize the data of a config, or files of your own", prepare);
  command
      .details(
          "Trains a tokenizer unless one is given. An interrupted preparation, also by Ctrl-C, "
          "continues where it stopped.")
      .examples(
          "forge data prepare train_llama --set train.max_steps=6625\n"
          "forge data prepare --path stories.txt.zst --documents separator --vocab-size 2000\n"
          "forge data prepare --path pages.jsonl.gz --field page --tokenizer tokenizer.json")
      .see_also("forge data ls, docs/DATA.md");
  add_config_options(command, options);
  command.heading("With --path");
  command.add_option("--path", options.path, "Text file or folder to use instead of a config");
  command.add_option("--documents", options.documents, "What a document is")
      .one_of(config::names_of(config::DocumentKind()))
      .show_default();
  command.add_option("--separator <TEXT>", options.data.separator, "Text between two documents")
      .show_default();
  command.add_option("--field", options.data.field, "JSON Lines: field that holds the text")
      .show_default();
  command.add_option("--evaluation-path <PATH>",
                     options.data.evaluation_path,
                     "Text to evaluate on [default: part of the text]");
  command.add_option("--tokenizer <FILE>", options.tokenizer.path, "Use this tokenizer.json")
      .existing_file();
  command.add_option("--vocab-size", options.tokenizer.vocab_size, "Size of a new vocabulary")
      .between(261, 1 << 24)
      .show_default();
  command.heading("Options");
  command.add_flag("--check", options.check, "Verify every byte of data prepared before");
  add_json_option(command, options.json);
}

void add_data_sample(const Command& data) {
  const auto [command, options] =
      data.add_command("sample", "Print examples of a config's synthetic task", sample);
  command.details("Tokens that count for the loss are bold, or in brackets outside a terminal.")
      .examples(
          "forge data sample depo1/rope\n"
          "forge data sample mano/rope --set data.task.variant=code -n 5\n"
          "forge data sample brevo2/rope --evaluation --json")
      .see_also("docs/TASKS.md");
  add_config_options(command, options);
  command.add_option("-n,--count", options.count, "Number of examples")
      .between(1, 1000000)
      .show_default();
  command.add_flag("--evaluation", options.evaluation, "Use the evaluation examples");
  add_json_option(command, options.json, "Print JSON with token ids and what counts for the loss");
}

}  // namespace forge::app

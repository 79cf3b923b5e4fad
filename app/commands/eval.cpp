#include <cmath>
#include <iostream>

#include "app/command_line.h"
#include "app/runs.h"
#include "app/terminal.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/config/fields.h"
#include "core/config/resolve.h"
#include "core/manage/written_files.h"
#include "core/results/metrics.h"
#include "core/run/evaluate.h"
#include "core/run/logits.h"
#include "core/run/open_model.h"

namespace forge::app {
namespace {

struct EvalOptions {
  std::string model;
  std::string data;
  std::optional<int64_t> step;
  std::optional<int> seq_len;
  std::optional<int> batch_size;
  std::string precision;
  std::string device = "auto";
  int threads = 0;
  bool json = false;
};

run::RunModel open_model(const Context& context, const EvalOptions& options) {
  run::RunModel model = context.open_model(options.model, options.step);
  context.find_files(model);
  print_skipped_checkpoints(model);
  config::TrainConfig& train = model.experiment.train;
  if (options.seq_len) train.seq_len = *options.seq_len;
  if (options.batch_size) train.eval_batch_size = *options.batch_size;
  set_precision(options.precision, train);
  return model;
}

/// "copy/rope_1l_16d" may be one of a folder.
bool names_config(const std::string& data) {
  const std::string extension = fs::path(data).extension().string();
  const bool is_path = starts_with(data, "/") || starts_with(data, ".");
  return !data.empty() && !is_path && !fs::exists(data) &&
         (extension.empty() || extension == ".yaml");
}

/// What --data names: something on the disk, else a config.
run::EvaluationData open_data(const Context& context,
                              const EvalOptions& options,
                              const run::RunModel& model) {
  ProgressLine line("preparing data");
  const data::Progress progress = line.reporter();
  const std::string& name = options.data;
  if (name.empty()) return run::own_evaluation_data(model, user_cache_dir(), progress);
  if (fs::exists(name)) return run::evaluation_data_at(model, name, user_cache_dir(), progress);
  if (!names_config(name))
    throw Error("no file or folder '" + name + "'", "--data also takes a config");
  const config::ResolvedConfig resolved = context.resolve(context.document(name), {});
  config::require_no_obstacles(resolved);
  require_training(resolved, "it has no data");
  return run::evaluation_data_of(
      model, resolved.experiment, resolved.config_name, user_cache_dir(), progress);
}

nlohmann::ordered_json to_json(const EvalOptions& options,
                               const run::RunModel& model,
                               const run::EvaluationData& data,
                               const run::ModelEvaluation& evaluation) {
  nlohmann::ordered_json json;
  json["model"] = model.name;
  json["step"] = model.step;
  json["data"] =
      options.data.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(options.data);
  json["loss"] = evaluation.loss;
  json["perplexity"] = evaluation.perplexity;
  json["bits_per_byte"] = or_null(evaluation.bits_per_byte);
  json["tokens"] = evaluation.tokens;
  json["bytes"] = evaluation.bytes;
  json["rows"] = data.rows();
  json["seq_len"] = model.experiment.train.seq_len;
  json["precision"] = config::name_of(model.experiment.train.precision);
  json["device"] = evaluation.device;
  json["seconds"] = evaluation.seconds;
  for (const auto& [name, score] : evaluation.scores) {
    json["scores"][name] = {{"value", score.value}, {"count", score.count}};
  }
  return json;
}

void print(const run::RunModel& model,
           const run::EvaluationData& data,
           const run::ModelEvaluation& evaluation) {
  std::cout << tables::printable(model.name) << ", step " << model.step << ", on "
            << tables::printable(data.name) << "\n";
  std::vector<std::vector<std::string>> lines = {
      {"  loss", results::fixed_text(evaluation.loss, 4), "nats per token"},
      {"  perplexity", results::fixed_text(evaluation.perplexity, 3), ""}};
  if (evaluation.bits_per_byte)
    lines.push_back({"  bits per byte", results::fixed_text(*evaluation.bits_per_byte, 4), ""});
  lines.push_back({"  tokens",
                   with_thousands(evaluation.tokens),
                   "in rows of " + std::to_string(model.experiment.train.seq_len)});
  for (const auto& [name, score] : evaluation.scores) {
    lines.push_back(
        {"  " + name, results::fixed_text(score.value, 4), "of " + with_thousands(score.count)});
  }
  if (evaluation.seconds > 0) {
    const double speed = static_cast<double>(evaluation.tokens) / evaluation.seconds;
    lines.push_back({"  tokens/s", with_thousands(std::llround(speed)), evaluation.device});
  }
  std::cout << aligned(lines, {1});
}

int eval(const Context& context, const EvalOptions& options) {
  if (!names_config(options.data)) context.require_no_template_arguments();
  const run::RunModel model = open_model(context, options);
  // The backend is asked before data is prepared and weights are read.
  const auto backend =
      context.backend_for(worker::Job::evaluate, model, options.device, options.threads);
  const run::EvaluationData data = open_data(context, options, model);
  print_new_warnings(data.warnings);
  ProgressLine line("evaluating");
  const run::ModelEvaluation evaluation =
      run::evaluate(model,
                    data,
                    options.device,
                    options.threads,
                    *backend,
                    context.launcher(),
                    [&](double fraction) { line.show(fraction, data.name); });
  line.clear();
  if (options.json) return print_json(to_json(options, model, data, evaluation));
  print(model, data, evaluation);
  return 0;
}

struct LogitsOptions {
  std::string model;
  std::string output;
  run::LogitsQuestion question;
  bool force = false;
  bool json = false;
};

int logits(const Context& context, const LogitsOptions& options) {
  if (path_exists(options.output) && !is_file(options.output))
    throw Error("'" + shown_path(options.output) +
                    "' is no file, and the tensors' file would take its place",
                "name a new file");
  if (!options.force)
    manage::require_replaceable(options.output, "name another file, or give --force");
  run::RunModel model = context.open_model(options.model);
  context.find_files(model);
  print_skipped_checkpoints(model);
  run::LogitsQuestion question = options.question;
  question.output = options.output;
  const auto backend =
      context.backend_for(worker::Job::logits, model, question.device, question.threads);
  const nlohmann::json values = run::write_logits(model, question, *backend, context.launcher());
  if (options.json) return print_json(values);
  std::cout << options.output << ": logits of " << question.rows << " × " << question.length
            << " tokens, " << human_bytes(values.at("bytes").get<double>()) << "\n";
  return 0;
}

}  // namespace

void add_eval(const Command& app) {
  const auto [command, options] =
      app.add_command("eval", "Compute loss, perplexity and bits per byte of a model", eval);
  command
      .details(
          "--data is a text file, a folder of .txt files, a token file, a folder of prepared data, "
          "or a config, whose evaluation rows are used. Every token but the first is scored once, "
          "with at most --seq-len tokens before it as context.")
      .examples(
          "forge eval train_llama-5a0c1f0e9b21                        the loss of training again\n"
          "forge eval train_llama-5a0c1f0e9b21 --data novel.txt --json\n"
          "forge eval train_llama-5a0c --data train_llama --seq-len 256 --step 300\n"
          "forge eval exported_folder --data texts/ --precision float64")
      .see_also("forge generate, forge logits");
  add_model_argument(command, options.model);
  command.add_option("--data <PATH|CONFIG>",
                     options.data,
                     "Data to evaluate on [default: the run's evaluation rows]. Arguments of the "
                     "config's templates may follow");
  add_step_option(command, options.step);
  command.add_option("--seq-len", options.seq_len, "Tokens per row [default: train.seq_len]")
      .at_least(1);
  command
      .add_option(
          "--batch-size", options.batch_size, "Rows per batch [default: train.eval_batch_size]")
      .at_least(1);
  add_precision_option(command, options.precision);
  add_device_options(command, options.device, options.threads);
  add_allow_command_option(command);
  add_template_options(command);
  add_json_option(command, options.json);
}

void add_logits(const Command& app) {
  const auto [command, options] =
      app.add_command("logits",
                      "Write a model's logits for random tokens, to compare with another program",
                      logits);
  command
      .details("The file holds the tensors input_ids and logits, as scripts/check-hf reads them.")
      .examples(
          "forge logits train_llama-5a0c1f0e9b21 logits.safetensors\n"
          "forge logits exported_folder logits.safetensors --rows 4 --length 128 --device cpu")
      .see_also("forge export-hf, docs/HUGGING_FACE.md");
  add_model_argument(command, options.model);
  command.add_option("FILE", options.output, "Safetensors file to write").required();
  command.add_option("--rows", options.question.rows, "Number of rows").show_default();
  command.add_option("--length", options.question.length, "Tokens per row").show_default();
  command.add_option("--seed", options.question.seed, "Seed of the token ids").show_default();
  add_device_options(command, options.question.device, options.question.threads);
  add_allow_command_option(command);
  command.add_flag("--force", options.force, "Replace a file that holds anything but logits");
  add_json_option(command, options.json);
}

}  // namespace forge::app

#include <cmath>
#include <iostream>

#include "app/commands.h"
#include "app/output.h"
#include "app/progress_line.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/config/fields.h"
#include "core/config/resolve.h"
#include "core/run/evaluate.h"
#include "core/run/local_launcher.h"
#include "core/run/open_model.h"
#include "core/run/supported.h"

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
  run::RunModel model = run::open_model(context.runs_dir(), options.model, options.step);
  config::TrainConfig& train = model.experiment.train;
  if (options.seq_len) train.seq_len = *options.seq_len;
  if (options.batch_size) train.eval_batch_size = *options.batch_size;
  if (options.precision == "float32") train.precision = config::Precision::float32;
  if (options.precision == "float64") train.precision = config::Precision::float64;
  return model;
}

/// What --data names: something on the disk, else a config.
run::EvaluationData open_data(const Context& context,
                              const EvalOptions& options,
                              const run::RunModel& model) {
  ProgressLine line("preparing data");
  const data::Progress progress = [&](double fraction, const std::string& phase) {
    line.show(fraction, phase);
  };
  const std::string& wanted = options.data;
  if (wanted.empty()) return run::own_evaluation_data(model, user_cache_dir(), progress);
  if (fs::exists(wanted)) return run::evaluation_data_at(model, wanted, user_cache_dir(), progress);
  if (wanted.find('/') != std::string::npos)
    throw Error("there is no file or folder '" + wanted + "'", {}, "--data also takes a config");
  const ChosenConfig config = context.config(wanted);
  config::ResolveOptions resolve_options;
  resolve_options.surroundings = context.surroundings();
  const config::ResolvedConfig resolved =
      config::resolve(config.project, config.config.name, resolve_options);
  config::require_no_obstacles(resolved);
  if (!resolved.trains) {
    throw Error("'" + config.config.name + "' is a model for other configs to use: it has no data",
                {},
                "name a training config; 'forge ls' lists them");
  }
  return run::evaluation_data_of(
      model, resolved.experiment, config.config.name, user_cache_dir(), progress);
}

/// Before data is prepared and a model read for nothing.
void require_backend(const Context& context,
                     const EvalOptions& options,
                     const run::RunModel& model) {
  run::LocalLauncher launcher;
  run::require_readable(
      protocol::Job::evaluate,
      model.experiment,
      context.backend(model.experiment)->describe(launcher, options.device, options.threads));
}

run::ModelEvaluation evaluate(const Context& context,
                              const EvalOptions& options,
                              const run::RunModel& model,
                              const run::EvaluationData& data) {
  ProgressLine line("evaluating");
  const auto backend = context.backend(model.experiment);
  run::LocalLauncher launcher;
  return run::evaluate(
      model, data, options.device, options.threads, *backend, launcher, [&](double fraction) {
        line.show(fraction, data.name);
      });
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
  json["bits_per_byte"] = evaluation.bits_per_byte
                              ? nlohmann::ordered_json(*evaluation.bits_per_byte)
                              : nlohmann::ordered_json();
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

std::string digits(double value, int count) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", count, value);
  return text;
}

void print(const run::RunModel& model,
           const run::EvaluationData& data,
           const run::ModelEvaluation& evaluation) {
  std::cout << model.name << ", step " << model.step << ", on " << data.name << "\n";
  std::vector<std::vector<std::string>> lines = {
      {"  loss", digits(evaluation.loss, 4), "nats a token"},
      {"  perplexity", digits(evaluation.perplexity, 3), ""}};
  if (evaluation.bits_per_byte)
    lines.push_back({"  bits per byte", digits(*evaluation.bits_per_byte, 4), ""});
  lines.push_back({"  tokens",
                   with_thousands(evaluation.tokens),
                   "in rows of " + std::to_string(model.experiment.train.seq_len)});
  for (const auto& [name, score] : evaluation.scores) {
    lines.push_back({"  " + name, digits(score.value, 4), "of " + with_thousands(score.count)});
  }
  if (evaluation.seconds > 0) {
    const double speed = static_cast<double>(evaluation.tokens) / evaluation.seconds;
    lines.push_back({"  tokens/s", with_thousands(std::llround(speed)), evaluation.device});
  }
  std::cout << aligned(lines, {1});
}

int eval(const Context& context, const EvalOptions& options) {
  const run::RunModel model = open_model(context, options);
  require_backend(context, options, model);
  const run::EvaluationData data = open_data(context, options, model);
  const run::ModelEvaluation evaluation = evaluate(context, options, model, data);
  if (options.json) {
    print_json(to_json(options, model, data, evaluation));
  } else {
    print(model, data, evaluation);
  }
  return 0;
}

}  // namespace

void add_eval(const Command& app, Program& program) {
  auto options = std::make_shared<EvalOptions>();
  const Command command =
      app.add_subcommand("eval", "Loss, perplexity and bits per byte of a model on any data");
  command.footer(
      "Examples:\n"
      "  forge eval train_llama-5a0c1f0e9b21                        what training reported, again\n"
      "  forge eval train_llama-5a0c1f0e9b21 --data novel.txt --json\n"
      "  forge eval train_llama-5a0c --data train_llama --seq-len 256 --step 300\n"
      "  forge eval exported_folder --data texts/ --precision float64\n"
      "\n"
      "--data is a text file, a folder of .txt files, a token file (or the folder of prepared "
      "data\n"
      "that holds one), or a config, whose held-out rows are taken. Every token but the first is\n"
      "scored once and weighs the same, with at most --seq-len tokens before it in view.");
  command.add_option("model", options->model, "A run, or a model folder of Hugging Face")
      .required()
      .type_name("RUN|DIR");
  command.add_option("--data", options->data, "What to evaluate on; a run's own held-out rows")
      .type_name("PATH|CONFIG");
  command.add_option("--step", options->step, "Checkpoint of the run; the newest").non_negative();
  command.add_option("--seq-len", options->seq_len, "Tokens of a row; train.seq_len").positive();
  command.add_option("--batch-size", options->batch_size, "Rows at once; train.eval_batch_size")
      .positive();
  command.add_option("--precision", options->precision, "float32 or float64; train.precision")
      .one_of({"float32", "float64"});
  command.add_option("--device", options->device, "auto, cpu, cuda or cuda:N").capture_default();
  command.add_option("--threads", options->threads, "CPU threads; 0: all cores")
      .non_negative()
      .capture_default();
  command.add_flag("--json", options->json, "As JSON");
  add_project_option(command, program);
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return eval(c, *options); };
  });
}

}  // namespace forge::app

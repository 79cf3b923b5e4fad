#include "core/run/logits.h"

#include <iostream>

#include "app/commands.h"
#include "app/output.h"
#include "core/base/text.h"
#include "core/run/local_launcher.h"
#include "core/run/open_model.h"
#include "core/run/supported.h"

namespace forge::app {
namespace {

struct LogitsOptions {
  std::string model;
  std::string output;
  run::LogitsQuestion question;
  bool json = false;
};

int logits(const Context& context, const LogitsOptions& options) {
  const run::RunModel model = run::open_model(context.runs_dir(), options.model);
  run::LogitsQuestion question = options.question;
  question.output = options.output;
  const auto backend = context.backend(model.experiment);
  run::LocalLauncher launcher;
  run::require_readable(protocol::Job::logits,
                        model.experiment,
                        backend->describe(launcher, question.device, question.threads));
  const nlohmann::json values = run::write_logits(model, question, *backend, launcher);
  if (options.json) {
    print_json(values);
  } else {
    std::cout << options.output << ": logits of " << question.rows << " × " << question.length
              << " tokens, " << human_bytes(values.at("bytes").get<double>()) << "\n";
  }
  return 0;
}

}  // namespace

void add_logits(const Command& app, Program& program) {
  auto options = std::make_shared<LogitsOptions>();
  const Command command = app.add_subcommand(
      "logits", "Write a model's logits for random tokens, to compare them with another program's");
  command.footer(
      "Examples:\n"
      "  forge logits train_llama-5a0c1f0e9b21 logits.safetensors\n"
      "  forge logits exported_folder logits.safetensors --rows 4 --length 128 --device cpu\n"
      "\n"
      "The file holds input_ids and logits, as scripts/check-hf reads them.");
  command.add_option("model", options->model, "A run, or a model folder of Hugging Face")
      .required()
      .type_name("RUN|DIR");
  command.add_option("output", options->output, "Safetensors file to write")
      .required()
      .type_name("FILE");
  command.add_option("--rows", options->question.rows, "Rows").capture_default();
  command.add_option("--length", options->question.length, "Tokens of a row").capture_default();
  command.add_option("--seed", options->question.seed, "Of the token ids").capture_default();
  command.add_option("--device", options->question.device, "auto, cpu, cuda or cuda:N")
      .capture_default();
  command.add_option("--threads", options->question.threads, "CPU threads; 0: all cores")
      .non_negative()
      .capture_default();
  command.add_flag("--json", options->json, "As JSON");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return logits(c, *options); };
  });
}

}  // namespace forge::app

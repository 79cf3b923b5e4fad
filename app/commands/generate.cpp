#include "core/run/generate.h"

#include <unistd.h>

#include <cmath>
#include <iostream>
#include <iterator>

#include "app/commands.h"
#include "app/output.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/config/fields.h"
#include "core/report/display_text.h"
#include "core/run/local_launcher.h"
#include "core/run/open_model.h"
#include "core/run/supported.h"

namespace forge::app {
namespace {

using run::Generated;
using run::GeneratedSample;
using run::GenerationQuestion;

struct GenerateOptions {
  std::string model;
  std::vector<std::string> prompt_files;
  std::optional<int64_t> step;
  std::string precision;
  GenerationQuestion question;
  bool no_cache = false;
  bool json = false;
};

/// The whole file, or stdin for "-", without the line end that editors and echo put behind it.
std::string prompt_of(const std::string& file) {
  std::string text =
      file == "-" ? std::string(std::istreambuf_iterator<char>(std::cin), {}) : read_file(file);
  if (ends_with(text, "\n")) text.pop_back();
  if (ends_with(text, "\r")) text.pop_back();
  return text;
}

/// What a model writes must not steer the terminal; its lines stay lines.
std::string for_terminal(const std::string& text) {
  std::vector<std::string> lines = split(text, '\n');
  for (std::string& line : lines) line = report::printable(line);
  return join(lines, "\n");
}

std::string shown(const std::string& text) {
  return is_terminal(STDOUT_FILENO) ? for_terminal(text) : text;
}

std::string tokens_text(int64_t count) {
  return with_thousands(count) + (count == 1 ? " token" : " tokens");
}

std::string pace_text(const std::string& phase, const run::Pace& pace) {
  std::string text = phase + " " + tokens_text(pace.tokens);
  if (pace.tokens > 0)
    text += " at " + with_thousands(std::llround(pace.tokens_per_second())) + " tok/s";
  return text;
}

std::string ending_text(const GeneratedSample& sample) {
  return tokens_text(static_cast<int64_t>(sample.ids.size())) + ", ended by " +
         run::describe(sample.ended);
}

void print_summary(const Generated& generated) {
  std::string text =
      pace_text("prefill", generated.prefill) + ", " + pace_text("decode", generated.decode);
  if (generated.samples.size() == 1) text = ending_text(generated.samples[0]) + "; " + text;
  text += " on " + generated.environment.device_name;
  std::cerr << styled(text, Style::dim, use_colour(STDERR_FILENO)) << "\n";
}

/// Prints the only sample as it comes; where a person reads, its prompt in front of it.
void print_one(const run::RunModel& model,
               const GenerationQuestion& question,
               const run::Backend& backend) {
  run::LocalLauncher launcher;
  bool prompt_is_due = is_terminal(STDOUT_FILENO);
  const auto print = [&](const GeneratedSample&, const std::string& piece) {
    if (prompt_is_due) {
      const bool colour = use_colour(STDOUT_FILENO);
      std::cout << styled(for_terminal(question.prompts[0]), Style::dim, colour);
    }
    prompt_is_due = false;
    std::cout << shown(piece) << std::flush;
  };
  const Generated generated = run::generate(model, question, backend, launcher, print);
  if (!ends_with(generated.samples[0].text, "\n")) std::cout << "\n";
  std::cout << std::flush;
  print_summary(generated);
}

std::string heading(const GenerationQuestion& question, const GeneratedSample& sample) {
  constexpr size_t longest = 60;
  std::string text = "prompt " + std::to_string(sample.prompt + 1);
  if (question.samples > 1) text += ", sample " + std::to_string(sample.sample + 1);
  std::string prompt = report::printable(question.prompts[sample.prompt]);
  if (report::display_width(prompt) > static_cast<int>(longest)) {
    const std::vector<std::string> lines = report::wrap(prompt, longest);
    prompt = (lines.empty() ? "" : lines[0]) + " …";
  }
  return "== " + text + ": " + prompt + " (" + ending_text(sample) + ")";
}

void print_all(const run::RunModel& model,
               const GenerationQuestion& question,
               const run::Backend& backend) {
  run::LocalLauncher launcher;
  const Generated generated = run::generate(
      model, question, backend, launcher, [](const GeneratedSample&, const std::string&) {});
  for (const GeneratedSample& sample : generated.samples) {
    const bool colour = use_colour(STDOUT_FILENO);
    std::cout << styled(heading(question, sample), Style::bold, colour) << "\n"
              << shown(sample.text) << (ends_with(sample.text, "\n") ? "\n" : "\n\n");
  }
  std::cout << std::flush;
  print_summary(generated);
}

nlohmann::ordered_json pace_json(const run::Pace& pace) {
  return {{"tokens", pace.tokens},
          {"seconds", pace.seconds},
          {"tokens_per_second", pace.tokens_per_second()}};
}

void print_generated_json(const run::RunModel& model,
                          const GenerationQuestion& question,
                          const run::Backend& backend) {
  run::LocalLauncher launcher;
  const Generated generated = run::generate(
      model, question, backend, launcher, [](const GeneratedSample&, const std::string&) {});
  nlohmann::ordered_json json;
  json["model"] = model.name;
  json["step"] = model.step;
  json["temperature"] = question.sampling.temperature;
  json["top_k"] = question.sampling.top_k;
  json["top_p"] = question.sampling.top_p;
  json["seed"] = question.seed;
  json["max_tokens"] = question.max_tokens;
  json["stop"] = question.stop;
  json["cache"] = question.cache;
  json["precision"] = config::name_of(model.experiment.train.precision);
  json["device_type"] = generated.environment.device_type;
  json["device"] = generated.environment.device_name;
  json["threads"] = generated.environment.threads;
  json["prompts"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i < question.prompts.size(); ++i) {
    json["prompts"].push_back(
        {{"text", question.prompts[i]}, {"tokens", generated.prompt_tokens[i]}});
  }
  json["samples"] = nlohmann::ordered_json::array();
  for (const GeneratedSample& sample : generated.samples) {
    json["samples"].push_back(
        {{"prompt", sample.prompt},
         {"sample", sample.sample},
         {"text", sample.text},
         {"tokens", sample.ids.size()},
         {"ids", sample.ids},
         {"ended", protocol::names_of(sample.ended)[static_cast<size_t>(sample.ended)]}});
  }
  json["prefill"] = pace_json(generated.prefill);
  json["decode"] = pace_json(generated.decode);
  print_json(json);
}

run::RunModel open_model(const Context& context, const GenerateOptions& options) {
  run::RunModel model = run::open_model(context.runs_dir(), options.model, options.step);
  config::Precision& precision = model.experiment.train.precision;
  if (options.precision == "float32") precision = config::Precision::float32;
  if (options.precision == "float64") precision = config::Precision::float64;
  return model;
}

int generate(const Context& context, const GenerateOptions& options) {
  GenerationQuestion question = options.question;
  question.cache = !options.no_cache;
  for (const std::string& file : options.prompt_files) question.prompts.push_back(prompt_of(file));
  run::check(question);
  const run::RunModel model = open_model(context, options);
  const auto backend = context.backend(model.experiment);
  run::LocalLauncher launcher;
  run::require_readable(protocol::Job::generate,
                        model.experiment,
                        backend->describe(launcher, question.device, question.threads));
  if (options.json) {
    print_generated_json(model, question, *backend);
  } else if (question.prompts.size() == 1 && question.samples == 1) {
    print_one(model, question, *backend);
  } else {
    print_all(model, question, *backend);
  }
  return 0;
}

void add_sampling_options(const Command& command, GenerationQuestion& question) {
  command
      .add_option("--temperature",
                  question.sampling.temperature,
                  "Logits are divided by it; 0: always the likeliest token")
      .capture_default();
  command
      .add_option(
          "--top-k", question.sampling.top_k, "Draw from the N likeliest tokens; 0: from all")
      .type_name("N")
      .capture_default();
  command
      .add_option("--top-p",
                  question.sampling.top_p,
                  "Draw from the likeliest tokens that together have this probability")
      .capture_default();
  command
      .add_option("--seed", question.seed, "The same seed gives the same text from the same logits")
      .capture_default();
}

void add_repeatable(const Command& command,
                    const std::string& name,
                    std::vector<std::string>& values,
                    const std::string& help,
                    const std::string& type) {
  command.add_option(name, values, help).type_name(type).repeated();
}

}  // namespace

void add_generate(const Command& app, Program& program) {
  auto options = std::make_shared<GenerateOptions>();
  GenerationQuestion& question = options->question;
  const Command command = app.add_subcommand("generate", "Let a model go on with a text");
  command.footer(
      "Examples:\n"
      "  forge generate train_llama-5a0c1f0e9b21 --prompt \"Once upon a time\"\n"
      "  forge generate train_llama-5a --prompt \"The dog\" --temperature 0 --stop \".\"\n"
      "  forge generate exported_folder --prompt \"The dog\" --prompt \"The cat\" --samples 3\n"
      "  echo \"Once upon a time\" | forge generate train_llama-5a --prompt-file - --top-p 0.9\n"
      "\n"
      "One sample is printed as it comes, several under headings when all are done. Each prompt "
      "is\n"
      "a document of its own. A sample ends at the end of its document, at a stop text (which is "
      "not\n"
      "printed), after --max-tokens, or when the row is as long as those of training.");
  command.add_option("model", options->model, "A run, or a model folder of Hugging Face")
      .required()
      .type_name("RUN|DIR");
  add_repeatable(
      command, "--prompt", question.prompts, "Text to go on with; may be repeated", "TEXT");
  add_repeatable(command,
                 "--prompt-file",
                 options->prompt_files,
                 "File with such a text, '-' for stdin; may be repeated",
                 "FILE");
  command.add_option("--samples", question.samples, "Samples of each prompt")
      .type_name("N")
      .capture_default();
  command.add_option("--max-tokens", question.max_tokens, "Longest sample")
      .type_name("N")
      .capture_default();
  add_repeatable(command,
                 "--stop",
                 question.stop,
                 "Text that ends a sample, in front of it; may be repeated",
                 "TEXT");
  add_sampling_options(command, question);
  command
      .add_option("--step", options->step, "Checkpoint of the run to take; without it the newest")
      .type_name("N");
  command.add_flag("--no-cache",
                   options->no_cache,
                   "Compute every token from its whole row again: slow, the same tokens");
  command.add_option("--batch-size", question.batch_size, "Samples at a time")
      .type_name("N")
      .capture_default();
  command.add_option("--precision", options->precision, "float32 or float64; train.precision")
      .one_of({"float32", "float64"});
  command.add_option("--device", question.device, "auto, cpu, cuda or cuda:N").capture_default();
  command.add_option("--threads", question.threads, "CPU threads; 0: all cores")
      .non_negative()
      .capture_default();
  command.add_flag("--json", options->json, "As JSON");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return generate(c, *options); };
  });
}

}  // namespace forge::app

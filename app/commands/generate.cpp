#include "core/run/generate.h"

#include <cmath>
#include <iostream>
#include <iterator>

#include "app/command_line.h"
#include "app/runs.h"
#include "app/terminal.h"
#include "core/base/display_text.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/config/fields.h"
#include "core/run/open_model.h"

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
std::string read_prompt(const std::string& file) {
  std::string text =
      file == "-" ? std::string(std::istreambuf_iterator<char>(std::cin), {}) : read_file(file);
  if (ends_with(text, "\n")) text.pop_back();
  if (ends_with(text, "\r")) text.pop_back();
  return text;
}

std::string tokens_text(int64_t count) {
  return with_thousands(count) + (count == 1 ? " token" : " tokens");
}

std::string throughput_text(const std::string& phase, const run::Throughput& throughput) {
  std::string text = phase + " " + tokens_text(throughput.tokens);
  if (throughput.tokens > 0)
    text += " at " + with_thousands(std::llround(throughput.tokens_per_second())) + " tok/s";
  return text;
}

std::string ending_text(const GeneratedSample& sample) {
  return tokens_text(static_cast<int64_t>(sample.ids.size())) + ", ended by " +
         run::describe(sample.ended);
}

void print_summary(const Generated& generated) {
  std::string text = throughput_text("prefill", generated.prefill) + ", " +
                     throughput_text("decode", generated.decode);
  if (generated.samples.size() == 1) text = ending_text(generated.samples[0]) + "; " + text;
  text += " on " + generated.environment.device_name;
  std::cerr << styled(text, Style::dim, STDERR_FILENO) << "\n";
}

std::string heading(const GenerationQuestion& question, const GeneratedSample& sample) {
  constexpr size_t longest = 60;
  std::string text = "prompt " + std::to_string(sample.prompt + 1);
  if (question.samples > 1) text += ", sample " + std::to_string(sample.sample + 1);
  std::string prompt = tables::printable(question.prompts[sample.prompt]);
  if (tables::display_width(prompt) > static_cast<int>(longest)) {
    const std::vector<std::string> lines = tables::wrap(prompt, longest);
    prompt = (lines.empty() ? "" : lines[0]) + " …";
  }
  return "== " + text + ": " + prompt + " (" + ending_text(sample) + ")";
}

void print_samples(const GenerationQuestion& question, const Generated& generated) {
  for (const GeneratedSample& sample : generated.samples) {
    std::cout << styled(heading(question, sample), Style::bold) << "\n";
    print_bytes(sample.text);
    std::cout << (ends_with(sample.text, "\n") ? "\n" : "\n\n");
  }
}

nlohmann::ordered_json throughput_json(const run::Throughput& throughput) {
  return {{"tokens", throughput.tokens},
          {"seconds", throughput.seconds},
          {"tokens_per_second", throughput.tokens_per_second()}};
}

nlohmann::ordered_json to_json(const run::RunModel& model,
                               const GenerationQuestion& question,
                               const Generated& generated) {
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
         {"ended", worker::names_of(sample.ended)[static_cast<size_t>(sample.ended)]}});
  }
  json["prefill"] = throughput_json(generated.prefill);
  json["decode"] = throughput_json(generated.decode);
  return json;
}

int generate(const Context& context, const GenerateOptions& options) {
  GenerationQuestion question = options.question;
  question.cache = !options.no_cache;
  for (const std::string& file : options.prompt_files)
    question.prompts.push_back(read_prompt(file));
  run::check_generation(question);
  run::RunModel model = context.open_model(options.model, options.step);
  context.find_files(model);
  print_skipped_checkpoints(model);
  set_precision(options.precision, model.experiment.train);
  const auto backend =
      context.backend_for(worker::Job::generate, model, question.device, question.threads);
  // The only sample is printed while it is generated, for a reader at a terminal with its prompt.
  const bool streams = !options.json && question.prompts.size() == 1 && question.samples == 1;
  bool prompt_is_due = is_terminal(STDOUT_FILENO);
  const auto print_piece = [&](const GeneratedSample&, const std::string& piece) {
    if (!streams) return;
    if (prompt_is_due)
      std::cout << styled(tables::printable_lines(question.prompts[0]), Style::dim);
    prompt_is_due = false;
    print_bytes(piece);
    std::cout.flush();
  };
  const Generated generated =
      run::generate(model, question, *backend, context.launcher(), print_piece);
  if (options.json) return print_json(to_json(model, question, generated));
  if (!streams) print_samples(question, generated);
  if (streams && !ends_with(generated.samples[0].text, "\n")) std::cout << "\n";
  std::cout << std::flush;
  print_summary(generated);
  return 0;
}

}  // namespace

void add_generate(const Command& app) {
  const auto [command, options] =
      app.add_command("generate", "Generate text from a prompt", generate);
  GenerationQuestion& question = options.question;
  command
      .details(
          "One sample is printed while it is generated, several with headings when all are done. "
          "A sample ends at the end of its document, at a stop text (which is not printed), after "
          "--max-tokens, or when it reaches the sequence length of training.")
      .examples(
          "forge generate train_llama-5a0c1f0e9b21 --prompt \"Once upon a time\"\n"
          "forge generate train_llama-5a --prompt \"The dog\" --temperature 0 --stop \".\"\n"
          "forge generate exported_folder --prompt \"The dog\" --prompt \"The cat\" --samples 3\n"
          "echo \"Once upon a time\" | forge generate train_llama-5a --prompt-file - --top-p 0.9")
      .see_also("forge eval, forge export-hf");
  add_model_argument(command, options.model);
  command.heading("Prompts and samples");
  command.add_option("--prompt <TEXT>", question.prompts, "Text to continue").repeated();
  command
      .add_option("--prompt-file <FILE>", options.prompt_files, "File with a prompt, - for stdin")
      .repeated();
  command.add_option("--samples", question.samples, "Samples per prompt").show_default();
  command.add_option("--max-tokens", question.max_tokens, "Maximum tokens per sample")
      .show_default();
  command.add_option("--stop <TEXT>", question.stop, "Text that ends a sample").repeated();
  command.heading("Sampling");
  command.add_option("--temperature", question.sampling.temperature, "Temperature; 0 is greedy")
      .show_default();
  command
      .add_option("--top-k", question.sampling.top_k, "Sample from the N likeliest tokens; 0: all")
      .show_default();
  command
      .add_option("--top-p <P>",
                  question.sampling.top_p,
                  "Sample from the likeliest tokens with this total probability")
      .show_default();
  command.add_option("--seed", question.seed, "Seed of the random numbers").show_default();
  command.heading("Options");
  add_step_option(command, options.step);
  command.add_flag(
      "--no-cache", options.no_cache, "Do not cache keys and values: slower, the same tokens");
  command.add_option("--batch-size", question.batch_size, "Samples per batch").show_default();
  add_precision_option(command, options.precision);
  add_device_options(command, question.device, question.threads);
  add_allow_command_option(command);
  add_json_option(command, options.json);
}

}  // namespace forge::app

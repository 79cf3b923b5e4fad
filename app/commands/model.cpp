#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/output.h"
#include "app/terminal.h"
#include "core/base/text.h"
#include "core/config/fields.h"
#include "core/config/resolve.h"
#include "core/model/summary.h"

namespace forge::app {
namespace {

struct ModelOptions {
  std::string config;
  std::vector<std::string> overrides;
  int batch_size = 0;  ///< 0: the config's
  int seq_len = 0;
  bool json = false;
};

using Lines = std::vector<std::vector<std::string>>;

std::string operations(double flops) { return with_thousands(std::llround(flops)); }

Lines parameter_lines(const model::ParameterCounts& counts) {
  Lines lines = {{"Weights", "", ""}};
  const auto add = [&](const std::string& name, int64_t count) {
    char share[16];
    std::snprintf(share, sizeof share, "%.1f %%", 100.0 * double(count) / double(counts.total()));
    lines.push_back({"  " + name, with_thousands(count), share});
  };
  for (size_t i = 0; i < model::part_count; ++i) {
    const auto part = static_cast<model::Part>(i);
    if (counts.of(part) > 0) add(model::name_of(part), counts.of(part));
  }
  add("total", counts.total());
  return lines;
}

Lines flops_lines(const model::TokenFlops& flops) {
  Lines lines = {{"Operations a token", "forward", "backward", "total"}};
  const auto add = [&](const char* name, double forward) {
    lines.push_back({std::string("  ") + name,
                     operations(forward),
                     operations(2 * forward),
                     operations(3 * forward)});
  };
  add("projections", flops.projections);
  add("attention", flops.attention);
  if (flops.canon > 0) add("canon", flops.canon);
  add("lm_head", flops.lm_head);
  add("total", flops.forward());
  return lines;
}

Lines byte_lines(const model::TrainingBytes& bytes) {
  return {{"Memory", ""},
          {"  weights", human_bytes(double(bytes.weights))},
          {"  gradients", human_bytes(double(bytes.gradients))},
          {"  optimizer", human_bytes(double(bytes.optimizer))},
          {"  activations", human_bytes(double(bytes.activations))},
          {"  logits_gradient", human_bytes(double(bytes.logits_gradient))},
          {"  total", human_bytes(double(bytes.total()))}};
}

void print(const std::string& name,
           const config::TrainConfig& train,
           const model::Summary& summary) {
  std::cout << name << ", " << train.batch_size << " rows of " << train.seq_len << " tokens, "
            << config::name_of(train.precision) << "\n\n"
            << aligned(parameter_lines(summary.parameters), {1, 2}) << "\n"
            << aligned(flops_lines(summary.flops), {1, 2, 3}) << "\n"
            << aligned(byte_lines(summary.bytes), {1});
}

int show_model(const Context& context, const ModelOptions& options) {
  const ChosenConfig chosen = context.config(options.config);
  config::ResolveOptions resolve_options;
  resolve_options.overrides = options.overrides;
  resolve_options.surroundings = context.surroundings();
  resolve_options.variables = chosen.variables;
  const config::ResolvedConfig resolved =
      config::resolve(chosen.project, chosen.config.name, resolve_options);
  config::TrainConfig train = resolved.experiment.train;
  if (options.batch_size > 0) train.batch_size = options.batch_size;
  if (options.seq_len > 0) train.seq_len = options.seq_len;
  const model::Summary summary = model::summarize(resolved.experiment.model, train);
  if (!options.json) {
    print(resolved.config_name, train, summary);
    return 0;
  }
  nlohmann::json json = model::to_json(summary);
  json["config"] = resolved.config_name;
  json["batch_size"] = train.batch_size;
  json["seq_len"] = train.seq_len;
  json["precision"] = config::name_of(train.precision);
  print_json(json);
  return 0;
}

}  // namespace

void add_model(const Command& app, Program& program) {
  auto options = std::make_shared<ModelOptions>();
  const Command command = app.add_subcommand(
      "model", "Count a model's weights, operations and memory, without building it");
  command.footer(
      "A multiply-add is two operations; causal attention counts as half of the full square. The "
      "total of the memory is a little above the peak of a step on a CPU.\n"
      "Examples:\n"
      "  forge model train_canon_ac --set profile=full\n"
      "  forge model 4M --batch-size 8 --seq-len 2048\n"
      "  forge model train_llama --json");
  add_config_options(command, program, options->config);
  add_set_option(command, options->overrides);
  command.add_option("--batch-size", options->batch_size, "Rows of a step, instead of the config's")
      .between(1, 1 << 20);
  command.add_option("--seq-len", options->seq_len, "Tokens of a row, instead of the config's")
      .between(1, 1 << 24);
  command.add_flag("--json", options->json, "As JSON; bytes and operations as plain numbers");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return show_model(c, *options); };
  });
}

}  // namespace forge::app

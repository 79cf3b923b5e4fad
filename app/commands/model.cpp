#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "app/command_line.h"
#include "app/terminal.h"
#include "core/base/display_text.h"
#include "core/base/text.h"
#include "core/config/fields.h"
#include "core/config/resolve.h"
#include "core/model/cost.h"

namespace forge::app {
namespace {

struct ModelOptions : ConfigOptions {
  int batch_size = 0;  ///< 0: the config's
  int seq_len = 0;
  bool json = false;
};

using Lines = std::vector<std::vector<std::string>>;

std::string operations(double flops) { return with_thousands(std::llround(flops)); }

Lines parameter_lines(const model::ParameterCounts& counts) {
  Lines lines = {{"Parameters", "", ""}};
  const auto add = [&](const std::string& name, int64_t count) {
    char share[16];
    std::snprintf(share, sizeof share, "%.1f %%", 100.0 * double(count) / double(counts.total()));
    lines.push_back({"  " + name, with_thousands(count), share});
  };
  for (const auto& [part, count] : counts.parts()) add(part, count);
  add("total", counts.total());
  return lines;
}

Lines flops_lines(const model::TokenFlops& flops) {
  Lines lines = {{"FLOPs per token", "forward", "backward", "total"}};
  const auto add = [&](const std::string& name, double forward) {
    lines.push_back(
        {"  " + name, operations(forward), operations(2 * forward), operations(3 * forward)});
  };
  add("projections", flops.projections);
  for (const auto& [kind, forward] : flops.mixing) add(kind, forward);
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

Lines state_lines(const model::StateSize& state) {
  return {{"Generation state of a row", "numbers"},
          {"  a token", with_thousands(state.per_token)},
          {"  fixed", with_thousands(state.fixed)}};
}

/// What of the numbers above forge did not derive.
std::string notes_on_own_blocks(const model::ModelConfig& model) {
  std::string notes;
  for (const auto& [name, block] : model.blocks) {
    notes += "\n" + name + " (" + block.file + "): FLOPs " +
             (model::has_counted_flops(block) ? "counted from one row's matrix products"
                                              : "as the block declares them") +
             ", activations measured on one row, text is generated without a cache\n";
  }
  return notes;
}

void print(const std::string& name, const config::Experiment& experiment) {
  const config::TrainConfig& train = experiment.train;
  const model::ModelConfig& model = experiment.model;
  std::cout << tables::printable(name) << ", " << train.batch_size << " rows of " << train.seq_len
            << " tokens, " << config::name_of(train.precision) << "\n\n"
            << aligned(parameter_lines(model::count_parameters(model)), {1, 2}) << "\n"
            << aligned(flops_lines(model::flops_per_token(model, train.seq_len)), {1, 2, 3}) << "\n"
            << aligned(byte_lines(model::training_bytes(model, experiment.training_shape())), {1})
            << "\n"
            << aligned(state_lines(model::generation_state(model)), {1})
            << notes_on_own_blocks(model);
}

int show_model(const Context& context, const ModelOptions& options) {
  config::ResolvedConfig resolved =
      context.resolve(context.document(options.config), options.overrides);
  context.describe_own_blocks(resolved);
  config::TrainConfig& train = resolved.experiment.train;
  if (options.batch_size > 0) train.batch_size = options.batch_size;
  if (options.seq_len > 0) train.seq_len = options.seq_len;
  const model::ModelConfig& model = resolved.experiment.model;
  if (!options.json) {
    print(resolved.config_name, resolved.experiment);
    return 0;
  }
  nlohmann::json json = model::cost_to_json(model, resolved.experiment.training_shape());
  for (const auto& [name, block] : model.blocks)
    json["own_blocks"][name] = {
        {"file", block.file}, {"flops", model::has_counted_flops(block) ? "counted" : "declared"}};
  json["config"] = resolved.config_name;
  json["batch_size"] = train.batch_size;
  json["seq_len"] = train.seq_len;
  json["precision"] = config::name_of(train.precision);
  return print_json(json);
}

}  // namespace

void add_model(const Command& app) {
  const auto [command, options] = app.add_command(
      "model", "Count a model's parameters, FLOPs and memory without building it", show_model);
  command
      .details(
          "A multiply-add counts as two FLOPs, causal attention as half of the full square. The "
          "memory total is slightly above the peak of a training step on a CPU.")
      .examples(
          "forge model train_canon_ac --set profile=full\n"
          "forge model 4M --batch-size 8 --seq-len 2048\n"
          "forge model train_llama --json")
      .see_also("forge bench, docs/MATHEMATICS.md");
  add_config_options(command, options);
  command.add_option("--batch-size", options.batch_size, "Rows per step [default: the config's]")
      .between(1, 1 << 20);
  command.add_option("--seq-len", options.seq_len, "Tokens per row [default: the config's]")
      .between(1, 1 << 24);
  add_json_option(command, options.json, "Print JSON with exact numbers");
}

}  // namespace forge::app

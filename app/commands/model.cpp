#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "app/command_line.h"
#include "app/terminal.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/fields.h"
#include "core/config/resolve.h"
#include "core/model/cost.h"

namespace forge::app {
namespace {

struct ModelOptions : ConfigOptions {
  int batch_size = 0;  ///< 0: the config's
  int seq_len = 0;
  int gpus = 0;  ///< 0: the config's
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

Lines flops_lines(const model::TokenFlops& flops, double recomputed) {
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
  if (recomputed > 0)
    lines.push_back({"  recomputed", "", operations(recomputed), operations(recomputed)});
  return lines;
}

Lines byte_lines(const model::TrainingBytes& bytes, int processes) {
  Lines lines = {
      {processes > 1 ? "Memory of each of " + std::to_string(processes) + " processes" : "Memory",
       ""}};
  const auto add = [&](const char* name, int64_t count) {
    lines.push_back({"  " + std::string(name), human_bytes(double(count))});
  };
  add("weights", bytes.weights);
  add("gradients", bytes.gradients);
  add("optimizer", bytes.optimizer);
  add("activations", bytes.activations);
  if (bytes.recomputed > 0) add("recomputed", bytes.recomputed);
  if (bytes.exchange > 0) add("exchange", bytes.exchange);
  add("logits_gradient", bytes.logits_gradient);
  add("total", bytes.total());
  return lines;
}

/// What each value of train.recompute would make of the activations, and what it would cost.
Lines recompute_lines(const model::ModelConfig& model, model::TrainingShape shape) {
  Lines lines = {{"train.recompute", "activations", "recomputed", "FLOPs per token"}};
  for (const model::Recompute recompute : model::recompute_kinds) {
    shape.recompute = recompute;
    const double again = model::recomputed_flops_per_token(model, shape.seq_len, recompute);
    lines.push_back({"  " + config::name_of(recompute),
                     human_bytes(double(model::activation_bytes(model, shape))),
                     human_bytes(double(model::recomputed_bytes(model, shape))),
                     operations(model::flops_per_token(model, shape.seq_len).total() + again)});
  }
  return lines;
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
  const model::TrainingShape shape = experiment.training_shape();
  const double recomputed =
      model::recomputed_flops_per_token(model, shape.seq_len, shape.recompute);
  std::cout << tables::printable(name) << ", " << train.batch_size << " rows of " << train.seq_len
            << " tokens, " << config::name_of(train.precision) << "\n\n"
            << aligned(parameter_lines(model::count_parameters(model)), {1, 2}) << "\n"
            << aligned(flops_lines(model::flops_per_token(model, train.seq_len), recomputed),
                       {1, 2, 3})
            << "\n"
            << aligned(byte_lines(model::training_bytes(model, shape), shape.processes), {1})
            << "\n"
            << aligned(recompute_lines(model, shape), {1, 2, 3}) << "\n"
            << aligned(state_lines(model::generation_state(model)), {1})
            << notes_on_own_blocks(model);
}

/// Divides a step among that many processes, in as many slots at least.
void divide(config::Experiment& experiment, int processes) {
  config::TrainConfig& train = experiment.train;
  const std::string asked = "--gpus " + std::to_string(processes);
  if ((processes & (processes - 1)) != 0) {
    throw Error(asked + " is no power of two",
                "each process computes as many slots of a step",
                ExitCode::usage);
  }
  train.gradient_slots = std::max(train.gradient_slots, processes);
  if (train.batch_size % train.gradient_slots != 0) {
    throw Error(asked + " does not divide train.batch_size " + std::to_string(train.batch_size),
                "each process computes as many rows; --batch-size N, or fewer GPUs",
                ExitCode::usage);
  }
  experiment.parallel.processes.count = processes;
}

int show_model(const Context& context, const ModelOptions& options) {
  config::ResolvedConfig resolved =
      context.resolve(context.document(options.config), options.overrides);
  context.describe_own_blocks(resolved);
  config::TrainConfig& train = resolved.experiment.train;
  if (options.batch_size > 0) train.batch_size = options.batch_size;
  if (options.seq_len > 0) train.seq_len = options.seq_len;
  if (options.gpus > 0) divide(resolved.experiment, options.gpus);
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
  json["processes"] = resolved.experiment.training_shape().processes;
  json["gradient_slots"] = train.gradient_slots;
  return print_json(json);
}

}  // namespace

void add_model(const Command& app) {
  const auto [command, options] = app.add_command(
      "model", "Count a model's parameters, FLOPs and memory without building it", show_model);
  command
      .details(
          "A multiply-add counts as two FLOPs, causal attention as half of the full square. The "
          "memory total is slightly above the peak of a training step on a CPU. With --gpus N it "
          "is "
          "that of each of N processes: what the optimizer updates is divided among them, and so "
          "are the rows of a step (docs/PARALLEL.md).")
      .examples(
          "forge model train_canon_ac --set profile=full\n"
          "forge model 4M --batch-size 8 --seq-len 2048\n"
          "forge model train_llama --gpus 2 --set train.recompute=blocks\n"
          "forge model train_llama --json")
      .see_also("forge bench, docs/MATHEMATICS.md");
  add_config_options(command, options);
  command.add_option("--batch-size", options.batch_size, "Rows per step [default: the config's]")
      .between(1, 1 << 20);
  command.add_option("--seq-len", options.seq_len, "Tokens per row [default: the config's]")
      .between(1, 1 << 24);
  command
      .add_option("--gpus", options.gpus, "Processes that train together [default: the config's]")
      .between(1, 1 << 20);
  add_json_option(command, options.json, "Print JSON with exact numbers");
}

}  // namespace forge::app

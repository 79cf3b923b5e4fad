#include "core/model/recompute.h"

#include "core/base/text.h"
#include "core/model/kinds.h"

namespace forge::model {
namespace {

/// The blocks of a layer, mixer and MLP, by the Canon position in front of each.
constexpr char positions[] = {'A', 'C'};

bool is_recomputed(char position, Recompute recompute) {
  return recompute == Recompute::blocks || (recompute == Recompute::mlp && position == 'C');
}

/// Operations of a block's matrices and Canon taps. Blocks of one's own say themselves what all of
/// theirs are.
double weight_flops(const ModelConfig& model, int layer, const BlockKind& block) {
  ParameterList list(model);
  list.begin_layer(layer);
  block.add_parameters(model.of_layer(layer), list);
  double operations = 0;
  for (const Parameter& parameter : list.take()) {
    const bool is_own = model.blocks.count(parameter.part) > 0;
    const bool is_result = ends_with(parameter.name, ".mlp.down_proj.weight");
    const bool is_multiplied = (parameter.is_matrix && !is_own && !is_result) || is_taps(parameter);
    if (is_multiplied) operations += 2.0 * static_cast<double>(parameter.count());
  }
  return operations;
}

}  // namespace

LayerActivations layer_activations(const ModelConfig& model, Recompute recompute) {
  LayerActivations all;
  const SavedActivations input{model.hidden_size, 0};
  for (int layer = 0; layer < model.num_layers; ++layer) {
    const auto blocks = blocks_of_layer(model, layer);
    SavedActivations again;
    for (size_t i = 0; i < blocks.size(); ++i) {
      SavedActivations saved = blocks[i]->saved_activations(model.of_layer(layer));
      saved += saved_by_blocks_at(positions[i], model);
      (is_recomputed(positions[i], recompute) ? again : all.kept) += saved;
    }
    if (recompute == Recompute::none) continue;
    all.kept += input;
    // Its input is kept already; its result is as large.
    all.recomputed.push_back(again);
  }
  return all;
}

double recomputed_flops_per_token(const ModelConfig& model, int64_t seq_len, Recompute recompute) {
  double operations = 0;
  for (int layer = 0; layer < model.num_layers; ++layer) {
    const auto blocks = blocks_of_layer(model, layer);
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (!is_recomputed(positions[i], recompute)) continue;
      operations += weight_flops(model, layer, *blocks[i]) +
                    blocks[i]->mixing_flops(model.of_layer(layer), seq_len) +
                    flops_of_blocks_at(positions[i], model, seq_len);
    }
  }
  return operations;
}

}  // namespace forge::model

#pragma once

#include <array>
#include <string>
#include <vector>

#include "core/model/block.h"
#include "core/model/config.h"

namespace forge::model {

/// Every kind of mixer that comes with forge and that model.layers can name.
const std::vector<const BlockKind*>& mixer_kinds();

/// Throws Error for a name of none.
const BlockKind& mixer_kind(const std::string& name);

/// The mixer of a layer: one of these, or own_mixer_block where model.blocks has it.
const BlockKind& mixer_of_layer(const ModelConfig& model, int layer);

/// The blocks of a layer in the order in which a token passes them: its mixer and its MLP.
std::array<const BlockKind*, 2> blocks_of_layer(const ModelConfig& model, int layer);

/// Each kind of block that model.layers names, and the MLP, once, in the order of first use.
std::vector<const BlockKind*> kinds_in(const ModelConfig& model);

/// The letters of a Canon set that the blocks of the model have places for, in their order.
std::string positions_of_layer(const ModelConfig& model, const std::string& set);

/// Fills in what follows from other keys and checks what concerns several: the kinds of
/// model.layers, each block's section, Canon positions, settings that nothing reads. Returns
/// whether model.layers names mixers that there are.
bool complete_model(ModelConfig& model, ConfigChecks& checks);

/// Without places: throws Error at the first mistake. For models that no config file holds.
void complete_model(ModelConfig& model);

}  // namespace forge::model

#pragma once

#include <map>
#include <string>

#include "core/base/schema.h"
#include "core/model/block.h"

/// A block of one's own: a class of a Python file of the project, computed by the backend pytorch
/// (docs/OWN_BLOCKS.md). It is the mixer of layers, their MLP, or stands beside the Canon layers
/// before them. core knows of it what a description says, which its program makes by
/// building the block once.
namespace forge::model {

struct OwnBlock {
  std::string file;    ///< resolved: the Python file
  std::string at;      ///< Canon positions of every layer where it stands: A, C or both; "": none
  std::string source;  ///< resolved: its text, which is what the run computes
  /// What backends/pytorch/own_blocks.py says of it, {"module", "weights", "flops", "saved"}; none
  /// before it was asked.
  schema::JsonText described;
  std::map<std::string, schema::JsonText> settings;  ///< the section that its constructor gets
};

template <class Visitor>
void fields(Visitor& visit, OwnBlock& c) {
  visit.field("file", c.file, "Python file; empty: blocks/NAME.py of the project or the workspace");
  visit.field("at", c.at, "A: before every mixer, C: before every MLP, where Canon layers stand");
  visit.field("source", c.source, "the file's text: forge fills it in");
  visit.field("described",
              c.described,
              "weights, operations and memory: forge fills them in",
              schema::if_set());
  visit.rest(c.settings, "any key that the block's constructor reads");
}

/// Whether the operations of the block, which must be described, were counted and not declared.
bool has_counted_flops(const OwnBlock& block);

/// Throws Error where the description is not one.
void check_description(const std::string& name, const OwnBlock& block);

/// Adds the weights of the blocks that stand at a Canon position of every layer, in the order of
/// their names.
void add_blocks_at(char position, const ModelConfig& model, ParameterList& list);

/// What a block costs at its positions in one layer.
double flops_of_block_at(const ModelConfig& model, const std::string& name, int64_t seq_len);

/// What all those of one position cost in one layer.
double flops_of_blocks_at(char position, const ModelConfig& model, int64_t seq_len);
SavedActivations saved_by_blocks_at(char position, const ModelConfig& model);

/// The mixer of a layer whose kind is a block of one's own. Its functions take the layer's own
/// model (ModelConfig::of_layer), whose only layer it is, and throw Error where it is not
/// described.
extern const BlockKind own_mixer_block;
/// The MLP of a layer whose model.mlp.kind is a block of one's own.
extern const BlockKind own_mlp_block;

}  // namespace forge::model

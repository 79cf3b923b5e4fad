#pragma once

#include <map>
#include <string>

#include "core/base/schema.h"
#include "core/model/block.h"

/// A block of one's own: a class of a Python file of the project, computed by the backend pytorch
/// (docs/OWN_BLOCKS.md). core knows of it what a description says, which its program makes by
/// building the block once.
namespace forge::model {

struct OwnBlock {
  std::string file;    ///< resolved: the Python file
  std::string source;  ///< resolved: its text, which is what the run computes
  /// What backends/pytorch/own_blocks.py says of it, {"module", "weights", "flops", "saved"}; none
  /// before it was asked.
  schema::JsonText described;
  std::map<std::string, schema::JsonText> settings;  ///< the section that its constructor gets
};

template <class Visitor>
void fields(Visitor& visit, OwnBlock& c) {
  visit.field("file", c.file, "Python file; empty: blocks/NAME.py of the project or the workspace");
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

/// The mixer of a layer whose kind is a block of one's own. Its functions take the layer's own
/// model (ModelConfig::of_layer), whose only layer it is, and throw Error where it is not
/// described.
extern const BlockKind own_mixer_block;

}  // namespace forge::model

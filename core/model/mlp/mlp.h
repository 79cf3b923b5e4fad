#pragma once

#include "core/base/schema.h"
#include "core/model/block.h"

/// The gated MLP, the second block of every layer.
namespace forge::model {

enum class MlpKind { swiglu };

struct MlpConfig {
  MlpKind kind = MlpKind::swiglu;
  int intermediate_size = 0;
};

inline const schema::Names& names_of(MlpKind) {
  static const schema::Names names = {"swiglu"};
  return names;
}

template <class Visitor>
void fields(Visitor& visit, MlpConfig& c) {
  visit.field("kind", c.kind, "swiglu: down(silu(gate(x)) * up(x))");
  visit.field("intermediate_size",
              c.intermediate_size,
              "channels between the projections",
              schema::required(schema::up_to(1 << 20)));
}

extern const BlockKind mlp_block;

}  // namespace forge::model

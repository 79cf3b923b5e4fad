#pragma once

#include <string>

#include "core/base/schema.h"
#include "core/model/block.h"

/// The MLP, the second block of every layer, with a gate (Shazeer 2020) or without.
namespace forge::model {

enum class MlpKind { swiglu, geglu, gelu, relu_squared };

/// What model.mlp.kind says: a kind of forge's, or the name of a block of one's own.
struct MlpChoice {
  MlpChoice(MlpKind of_forge = MlpKind::swiglu) : kind(of_forge) {}

  operator MlpKind() const { return kind; }

  MlpKind kind;     ///< where `own` is empty
  std::string own;  ///< "": none
};

struct MlpConfig {
  MlpChoice kind;
  int intermediate_size = 0;

  bool is_gated() const { return kind == MlpKind::swiglu || kind == MlpKind::geglu; }
  /// Channels of gate and up, as Canon-D sees them.
  int64_t gate_up_width() const { return int64_t{is_gated() ? 2 : 1} * intermediate_size; }
};

inline schema::Names names_of(MlpKind) { return {"swiglu", "geglu", "gelu", "relu_squared"}; }

template <class Visitor>
void fields(Visitor& visit, MlpConfig& c) {
  visit.field(
      "kind",
      c.kind,
      "swiglu: down(silu(gate(x)) * up(x)); geglu: down(gelu(gate(x)) * up(x)); gelu: "
      "down(gelu(up(x))); relu_squared: down(relu(up(x))^2); gelu is the exact one, by erf; or a "
      "block of one's own");
  visit.field("intermediate_size",
              c.intermediate_size,
              "channels between the projections",
              schema::required(schema::up_to(1 << 20)));
}

extern const BlockKind mlp_block;

}  // namespace forge::model

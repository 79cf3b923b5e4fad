#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/schema.h"
#include "core/model/block.h"

/// What the linear mixers have in common: heads with a state of their own, a matrix of `key_dim` x
/// `value_dim` numbers, that every token fades and writes to; and a short convolution of their own
/// inputs, the letter `b` of model.canon.set. docs/MATHEMATICS.md has the formulas.
namespace forge::model {

/// When silu acts on queries, keys and values: always, as in the released code; where a short
/// convolution stands, as in the paper's synthetic models; never.
enum class QkvActivation { silu, after_conv, none };
enum class Activation { none, silu };

inline schema::Names names_of(Activation) { return {"none", "silu"}; }
inline schema::Names names_of(QkvActivation) { return {"silu", "after_conv", "none"}; }

/// Tokens that an input channel's own short convolution sees, itself included, whatever
/// model.canon.kernel is.
constexpr int short_conv_taps = 4;

/// Tokens that backends/libtorch computes at once between two uses of the state. It decides costs,
/// never results.
constexpr int64_t linear_chunk = 64;

/// Sizes of a linear mixer's heads. Of mamba2: keys are B and C, one for all heads; values are x.
struct LinearHeads {
  int64_t heads = 0, key_dim = 0, value_dim = 0;

  int64_t key_width() const { return heads * key_dim; }
  int64_t value_width() const { return heads * value_dim; }
  /// Numbers of all heads' states.
  int64_t state() const { return heads * key_dim * value_dim; }
};

/// Channels of `expand` times hidden_size, checked to be a whole number in each head. `section` is
/// "model.gla5", `key` "expand_k". Throws what `checks` complains.
int64_t expanded_width(const ModelConfig& model,
                       double expand,
                       int num_heads,
                       const std::string& section,
                       const std::string& key,
                       const ConfigChecks& checks);

/// As above where it was checked.
int64_t expanded_width(const ModelConfig& model, double expand);

/// What gla5 and gdn2 have in common: q, k and v with their short convolutions, a gate of the
/// normed outputs of low rank or full. `name` is the kind's.
struct GatedHeads {
  const char* name;
  LinearHeads sizes;
  QkvActivation activation;
  std::optional<int> output_gate_rank;
};

/// Adds q_proj, k_proj, v_proj and, where the model has the letter b, q_conv1d, k_conv1d, v_conv1d.
void add_qkv_parameters(const ModelConfig& model, const GatedHeads& mixer, ParameterList& list);
/// Adds g_proj, the norm `norm` of a head's outputs and o_proj.
void add_output_parameters(const ModelConfig& model,
                           const GatedHeads& mixer,
                           const char* norm,
                           ParameterList& list);

/// Numbers that q, k and v's activation, convolution and the gated norm keep for the backward pass.
SavedActivations saved_by_gated_heads(const ModelConfig& model, const GatedHeads& mixer);

/// Numbers of the last inputs that the mixer's own short convolution keeps.
int64_t short_conv_state(const ModelConfig& model, int64_t channels);

}  // namespace forge::model

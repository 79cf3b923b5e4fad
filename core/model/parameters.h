#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/experiment.h"

namespace forge::model {

/// How a parameter is drawn at the start.
struct InitRule {
  enum class Kind { constant, normal, truncated_normal, uniform } kind = Kind::constant;
  double value = 1;  ///< constant
  double std = 0;    ///< normal, truncated_normal: of the normal before it is cut
  double cut = 0;    ///< truncated_normal: absolute bound
  double bound = 0;  ///< uniform: between -bound and bound
};

/// What a weight is for, in the order in which a token meets it.
enum class Part {
  embedding,
  attention,  ///< the four projections
  qk_norm,    ///< RMSNorm of queries and keys
  canon_a,
  canon_b,
  canon_c,
  canon_d,
  mlp,
  norm,  ///< of the blocks, and the last one
  lm_head,
};
inline constexpr size_t part_count = 10;
/// "embedding", "attention", "qk_norm", "canon_a", …
const std::string& name_of(Part part);

/// One weight of a model under its Hugging Face name, e.g.
/// "model.layers.0.self_attn.q_proj.weight".
struct Parameter {
  std::string name;
  std::vector<int64_t> shape;  ///< linear: [out, in]; Canon: [channels, 1, kernel]
  InitRule init;
  Part part = Part::embedding;
  int64_t count() const;
};

/// Every weight of the model, in the order of the modules. Tied embeddings have no lm_head.weight.
/// The initial distributions are those of model.init (docs/MATHEMATICS.md). Throws Error for a
/// model beyond 10,000 layers or 2^48 weights, before anything of that size is allocated.
std::vector<Parameter> parameters(const config::ModelConfig& model);

int64_t parameter_count(const config::ModelConfig& model);

/// Draws `count` of a parameter's initial values, row-major, from number `first` on, with the
/// counter-based generator: stream = its name, one 32-bit word a value; the same bits on every
/// machine. About 20 ns a value on one core; parts may be drawn in parallel.
void draw_initial(
    const Parameter& parameter, uint64_t seed, int64_t first, int64_t count, float* values);

/// All of them: `values` holds count() floats.
void draw_initial(const Parameter& parameter, uint64_t seed, float* values);

}  // namespace forge::model

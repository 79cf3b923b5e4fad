#pragma once

#include <vector>

#include "core/base/schema.h"
#include "core/model/block.h"

/// The norms before the blocks and the output projection: what model.norm says, and all that
/// follows from it.
namespace forge::model {

enum class NormKind { rms_norm, layer_norm };
/// Where RMSNorm rounds in low precision: the normalised value before the product with the weight,
/// or the product alone.
enum class NormRounding { huggingface, lingua };

struct NormConfig {
  NormKind kind = NormKind::rms_norm;
  double eps = 1e-5;
  NormRounding rounding = NormRounding::huggingface;
};

inline schema::Names names_of(NormKind) { return {"rms_norm", "layer_norm"}; }
inline schema::Names names_of(NormRounding) { return {"huggingface", "lingua"}; }

template <class Visitor>
void fields(Visitor& visit, NormConfig& c) {
  visit.field(
      "kind",
      c.kind,
      "rms_norm: x / sqrt(mean(x^2) + eps) * weight; layer_norm: (x - mean) / sqrt(variance + "
      "eps) * weight + bias");
  visit.field("eps", c.eps, "added to the mean square or the variance", schema::above(0));
  visit.field("rounding",
              c.rounding,
              "rms_norm in low precision: huggingface rounds before the product with the weight, "
              "lingua after");
}

/// A weight of a norm, one number a channel.
struct NormWeight {
  const char* name;
  double initial;
};
std::vector<NormWeight> norm_weights(const NormConfig& norm);

/// Checks the section.
void complete_norm(ModelConfig& model, ConfigChecks& checks);

/// What a norm that stands alone keeps: its input and its statistics.
SavedActivations saved_by_norm(const ModelConfig& model);

/// What norm, Canon layer at `position` and projection keep: fused, the norm's input alone; the
/// rest is computed again.
SavedActivations saved_by_projection(const ModelConfig& model, char position);

}  // namespace forge::model

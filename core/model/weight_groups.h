#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/schema.h"

namespace forge::model {

/// What optimizers tell weights apart by. The name and the shape decide, so that a worker which
/// knows no more of a weight finds the same group (docs/PROTOCOL.md).
enum class WeightGroup {
  matrices,    ///< of two dimensions, neither embedding nor output projection
  embeddings,  ///< of tokens; also where it is the output projection, too
  head,        ///< the output projection
  norms,       ///< weights and biases of norms
  canon,       ///< taps and biases of Canon layers and of short convolutions
  vectors,     ///< the rest: biases, decay rates, gates of a head
};

inline schema::Names names_of(WeightGroup) {
  return {"matrices", "embeddings", "head", "norms", "canon", "vectors"};
}

/// The group of a weight by its Hugging Face name.
WeightGroup group_of(const std::string& name, const std::vector<int64_t>& shape);

/// Numbers that an optimizer keeps of each weight besides it.
struct Moments {
  int of_matrices = 2;
  int of_others = 2;
};

}  // namespace forge::model

#pragma once

#include <string>
#include <vector>

#include "core/config/experiment.h"

namespace forge::tests {

/// A Llama of a few thousand weights with grouped queries.
inline config::ModelConfig small_model(const std::string& canon_set,
                                       config::PositionKind position) {
  config::ModelConfig model;
  model.vocab_size = 29;
  model.hidden_size = 16;
  model.intermediate_size = 24;
  model.num_layers = 2;
  model.num_heads = 4;
  model.num_kv_heads = 2;
  model.head_dim = 4;
  model.canon.set = canon_set;
  model.position.kind = position;
  return model;
}

/// The architectures of the canon project, small, and every further option once.
inline std::vector<config::ModelConfig> small_variants() {
  using config::PositionKind;
  std::vector<config::ModelConfig> variants;
  for (const char* set : {"", "A", "B", "C", "D", "AB", "AC", "BD", "ABCD"}) {
    for (const PositionKind kind : {PositionKind::rope, PositionKind::nope})
      variants.push_back(small_model(set, kind));
  }
  config::ModelConfig full = small_model("ABCD", PositionKind::rope);
  full.qk_norm = config::QkNorm::full;
  full.canon.activation = config::Activation::silu;
  full.canon.kernel = 3;
  variants.push_back(full);
  config::ModelConfig per_head = small_model("BD", PositionKind::rope);
  per_head.qk_norm = config::QkNorm::per_head;
  per_head.canon.residual = false;
  per_head.position.pairing = config::RopePairing::lingua;
  per_head.position.rope_dim = 2;
  per_head.tie_embeddings = true;
  variants.push_back(per_head);
  return variants;
}

/// What a small model differs in from the others.
inline std::string describe(const config::ModelConfig& model) {
  return "canon '" + model.canon.set + "', position " + std::to_string(int(model.position.kind)) +
         ", qk_norm " + std::to_string(int(model.qk_norm));
}

}  // namespace forge::tests

#pragma once

#include "core/config/experiment.h"

namespace forge::tests {

/// Forgather's "Llama 4M": 4,434,176 weights.
inline model::ModelConfig llama_4m() {
  model::ModelConfig model;
  model.vocab_size = 2000;
  model.hidden_size = 256;
  model.mlp.intermediate_size = 768;
  model.num_layers = 4;
  model.attention.num_heads = 4;
  model.attention.num_kv_heads = 4;
  model.attention.head_dim = 64;
  return model;
}

/// The model of the reference vectors: grouped queries and all Canon layers, small enough to print.
inline model::ModelConfig tiny_canon() {
  model::ModelConfig model;
  model.vocab_size = 37;
  model.hidden_size = 32;
  model.mlp.intermediate_size = 48;
  model.num_layers = 2;
  model.attention.num_heads = 4;
  model.attention.num_kv_heads = 2;
  model.attention.head_dim = 8;
  model.canon.set = "ABCD";
  return model;
}

}  // namespace forge::tests

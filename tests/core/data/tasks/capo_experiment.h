#pragma once

#include <filesystem>

#include "core/data/rows/prepare.h"

namespace forge::tests {

/// A small model's training on the lives of 20 people.
inline config::Experiment capo_experiment(int seq_len) {
  config::Experiment experiment;
  experiment.data.source = "task";
  experiment.data.task.name = "capo";
  experiment.data.task.people = 20;
  experiment.model.vocab_size = 400;
  experiment.model.hidden_size = 16;
  experiment.model.mlp.intermediate_size = 16;
  experiment.model.num_layers = 1;
  experiment.model.attention.num_heads = 2;
  experiment.model.attention.num_kv_heads = 2;
  experiment.model.attention.head_dim = 8;
  experiment.tokenizer.vocab_size = 400;
  experiment.train.max_steps = 1;
  experiment.train.batch_size = 1;
  experiment.train.seq_len = seq_len;
  experiment.train.eval_rows = 8;
  return experiment;
}

}  // namespace forge::tests

#pragma once

#include "core/config/experiment.h"

namespace forge::data {

/// An experiment on generated stories of which the data are prepared in a moment.
inline config::Experiment small_experiment() {
  config::Experiment experiment;
  experiment.model.vocab_size = 400;
  experiment.tokenizer.vocab_size = 400;
  experiment.train.max_steps = 4;
  experiment.train.batch_size = 2;
  experiment.train.seq_len = 64;
  experiment.train.eval_rows = 3;
  return experiment;
}

}  // namespace forge::data

#pragma once

#include "core/config/experiment.h"
#include "core/data/dataset.h"

namespace forge::worker {

/// Rows of random token ids for an experiment, as many as a few steps take or more, from a token
/// file that lives as long as the dataset: what is measured on them goes the way of all training
/// data. Where documents are kept apart, one begins every 256 tokens, as stories do.
data::Dataset random_rows(const config::Experiment& experiment);

}  // namespace forge::worker

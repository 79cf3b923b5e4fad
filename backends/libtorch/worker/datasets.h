#pragma once

#include "core/config/experiment.h"
#include "core/data/dataset.h"
#include "core/protocol/messages.h"

namespace forge::worker {

/// The rows that a request names, in the order of the experiment, and divided into documents where
/// it asks for that. Throw Error where they cannot be.
data::Dataset training_rows(const protocol::Request& request, const config::Experiment& experiment);

/// The same for rows to evaluate on, those of the request that `sources` are: always in the order
/// of the files, one after another.
data::Dataset held_out_rows(const std::vector<protocol::TokenSource>& sources,
                            const config::Experiment& experiment);

}  // namespace forge::worker

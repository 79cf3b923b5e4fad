#pragma once

#include <vector>

#include "core/data/prepare.h"
#include "core/protocol/messages.h"

namespace forge::run {

/// Prepared token files as a request names them.
std::vector<protocol::TokenSource> training_sources(const data::PreparedData& prepared);
std::vector<protocol::TokenSource> evaluation_sources(const data::PreparedData& prepared);
std::vector<protocol::TokenSource> selection_sources(const data::PreparedData& prepared);

}  // namespace forge::run

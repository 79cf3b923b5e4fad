#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/protocol/messages.h"

namespace forge::conformance {

/// A training run of a few thousand weights, a hundred tokens a step and no tokenizer, for trying a
/// backend out.
struct TinyCase {
  nlohmann::json experiment;  ///< complete, as in config.json
  protocol::TokenSource train_tokens;
  protocol::TokenSource evaluation_tokens;
};

inline constexpr int64_t tiny_steps = 8;
inline constexpr int64_t tiny_checkpoint_every = 4;

/// Writes its token files to `folder`. Where the backend said which values a key may have and the
/// case's is none of them, the first of them takes its place.
TinyCase make_tiny_case(const std::filesystem::path& folder,
                        const std::optional<protocol::Supports>& supports);

/// The request to train it for so many steps in `run_dir`.
protocol::Request training_request(const TinyCase& tiny,
                                   const std::filesystem::path& run_dir,
                                   int64_t steps);

}  // namespace forge::conformance

#pragma once

#include <filesystem>
#include <optional>

#include "core/config/experiment.h"
#include "core/data/common.h"

namespace forge::data {

/// What a text says of the losses on it, before any model is trained.
struct EvaluationText {
  /// Nats a token of random choice in the evaluated text, which no model can predict, however good
  /// it is. Known of generated stories alone. It is that of whole stories: a row that begins within
  /// a story hides what came before, so there the least possible loss is a little higher.
  std::optional<double> entropy_floor = {};
  /// The fraction of the evaluated sentences that stand in the training rows too, token for token.
  /// A sentence ends with a token that has a '.', '!' or '?', at a line's end, or with its
  /// document. Nothing where the evaluation has no sentence.
  std::optional<double> repeated_sentences = {};
};

struct PreparedData;

/// Of prepared text of one source, not of a mixture. Reads all tokens that the run trains on.
EvaluationText describe_evaluation_text(const config::Experiment& experiment,
                                        const PreparedData& prepared,
                                        const Progress& progress);

}  // namespace forge::data

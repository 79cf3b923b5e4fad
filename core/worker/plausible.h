#pragma once

#include <cstdint>
#include <string>

#include "core/worker/messages.h"

namespace forge::worker {

// What a worker measured may be wrong, but some numbers cannot be. Each throws Error (exit code
// `failed`) naming the number. A loss that is no number is possible: a run may diverge.

void require_not_negative(const std::string& name, double value);
void require_finite(const std::string& name, double value);
/// A number of seconds.
void require_duration(const std::string& name, double seconds);
void require_speed(double tokens_per_second);
/// `tokens` were computed in `seconds`: both can be, together too.
void require_pace(int64_t tokens, double seconds);

/// The numbers of a train, evaluation, checkpoint, micro_batch or finished event: each by itself,
/// and the rows of an evaluation beside its loss, which is their mean, each weighted by its scored
/// tokens. What failed because it diverged would do so again.
void require_plausible(const Event& event);
/// `eval_loss` of a finished event is the loss of the evaluation of its step.
void require_same_loss(const Evaluation& evaluation, const Finished& finished);

}  // namespace forge::worker

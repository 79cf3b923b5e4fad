#pragma once

#include <cstdint>
#include <string>

#include "core/data/common.h"

namespace forge::data {

/// To be raised when any story changes, for everything made from stories changes with it.
constexpr int toy_stories_version = 1;

/// Story `index` of a sequence: 60 to 250 words of English in ASCII, paragraphs with an empty line
/// between them, no newline at the end. Facts come back later in the story: who owns a thing, where
/// it was put, what was promised, seen, counted or said. The same bytes for the same arguments on
/// any machine; any index at the same speed. index < 2^40.
std::string toy_story(uint64_t seed, Split split, uint64_t index);

/// Nats of random choice in stories 0 … count-1 together: −log of the probability of each story's
/// derivation. No model that has not seen them can predict these stories with a smaller expected
/// loss, but for the few texts that have several derivations.
double toy_stories_nats(uint64_t seed, Split split, uint64_t count);

}  // namespace forge::data

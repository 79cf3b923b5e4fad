#pragma once

#include <cstdint>
#include <vector>

#include "core/data/vocabulary.h"

namespace forge::data {

/// Where merging is ruled by tokens, not by a list of merges: any two neighbours that together are
/// a token become it, those of the earliest token first. Appends the merges that say the same:
/// each way to divide each of `tokens`, earliest first, into two tokens that text can lead to.
void append_merges_of_tokens(const std::vector<int32_t>& tokens, Vocabulary& vocabulary);

}  // namespace forge::data

#pragma once

#include "core/data/pretokenizer.h"

namespace forge::tests {

/// Where GPT-2's split lets a text be cut.
inline size_t cut(std::string_view text, size_t from) {
  return data::next_safe_cut(data::TextSplit::gpt2, text, from);
}

}  // namespace forge::tests

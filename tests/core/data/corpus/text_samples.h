#pragma once

#include <string>

#include "core/data/tokenizer/pretokenizer.h"

namespace forge::tests {

std::string gzipped(const std::string& content);
std::string zstandard(const std::string& content);

/// Where GPT-2's split lets a text be cut.
inline size_t cut(std::string_view text, size_t from) {
  return data::next_safe_cut(data::TextSplit::gpt2, text, from);
}

}  // namespace forge::tests

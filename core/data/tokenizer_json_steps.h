#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "core/data/vocabulary.h"

namespace forge::data {

/// The pattern of a split in the notation of tokenizer.json; nothing for splits without one.
std::string_view pattern_of(TextSplit split);

/// Reads the normalizer and pre_tokenizer of a tokenizer.json: sets alphabet, unicode_form,
/// prefix_space and split. Throws Error for what forge cannot follow exactly.
void read_text_steps(const nlohmann::json& json, Vocabulary& vocabulary);

/// Reads the post_processor: sets before_text and after_text. The tokens must be known.
void read_post_processor(const nlohmann::json& json, Vocabulary& vocabulary);

/// Writes normalizer, pre_tokenizer, post_processor and decoder.
void write_text_steps(const Vocabulary& vocabulary, nlohmann::ordered_json& json);

}  // namespace forge::data

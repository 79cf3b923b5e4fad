#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/data/tokenizer/vocabulary.h"

namespace forge::data {

// Values of a tokenizer.json, each with its type checked: the file may be anything.

/// Throws the Error for a file that cannot be used; load_tokenizer puts the file's name in front.
[[noreturn]] void refuse(const std::string& reason, const std::string& hint = "");

/// A member of an object; null where there is none, or no object.
const nlohmann::json& member(const nlohmann::json& object, const char* key);

/// A value for a message; only scalars, for a deep tree must not be walked recursively.
std::string shown(const nlohmann::json& value);

std::string text_of(const nlohmann::json& value, const std::string& what);
bool flag_of(const nlohmann::json& value, bool absent, const std::string& what);
/// An id below `limit`.
int32_t id_of(const nlohmann::json& value, const std::string& what, size_t limit);

bool is_type(const nlohmann::json& value, const char* type);

/// Whether a key is absent, null, false, 0 or "": that is, asks for nothing.
bool asks_nothing(const nlohmann::json& value);

/// The steps of a value that is null, one step, or a Sequence that lists them under `key`. Throws
/// Error where a Sequence is within a Sequence.
std::vector<const nlohmann::json*> steps_of(const nlohmann::json& value,
                                            const char* key,
                                            const std::string& what);

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

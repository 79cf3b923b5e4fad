#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "core/data/tokenizer.h"

namespace forge::hf {

/// tokenizer_config.json: what transformers' PreTrainedTokenizerFast asks for beside
/// tokenizer.json.
nlohmann::ordered_json tokenizer_config(const data::Tokenizer& tokenizer, int64_t max_positions);

/// special_tokens_map.json: the name of each special token by its role.
nlohmann::ordered_json special_tokens_map(const data::Tokenizer& tokenizer);

/// generation_config.json. Generation ends at EOS and, because forge puts no EOS behind a document
/// but BOS before the next one, at BOS too.
nlohmann::ordered_json generation_config(const data::Tokenizer& tokenizer);

}  // namespace forge::hf

#pragma once

#include <filesystem>

#include "core/data/tokenizer.h"

namespace forge::data {

/// Reads a tokenizer file of any kind that forge knows, told apart by content: a tokenizer.json
/// (tokenizer_json.h), a rank file of tiktoken (tiktoken_file.h), a SentencePiece model
/// (sentencepiece_model.h). Throws their Errors.
Tokenizer read_tokenizer_file(const std::filesystem::path& path);

}  // namespace forge::data

#pragma once

#include <filesystem>
#include <string>

#include "core/data/tokenizer.h"

namespace forge::data {

/// The tokenizer as tokenizer.json of Hugging Face's tokenizers, which gives the same ids there.
std::string tokenizer_to_json(const Tokenizer& tokenizer);
void save_tokenizer(const Tokenizer& tokenizer, const std::filesystem::path& path);

/// Reads a tokenizer.json of byte-level BPE with GPT-2's pattern. Throws Error naming the file and
/// what in it forge cannot follow exactly: a normaliser that changes text, dropout, another
/// pattern or model. "add_prefix_space": true is read as a space before every text.
Tokenizer load_tokenizer(const std::filesystem::path& path);

}  // namespace forge::data

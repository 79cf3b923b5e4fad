#pragma once

#include <filesystem>
#include <string>

#include "core/data/tokenizer/tokenizer.h"

namespace forge::data {

/// The tokenizer as tokenizer.json of Hugging Face's tokenizers, which gives the same ids there.
/// The one thing that format has no word for, merges ranked by the token they make, is a key
/// "ranked_by_token" of the model, which other programs pass over.
std::string tokenizer_to_json(const Tokenizer& tokenizer);
void save_tokenizer(const Tokenizer& tokenizer, const std::filesystem::path& path);

/// Reads a tokenizer.json of byte-level BPE (GPT-2, Llama 3) or of BPE over characters with byte
/// fallback (Llama 2): Unicode forms, a prefix space of any kind, the patterns of pretokenizer.h,
/// Metaspace, added tokens, a template. Throws Error naming the file and what in it forge cannot
/// follow exactly, or the line and column where it is no JSON.
Tokenizer load_tokenizer(const std::filesystem::path& path);

}  // namespace forge::data

#pragma once

#include <filesystem>
#include <string_view>

#include "core/data/tokenizer.h"

namespace forge::data {

/// Whether a file's content begins as a rank file does: a token in Base64, a space, its rank.
bool looks_like_tiktoken(std::string_view content);

/// Reads a rank file of tiktoken: one token a line. Such a file names neither a split pattern nor
/// special tokens; both are Llama 3's (github.com/meta-llama/llama3, llama/tokenizer.py): 256
/// special tokens behind the others, of which <|begin_of_text|> is put in front of a document.
/// Throws Error naming the file, the line and what is wrong there.
Tokenizer load_tiktoken(const std::filesystem::path& path);

}  // namespace forge::data

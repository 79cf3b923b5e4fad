#pragma once

#include <filesystem>

#include "core/data/tokenizer.h"

namespace forge::data {

/// Reads a .model file of SentencePiece: BPE with byte fallback, as of Llama 2, through
/// SentencePiece's own library. BOS, where the model has one, is put in front of a document.
/// Throws Error naming the file and what in it forge cannot follow exactly: a unigram model, a
/// normalisation rule, removal of spaces, characters without bytes.
Tokenizer load_sentencepiece(const std::filesystem::path& path);

}  // namespace forge::data

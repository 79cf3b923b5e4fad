#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "core/data/tokenizer/tokenizer.h"
#include "core/data/tokenizer/vocabulary.h"

namespace forge::data {

/// Where merging is ruled by tokens, not by a list of merges: any two neighbours that together are
/// a token become it, those of the earliest token first. Appends the merges that say the same:
/// each pair of tokens that together are one of `tokens`, earliest first.
void append_merges_of_tokens(const std::vector<int32_t>& tokens, Vocabulary& vocabulary);

/// The content of a .model file of SentencePiece: BPE with byte fallback, as of Llama 2, through
/// SentencePiece's own library. BOS, where the model has one, is put in front of a document. Throws
/// Error naming what forge cannot follow exactly: a unigram model, a normalisation rule, removal of
/// spaces, characters without bytes.
Tokenizer tokenizer_from_sentencepiece(std::string_view content);

/// Reads a tokenizer file of any kind that forge knows, told apart by content: a tokenizer.json
/// (tokenizer_json.h), a rank file of tiktoken (a line for each token: the token in Base64, a
/// space, its rank), a SentencePiece model. Throws Error naming the file and what in it forge
/// cannot follow exactly, of a rank file with the line.
Tokenizer read_tokenizer_file(const std::filesystem::path& path);

}  // namespace forge::data

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace forge::data {

/// What a SentencePiece model says about itself, as far as its library does not tell it.
struct SentencePieceSpec {
  enum ModelType : uint64_t { unigram = 1, bpe = 2, word = 3, character = 4 };

  uint64_t model_type = unigram;
  bool byte_fallback = false;
  bool space_behind_word = false;  ///< treat_whitespace_as_suffix
  std::string normalizer;          ///< name of the rule
  bool has_rule = false;           ///< the rule changes characters
  bool prefix_space = true;        ///< add_dummy_prefix
  bool removes_spaces = true;      ///< remove_extra_whitespaces
  bool escapes_spaces = true;      ///< a space is U+2581
  bool has_decoding_rule = false;  ///< denormalizer_spec

  enum PieceType : uint64_t { normal = 1, unknown = 2, control = 3, user_defined = 4, byte = 6 };
  std::vector<uint64_t> piece_types;  ///< by id
};

/// Reads those fields of a serialised ModelProto (sentencepiece_model.proto), the rest is passed
/// over. Throws Error at bytes that are no such message.
SentencePieceSpec read_sentencepiece_spec(std::string_view model);

}  // namespace forge::data

#include "core/data/sentencepiece_model.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/data/merges_of_tokens.h"
#include "core/data/piece_symbols.h"
#include "core/data/sentencepiece_spec.h"

namespace forge::data {
namespace {

using sentencepiece::SentencePieceProcessor;

void require_known(const SentencePieceSpec& spec) {
  const auto refuse = [](const std::string& reason, const std::string& hint = "") {
    throw Error(reason, {}, hint);
  };
  if (spec.model_type != SentencePieceSpec::bpe) {
    const char* const names[] = {"unknown", "unigram", "BPE", "word", "character"};
    refuse(
        std::string("its model is ") + names[std::min<uint64_t>(spec.model_type, 4)] + ", not BPE",
        "spm_train --model_type=bpe makes one that forge reads");
  }
  if (!spec.byte_fallback) {
    refuse("it has no byte_fallback: characters that it lacks would be lost",
           "spm_train --byte_fallback=true makes one that forge reads");
  }
  if (spec.has_rule) {
    refuse("its rule of normalisation '" + spec.normalizer + "' would change the text",
           "spm_train --normalization_rule_name=identity makes one that forge reads");
  }
  if (spec.removes_spaces) {
    refuse("it removes spaces (remove_extra_whitespaces)",
           "spm_train --remove_extra_whitespaces=false makes one that forge reads");
  }
  if (spec.space_behind_word || !spec.escapes_spaces || spec.has_decoding_rule) {
    refuse(
        "it treats spaces in a way of its own (treat_whitespace_as_suffix, no "
        "escape_whitespaces, or a denormalizer)");
  }
}

void add_user_defined(int32_t id, const SentencePieceSpec& spec, Vocabulary& vocabulary) {
  if (spec.prefix_space) {
    throw Error("its piece '" + vocabulary.tokens[id] +
                    "' is user-defined, and a space is put before every text (add_dummy_prefix)",
                {},
                "forge follows one of the two, not both");
  }
  AddedToken token;
  token.id = id;
  token.normalized = true;
  vocabulary.added.push_back(token);
}

/// Adds the piece of the next id.
void add_piece(const SentencePieceProcessor& model,
               const SentencePieceSpec& spec,
               Vocabulary& vocabulary) {
  const int32_t id = vocabulary.size();
  const std::string& piece = model.IdToPiece(id);
  const uint64_t type = spec.piece_types[id];
  if (type == SentencePieceSpec::control || type == SentencePieceSpec::unknown) {
    add_special_token(vocabulary, piece);
    return;
  }
  vocabulary.special.push_back(0);
  vocabulary.tokens.push_back(with_spaces(piece));
  if (type == SentencePieceSpec::byte) {
    const std::optional<uint8_t> byte = byte_of_name(piece);
    if (!byte) throw Error("its piece '" + piece + "' is of the type byte, but names none");
    vocabulary.byte_ids[*byte] = id;  // that all 256 are there, the library has checked
    vocabulary.tokens.back() = std::string(1, static_cast<char>(*byte));
  } else if (type == SentencePieceSpec::user_defined) {
    add_user_defined(id, spec, vocabulary);
  } else if (type != SentencePieceSpec::normal) {
    throw Error("its piece '" + piece + "' is of the type " + std::to_string(type),
                {},
                "forge knows normal, unknown, control, user-defined and byte pieces");
  }
}

bool is_one_character(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char byte) {
           return (static_cast<uint8_t>(byte) & 0xc0) != 0x80;
         }) == 1;
}

/// The pieces that neighbours are merged to, those with the highest score first.
std::vector<int32_t> merged_pieces(const SentencePieceProcessor& model,
                                   const SentencePieceSpec& spec,
                                   const Vocabulary& vocabulary) {
  std::vector<int32_t> pieces;
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const bool is_normal = spec.piece_types[id] == SentencePieceSpec::normal;
    if (is_normal && !is_one_character(vocabulary.tokens[id])) pieces.push_back(id);
  }
  std::stable_sort(pieces.begin(), pieces.end(), [&](int32_t a, int32_t b) {
    return model.GetScore(a) > model.GetScore(b);
  });
  for (size_t i = 0; i + 1 < pieces.size(); ++i) {
    if (model.GetScore(pieces[i]) != model.GetScore(pieces[i + 1])) continue;
    throw Error("its pieces '" + model.IdToPiece(pieces[i]) + "' and '" +
                model.IdToPiece(pieces[i + 1]) + "' have the same score, so neither comes first");
  }
  return pieces;
}

/// A piece may be made of characters that are no pieces themselves, which forge's merges, between
/// pieces, would never reach.
void require_characters(const std::vector<int32_t>& pieces,
                        const SentencePieceSpec& spec,
                        const Vocabulary& vocabulary) {
  std::unordered_set<std::string_view> known;
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    if (spec.piece_types[id] == SentencePieceSpec::normal) known.insert(vocabulary.tokens[id]);
  }
  for (const int32_t id : pieces) {
    const std::string_view piece = vocabulary.tokens[id];
    for (size_t begin = 0, end = 1; begin < piece.size(); begin = end++) {
      while (end < piece.size() && (static_cast<uint8_t>(piece[end]) & 0xc0) == 0x80) ++end;
      if (known.count(piece.substr(begin, end - begin)) > 0) continue;
      throw Error("its piece '" + std::string(piece) + "' holds a character that is no piece: '" +
                  std::string(piece.substr(begin, end - begin)) + "'");
    }
  }
}

Tokenizer tokenizer_from_model(std::string_view content) {
  const SentencePieceSpec spec = read_sentencepiece_spec(content);
  require_known(spec);
  SentencePieceProcessor model;
  if (const auto status = model.LoadFromSerializedProto({content.data(), content.size()});
      !status.ok()) {
    throw Error("its library says: " + status.ToString());
  }
  Vocabulary vocabulary;
  vocabulary.alphabet = Alphabet::characters;
  vocabulary.split = TextSplit::whole;
  vocabulary.prefix_space = spec.prefix_space ? PrefixSpace::every_text : PrefixSpace::none;
  for (int id = 0; id < model.GetPieceSize(); ++id) add_piece(model, spec, vocabulary);
  const std::vector<int32_t> pieces = merged_pieces(model, spec, vocabulary);
  require_characters(pieces, spec, vocabulary);
  append_merges_of_tokens(pieces, vocabulary);
  if (model.bos_id() >= 0) vocabulary.before_text = {model.bos_id()};
  find_special_ids(vocabulary);
  return Tokenizer(std::move(vocabulary));
}

}  // namespace

Tokenizer load_sentencepiece(const std::filesystem::path& path) {
  const std::string content = read_file(path);
  try {
    return tokenizer_from_model(content);
  } catch (const Error& error) {
    throw Error("cannot use the SentencePiece model '" + shown_path(path) + "': " + error.message(),
                {},
                error.hint());
  }
}

}  // namespace forge::data

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <sentencepiece_processor.h>

#include "core/base/error.h"
#include "core/data/tokenizer/tokenizer_file.h"
#include "core/data/tokenizer/vocabulary.h"

namespace forge::data {
namespace {

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

/// A field of a message in the wire format of Protocol Buffers.
struct Field {
  uint64_t number = 0;
  uint64_t value = 0;      ///< of a varint
  std::string_view bytes;  ///< of a text, list of bytes or message
};

class MessageReader {
 public:
  explicit MessageReader(std::string_view message) : rest_(message) {}

  bool next(Field& field) {
    if (rest_.empty()) return false;
    const uint64_t tag = varint();
    field = Field{};
    field.number = tag >> 3;
    switch (tag & 7) {
      case 0: field.value = varint(); break;
      case 1: take(8); break;
      case 2: field.bytes = take(varint()); break;
      case 5: take(4); break;
      default: fail();
    }
    return true;
  }

 private:
  [[noreturn]] static void fail() { throw Error("it is no SentencePiece model, or a damaged one"); }

  std::string_view take(uint64_t size) {
    if (size > rest_.size()) fail();
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint64_t byte = static_cast<uint8_t>(take(1)[0]);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    fail();
  }

  std::string_view rest_;
};

uint64_t type_of_piece(std::string_view message) {
  uint64_t type = SentencePieceSpec::normal;
  MessageReader reader(message);
  for (Field field; reader.next(field);) {
    if (field.number == 3) type = field.value;
  }
  return type;
}

void read_trainer_spec(std::string_view message, SentencePieceSpec& spec) {
  MessageReader reader(message);
  for (Field field; reader.next(field);) {
    if (field.number == 3) spec.model_type = field.value;
    if (field.number == 24) spec.space_behind_word = field.value != 0;
    if (field.number == 35) spec.byte_fallback = field.value != 0;
  }
}

void read_normalizer_spec(std::string_view message, SentencePieceSpec& spec) {
  MessageReader reader(message);
  for (Field field; reader.next(field);) {
    if (field.number == 1) spec.normalizer = std::string(field.bytes);
    if (field.number == 2) spec.has_rule = !field.bytes.empty();
    if (field.number == 3) spec.prefix_space = field.value != 0;
    if (field.number == 4) spec.removes_spaces = field.value != 0;
    if (field.number == 5) spec.escapes_spaces = field.value != 0;
  }
}

/// Reads those fields of a serialised ModelProto (sentencepiece_model.proto), the rest is passed
/// over. Throws Error at bytes that are no such message.
SentencePieceSpec read_sentencepiece_spec(std::string_view model) {
  SentencePieceSpec spec;
  MessageReader reader(model);
  for (Field field; reader.next(field);) {
    if (field.number == 1) spec.piece_types.push_back(type_of_piece(field.bytes));
    if (field.number == 2) read_trainer_spec(field.bytes, spec);
    if (field.number == 3) read_normalizer_spec(field.bytes, spec);
    if (field.number == 5) {
      SentencePieceSpec decoding;
      read_normalizer_spec(field.bytes, decoding);
      spec.has_decoding_rule = decoding.has_rule;
    }
  }
  return spec;
}

using sentencepiece::SentencePieceProcessor;

void require_known(const SentencePieceSpec& spec) {
  if (spec.model_type != SentencePieceSpec::bpe) {
    const char* const names[] = {"unknown", "unigram", "BPE", "word", "character"};
    throw Error(
        std::string("its model is ") + names[std::min<uint64_t>(spec.model_type, 4)] + ", not BPE",
        "spm_train --model_type=bpe makes one that forge reads");
  }
  if (!spec.byte_fallback) {
    throw Error("it has no byte_fallback: characters that it lacks would be lost",
                "spm_train --byte_fallback=true makes one that forge reads");
  }
  if (spec.has_rule) {
    throw Error("its rule of normalisation '" + spec.normalizer + "' would change the text",
                "spm_train --normalization_rule_name=identity makes one that forge reads");
  }
  if (spec.removes_spaces) {
    throw Error("it removes spaces (remove_extra_whitespaces)",
                "spm_train --remove_extra_whitespaces=false makes one that forge reads");
  }
  if (spec.space_behind_word || !spec.escapes_spaces || spec.has_decoding_rule) {
    throw Error(
        "it treats spaces in a way of its own (treat_whitespace_as_suffix, no "
        "escape_whitespaces, or a denormalizer)");
  }
}

void add_user_defined(int32_t id, const SentencePieceSpec& spec, Vocabulary& vocabulary) {
  if (spec.prefix_space) {
    throw Error("its piece '" + vocabulary.tokens[id] +
                    "' is user-defined, and a space is put before every text (add_dummy_prefix)",
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

}  // namespace

Tokenizer tokenizer_from_sentencepiece(std::string_view content) {
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

}  // namespace forge::data

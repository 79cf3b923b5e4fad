#include "core/data/tokenizer/tokenizer.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"

namespace forge::data {
namespace {

std::string normalized_name(const Vocabulary& vocabulary, const std::string& name) {
  const bool prefixed = vocabulary.prefix_space == PrefixSpace::every_text;
  return normalized((prefixed ? " " : "") + name, vocabulary.unicode_form);
}

bool has_inner_space(std::string_view name) {
  const size_t word = name.find_first_not_of(" \t\n\v\f\r");
  return word != std::string_view::npos &&
         name.find_first_of(" \t\n\v\f\r", word) != std::string_view::npos;
}

bool is_whole_word(std::string_view text, size_t begin, size_t end) {
  return !ends_with_word(text.substr(0, begin)) && !begins_with_word(text.substr(end));
}

/// Length of a character in UTF-8 as its first byte tells it.
size_t length_from(char first) {
  const uint8_t byte = static_cast<uint8_t>(first);
  return byte < 0xc0 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

uint32_t packed(std::string_view character) {
  uint32_t bytes = 0;
  for (const char byte : character) bytes = bytes << 8 | static_cast<uint8_t>(byte);
  return bytes;
}

bool has_space_behind_other(std::string_view token) {
  const size_t word = token.find_first_not_of(' ');
  return word != std::string_view::npos && token.find(' ', word) != std::string_view::npos;
}

/// Nothing merges across a space behind another character where no token holds one, so the words
/// of a text can be merged one by one, and remembered.
TextSplit smallest_split(const Vocabulary& vocabulary) {
  if (vocabulary.split != TextSplit::whole || vocabulary.whole_pieces_first)
    return vocabulary.split;
  const bool crosses =
      std::any_of(vocabulary.merges.begin(), vocabulary.merges.end(), [&](const Merge& merge) {
        return has_space_behind_other(vocabulary.tokens[merge.merged]);
      });
  return crosses ? TextSplit::whole : TextSplit::space_runs;
}

}  // namespace

AddedTokens::AddedTokens(const Vocabulary& vocabulary, bool normalized) {
  for (const AddedToken& token : vocabulary.added) {
    if (token.normalized != normalized) continue;
    const std::string& name = vocabulary.tokens[token.id];
    const bool special = vocabulary.special[token.id] != 0;
    names_.push_back({normalized ? normalized_name(vocabulary, name) : name, token, special});
    if (!special && (token.rstrip || has_inner_space(name))) can_be_cut_around_ = false;
  }
  const auto byte_of = [](const Name& name) { return static_cast<uint8_t>(name.text.front()); };
  std::stable_sort(names_.begin(), names_.end(), [&](const Name& a, const Name& b) {
    if (byte_of(a) != byte_of(b)) return byte_of(a) < byte_of(b);
    return a.text.size() > b.text.size();
  });
  for (const Name& name : names_) ++first_of_byte_[byte_of(name) + size_t{1}];
  for (size_t byte = 0; byte < 256; ++byte) first_of_byte_[byte + 1] += first_of_byte_[byte];
}

const AddedTokens::Name* AddedTokens::longest_at(std::string_view text,
                                                 size_t place,
                                                 SpecialTokens special) const {
  const uint8_t byte = static_cast<uint8_t>(text[place]);
  for (uint32_t i = first_of_byte_[byte]; i < first_of_byte_[byte + size_t{1}]; ++i) {
    const Name& name = names_[i];
    if (name.special && special == SpecialTokens::as_text) continue;
    if (starts_with(text.substr(place), name.text)) return &name;
  }
  return nullptr;
}

std::optional<FoundToken> AddedTokens::find(std::string_view text,
                                            size_t from,
                                            SpecialTokens special) const {
  if (names_.empty()) return std::nullopt;
  for (size_t place = from; place < text.size(); ++place) {
    const Name* name = longest_at(text, place, special);
    if (name == nullptr) continue;
    FoundToken found{place, place + name->text.size(), name->token.id};
    if (name->token.single_word && !is_whole_word(text, found.begin, found.end)) {
      place = found.end - 1;
      continue;
    }
    if (name->token.lstrip) {
      found.begin -= trailing_white_space(text.substr(from, found.begin - from));
    }
    if (name->token.rstrip) found.end += leading_white_space(text.substr(found.end));
    return found;
  }
  return std::nullopt;
}

struct Tokenizer::Output {
  std::vector<int32_t>& ids;
  PieceCaches::Lease cache;
};

Tokenizer::Tokenizer(Vocabulary vocabulary)
    : vocabulary_(std::move(vocabulary)),
      split_(smallest_split(vocabulary_)),
      merger_(vocabulary_.merges, vocabulary_.ranked_by_token),
      raw_tokens_(vocabulary_, /*normalized=*/false),
      normalized_tokens_(vocabulary_, /*normalized=*/true),
      fingerprint_(fingerprint_of(vocabulary_)) {
  std::vector<char> is_added = vocabulary_.special;
  for (const AddedToken& token : vocabulary_.added) is_added[token.id] = 1;
  for (int32_t id = 0; id < vocabulary_.size(); ++id) {
    const std::string& token = vocabulary_.tokens[id];
    if (is_added[id]) continue;
    if (vocabulary_.whole_pieces_first) whole_pieces_.emplace(token, id);
    if (vocabulary_.alphabet == Alphabet::characters && !vocabulary_.is_byte(id) &&
        token.size() == length_from(token[0])) {
      character_ids_.emplace(packed(token), id);
    }
  }
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, SpecialTokens special) const {
  std::vector<int32_t> ids;
  Output out{ids, PieceCaches::Lease(caches_)};
  append_text(text, Place::start, special, out);
  return ids;
}

std::vector<int32_t> Tokenizer::encode_document(std::string_view text) const {
  std::vector<int32_t> ids;
  append_document(text, ids);
  return ids;
}

void Tokenizer::append_document(std::string_view text, std::vector<int32_t>& ids) const {
  append_beginning(text, ids);
  append_end(ids);
}

void Tokenizer::append_beginning(std::string_view text, std::vector<int32_t>& ids) const {
  ids.insert(ids.end(), vocabulary_.before_text.begin(), vocabulary_.before_text.end());
  Output out{ids, PieceCaches::Lease(caches_)};
  append_text(text, Place::start, SpecialTokens::as_text, out);
}

void Tokenizer::append_continuation(std::string_view text, std::vector<int32_t>& ids) const {
  Output out{ids, PieceCaches::Lease(caches_)};
  append_text(text, Place::continuation, SpecialTokens::as_text, out);
}

void Tokenizer::append_end(std::vector<int32_t>& ids) const {
  ids.insert(ids.end(), vocabulary_.after_text.begin(), vocabulary_.after_text.end());
}

size_t Tokenizer::next_safe_cut(std::string_view text, size_t from) const {
  const bool can_cut = raw_tokens_.can_be_cut_around() && normalized_tokens_.can_be_cut_around();
  return can_cut ? data::next_safe_cut(split_, text, from) : text.size();
}

/// Added tokens in the text as given, and what lies between them.
void Tokenizer::append_text(std::string_view text,
                            Place place,
                            SpecialTokens special,
                            Output& out) const {
  size_t begin = 0;
  while (const auto found = raw_tokens_.find(text, begin, special)) {
    append_raw(text.substr(begin, found->begin - begin), place, special, out);
    out.ids.push_back(found->id);
    place = Place::behind_token;
    begin = found->end;
  }
  append_raw(text.substr(begin), place, special, out);
}

bool Tokenizer::takes_prefix(Place place) const {
  switch (vocabulary_.prefix_space) {
    case PrefixSpace::none: return false;
    case PrefixSpace::first_of_several: return place == Place::start;
    case PrefixSpace::every_text:
    case PrefixSpace::unless_there: break;
  }
  return place != Place::continuation;
}

/// Brings a part of the text into its normal form, and finds the added tokens in that.
void Tokenizer::append_raw(std::string_view text,
                           Place place,
                           SpecialTokens special,
                           Output& out) const {
  if (text.empty()) return;
  std::string changed;
  const auto change = [&](std::string other) { text = changed = std::move(other); };
  if (vocabulary_.alphabet == Alphabet::characters && text.find(space_symbol) != text.npos) {
    change(with_spaces(text));
  }
  if (vocabulary_.unicode_form != UnicodeForm::none) {
    change(normalized(text, vocabulary_.unicode_form));
  }
  if (normalized_tokens_.empty()) return append_normalized(text, place, out);
  if (vocabulary_.prefix_space == PrefixSpace::every_text) {
    if (takes_prefix(place)) change(" " + std::string(text));
    place = Place::continuation;
  }
  size_t begin = 0;
  while (const auto found = normalized_tokens_.find(text, begin, special)) {
    append_normalized(text.substr(begin, found->begin - begin), place, out);
    out.ids.push_back(found->id);
    if (vocabulary_.prefix_space != PrefixSpace::every_text) place = Place::behind_token;
    begin = found->end;
  }
  append_normalized(text.substr(begin), place, out);
}

/// A part without added tokens.
void Tokenizer::append_normalized(std::string_view text, Place place, Output& out) const {
  if (text.empty()) return;
  const bool has_space = vocabulary_.prefix_space != PrefixSpace::every_text && text.front() == ' ';
  if (takes_prefix(place) && !has_space) return append_prefixed(text, out);
  append_pieces(text, out);
}

void Tokenizer::append_prefixed(std::string_view text, Output& out) const {
  const size_t cut = data::next_safe_cut(split_, text, 1);  // so that only the first word is copied
  append_pieces(" " + std::string(text.substr(0, cut)), out);
  append_pieces(text.substr(cut), out);
}

void Tokenizer::append_pieces(std::string_view text, Output& out) const {
  for (size_t position = 0; position < text.size();) {
    const std::string_view piece = text.substr(position, piece_length(split_, text, position));
    position += piece.size();
    if (out.cache->append(piece, out.ids)) continue;
    const size_t begin = out.ids.size();
    append_piece(piece, out.ids);
    out.cache->remember(piece, out.ids, begin);
  }
}

void Tokenizer::append_piece(std::string_view piece, std::vector<int32_t>& ids) const {
  if (vocabulary_.whole_pieces_first) {
    const auto whole = whole_pieces_.find(std::string(piece));
    if (whole != whole_pieces_.end()) return ids.push_back(whole->second);
  }
  const size_t begin = ids.size();
  if (vocabulary_.alphabet == Alphabet::bytes) {
    for (const char byte : piece) ids.push_back(vocabulary_.byte_ids[static_cast<uint8_t>(byte)]);
  } else {
    append_characters(piece, ids);
  }
  merger_.apply(ids, begin);
}

/// Of a character that the vocabulary lacks, and of what is no character, each byte.
void Tokenizer::append_characters(std::string_view piece, std::vector<int32_t>& ids) const {
  while (!piece.empty()) {
    const std::string_view character = piece.substr(0, length_from(piece.front()));
    const auto known = character_ids_.find(packed(character));
    const bool is_known = known != character_ids_.end();
    ids.push_back(is_known ? known->second
                           : vocabulary_.byte_ids[static_cast<uint8_t>(piece.front())]);
    piece.remove_prefix(is_known ? character.size() : 1);
  }
}

std::string Tokenizer::decode(const std::vector<int32_t>& ids) const {
  std::string text = decode_continuation(ids);
  const bool has_prefix = vocabulary_.prefix_space != PrefixSpace::none;
  if (has_prefix && !text.empty() && text.front() == ' ') text.erase(0, 1);
  return text;
}

std::string Tokenizer::decode_continuation(const std::vector<int32_t>& ids) const {
  std::string text;
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocabulary_.size()) {
      throw Error("token id " + std::to_string(id) + " is not in the vocabulary of " +
                  std::to_string(vocabulary_.size()));
    }
    if (!vocabulary_.special[id]) text += vocabulary_.tokens[id];
  }
  return text;
}

}  // namespace forge::data

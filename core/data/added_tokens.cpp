#include "core/data/added_tokens.h"

#include <algorithm>

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

}  // namespace forge::data

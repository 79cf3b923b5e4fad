#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/vocabulary.h"

namespace forge::data {

/// What the name of a special token within a text becomes.
enum class SpecialTokens {
  as_text,  ///< the ids of its characters: no text can reach a special id
  as_ids,   ///< its id, as Hugging Face's tokenizers does
};

/// A token that was found in a text, with the white space that it takes along.
struct FoundToken {
  size_t begin = 0;
  size_t end = 0;
  int32_t id = 0;
};

/// Finds added tokens in a text: the first one, at the same place the longest. Immutable.
class AddedTokens {
 public:
  AddedTokens() = default;
  /// Those of a vocabulary that are sought in the text as given, or in the normalised one, where
  /// their names are normalised like it.
  AddedTokens(const Vocabulary& vocabulary, bool normalized);

  bool empty() const { return names_.empty(); }
  /// Whether a text can be cut before white space without a token being missed, as seen from
  /// texts in which special tokens are text.
  bool can_be_cut_around() const { return can_be_cut_around_; }

  /// The next one at or after `from`.
  std::optional<FoundToken> find(std::string_view text, size_t from, SpecialTokens special) const;

 private:
  struct Name {
    std::string text;
    AddedToken token;
    bool special;
  };
  const Name* longest_at(std::string_view text, size_t place, SpecialTokens special) const;

  std::vector<Name> names_;                    ///< by first byte, then the longest first
  std::array<uint32_t, 257> first_of_byte_{};  ///< index of the first name that begins with it
  bool can_be_cut_around_ = true;
};

}  // namespace forge::data

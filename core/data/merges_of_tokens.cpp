#include "core/data/merges_of_tokens.h"

#include <string_view>
#include <unordered_map>

namespace forge::data {

void append_merges_of_tokens(const std::vector<int32_t>& tokens, Vocabulary& vocabulary) {
  std::unordered_map<std::string_view, int32_t> ids;
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string& token = vocabulary.tokens[id];
    if (vocabulary.special[id]) continue;
    // Of a byte and a character that are the same, text leads to the character.
    const bool is_byte =
        token.size() == 1 && vocabulary.byte_ids[static_cast<uint8_t>(token[0])] == id;
    if (is_byte && vocabulary.alphabet == Alphabet::characters) continue;
    ids.emplace(token, id);
  }
  vocabulary.ranked_by_token = true;
  for (const int32_t id : tokens) {
    const std::string_view token = vocabulary.tokens[id];
    for (size_t cut = 1; cut < token.size(); ++cut) {
      const auto left = ids.find(token.substr(0, cut));
      const auto right = ids.find(token.substr(cut));
      if (left == ids.end() || right == ids.end()) continue;
      vocabulary.merges.push_back({left->second, right->second, id});
    }
  }
}

}  // namespace forge::data

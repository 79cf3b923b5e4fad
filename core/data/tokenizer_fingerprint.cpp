#include "core/data/tokenizer_fingerprint.h"

#include <cstdint>
#include <string_view>

#include "core/base/hash.h"

namespace forge::data {
namespace {

class NumberHasher {
 public:
  void text(std::string_view text) { hasher_.update(text); }
  void number(int64_t value) { hasher_.update(std::to_string(value) + "\n"); }
  std::string hex() const { return hasher_.hex(); }

 private:
  Hasher hasher_;
};

/// What tells a vocabulary from those of byte-level BPE that forge trains.
void add_settings(const Vocabulary& vocabulary, NumberHasher& hash) {
  const auto setting = [&](const char* name, int64_t value, int64_t usual) {
    if (value == usual) return;
    hash.text(name);
    hash.number(value);
  };
  setting("split ", static_cast<int64_t>(vocabulary.split), static_cast<int64_t>(TextSplit::gpt2));
  setting("unicode_form ", static_cast<int64_t>(vocabulary.unicode_form), 0);
  setting("ranked_by_token ", vocabulary.ranked_by_token, 0);
  setting("whole_pieces_first ", vocabulary.whole_pieces_first, 0);
  if (vocabulary.alphabet == Alphabet::characters) {
    hash.text("characters\n");
    for (const int32_t id : vocabulary.byte_ids) hash.number(id);
  }
  if (vocabulary.before_text.size() > 1 || !vocabulary.after_text.empty()) {
    hash.text("template\n");
    for (const int32_t id : vocabulary.before_text) hash.number(id);
    hash.number(-1);
    for (const int32_t id : vocabulary.after_text) hash.number(id);
  }
  for (const AddedToken& token : vocabulary.added) {
    const int flags = token.normalized + 2 * token.single_word + 4 * token.lstrip +
                      8 * token.rstrip + 16 * (vocabulary.special[token.id] == 0);
    if (flags == 0) continue;
    hash.text("added ");
    hash.number(token.id);
    hash.number(flags);
  }
}

}  // namespace

std::string fingerprint_of(const Vocabulary& vocabulary) {
  NumberHasher hash;
  hash.text("byte_level_bpe gpt2 1\n");
  hash.number(static_cast<int64_t>(vocabulary.prefix_space));
  for (const int32_t id : {vocabulary.bos_id, vocabulary.pad_id, vocabulary.eos_id}) {
    hash.number(id);
  }
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    hash.number(vocabulary.special[id]);
    hash.number(static_cast<int64_t>(vocabulary.tokens[id].size()));
    hash.text(vocabulary.tokens[id]);
  }
  for (const Merge& merge : vocabulary.merges) {
    for (const int32_t id : {merge.left, merge.right, merge.merged}) hash.number(id);
  }
  add_settings(vocabulary, hash);
  return hash.hex();
}

}  // namespace forge::data

#include "core/data/vocabulary.h"

#include "core/data/byte_symbols.h"

namespace forge::data {

const std::vector<std::string>& special_token_names() {
  static const std::vector<std::string> names = {
      "<|BOS|>", "<|PAD|>", "<|EOS|>", "<|UNK|>", "<|im_start|>", "<|im_end|>"};
  return names;
}

void find_special_ids(Vocabulary& vocabulary) {
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    if (!vocabulary.special[id]) continue;
    const std::string& name = vocabulary.tokens[id];
    if (name == "<|BOS|>") vocabulary.bos_id = id;
    if (name == "<|PAD|>") vocabulary.pad_id = id;
    if (name == "<|EOS|>") vocabulary.eos_id = id;
    if (name == "<|UNK|>") vocabulary.unk_id = id;
  }
}

Vocabulary initial_vocabulary() {
  Vocabulary vocabulary;
  vocabulary.tokens = special_token_names();
  vocabulary.special.assign(vocabulary.tokens.size(), 1);
  for (const uint8_t byte : bytes_by_symbol()) {
    vocabulary.tokens.emplace_back(1, static_cast<char>(byte));
    vocabulary.special.push_back(0);
  }
  find_special_ids(vocabulary);
  return vocabulary;
}

}  // namespace forge::data

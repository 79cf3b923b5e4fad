#include "core/data/vocabulary.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/data/byte_symbols.h"

namespace forge::data {
namespace {

/// The first special token with one of these names; -1 where there is none.
int32_t special_id_of(const Vocabulary& vocabulary, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    for (int32_t id = 0; id < vocabulary.size(); ++id) {
      if (vocabulary.special[id] && vocabulary.tokens[id] == name) return id;
    }
  }
  return -1;
}

}  // namespace

const std::vector<std::string>& special_token_names() {
  static const std::vector<std::string> names = {
      "<|BOS|>", "<|PAD|>", "<|EOS|>", "<|UNK|>", "<|im_start|>", "<|im_end|>"};
  return names;
}

int32_t add_special_token(Vocabulary& vocabulary, const std::string& name) {
  const int32_t id = vocabulary.size();
  vocabulary.tokens.push_back(name);
  vocabulary.special.push_back(1);
  AddedToken token;
  token.id = id;
  vocabulary.added.push_back(token);
  return id;
}

void find_special_ids(Vocabulary& vocabulary) {
  vocabulary.bos_id = vocabulary.before_text.empty() ? -1 : vocabulary.before_text.front();
  vocabulary.pad_id =
      special_id_of(vocabulary, {"<|PAD|>", "<pad>", "<|finetune_right_pad_id|>", "[PAD]"});
  vocabulary.eos_id =
      special_id_of(vocabulary, {"<|EOS|>", "</s>", "<|end_of_text|>", "<|endoftext|>", "<eos>"});
  vocabulary.unk_id = special_id_of(vocabulary, {"<|UNK|>", "<unk>", "[UNK]"});
}

void find_byte_ids(Vocabulary& vocabulary) {
  vocabulary.byte_ids.fill(-1);
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string& token = vocabulary.tokens[id];
    if (token.size() == 1 && !vocabulary.special[id]) {
      vocabulary.byte_ids[static_cast<uint8_t>(token[0])] = id;
    }
  }
  const auto missing = std::find(vocabulary.byte_ids.begin(), vocabulary.byte_ids.end(), -1);
  if (missing == vocabulary.byte_ids.end()) return;
  throw Error("it has no token for byte " + std::to_string(missing - vocabulary.byte_ids.begin()) +
                  ", so some texts would be lost",
              {},
              "a byte-level vocabulary holds all 256 bytes");
}

Vocabulary initial_vocabulary() {
  Vocabulary vocabulary;
  for (const std::string& name : special_token_names()) add_special_token(vocabulary, name);
  for (const uint8_t byte : bytes_by_symbol()) {
    vocabulary.tokens.emplace_back(1, static_cast<char>(byte));
    vocabulary.special.push_back(0);
  }
  find_byte_ids(vocabulary);
  vocabulary.before_text = {0};
  find_special_ids(vocabulary);
  return vocabulary;
}

}  // namespace forge::data

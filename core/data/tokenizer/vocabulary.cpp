#include "core/data/tokenizer/vocabulary.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/base/text.h"

namespace forge::data {
namespace {

constexpr int max_symbol = 0x143;  // 68 bytes are not printable: U+0100 … U+0143
constexpr std::string_view digits = "0123456789ABCDEF";

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  for (size_t at = text.find(from); at != std::string_view::npos; at = text.find(from)) {
    result.append(text.substr(0, at)).append(to);
    text.remove_prefix(at + from.size());
  }
  return result.append(text);
}

/// The first special token with one of these names; -1 where there is none.
int32_t special_id_of(const Vocabulary& vocabulary, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    for (int32_t id = 0; id < vocabulary.size(); ++id) {
      if (vocabulary.special[id] && vocabulary.tokens[id] == name) return id;
    }
  }
  return -1;
}

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

const std::array<uint16_t, 256>& byte_symbols() {
  static const std::array<uint16_t, 256> symbols = [] {
    std::array<uint16_t, 256> all{};
    uint16_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
      all[byte] = printable ? static_cast<uint16_t>(byte) : next++;
    }
    return all;
  }();
  return symbols;
}

const std::array<uint8_t, 256>& bytes_by_symbol() {
  static const std::array<uint8_t, 256> ordered = [] {
    std::array<uint8_t, 256> bytes{};
    std::iota(bytes.begin(), bytes.end(), uint8_t{0});
    std::sort(bytes.begin(), bytes.end(), [](uint8_t a, uint8_t b) {
      return byte_symbols()[a] < byte_symbols()[b];
    });
    return bytes;
  }();
  return ordered;
}

std::string to_symbols(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (const char byte : bytes) {
    const uint16_t symbol = byte_symbols()[static_cast<uint8_t>(byte)];
    if (symbol < 0x80) {
      text += static_cast<char>(symbol);
    } else {
      text += static_cast<char>(0xc0 | symbol >> 6);
      text += static_cast<char>(0x80 | (symbol & 0x3f));
    }
  }
  return text;
}

std::optional<std::string> from_symbols(std::string_view symbols) {
  static const std::array<int16_t, max_symbol + 1> inverse = [] {
    std::array<int16_t, max_symbol + 1> all;
    all.fill(-1);
    for (int byte = 0; byte < 256; ++byte) all[byte_symbols()[byte]] = static_cast<int16_t>(byte);
    return all;
  }();
  std::string bytes;
  for (size_t i = 0; i < symbols.size(); ++i) {
    int symbol = static_cast<uint8_t>(symbols[i]);
    if (symbol >= 0x80) {  // all symbols beyond ASCII are two bytes of UTF-8
      if (symbol < 0xc2 || symbol > 0xdf || i + 1 == symbols.size()) return std::nullopt;
      const int second = static_cast<uint8_t>(symbols[++i]);
      if ((second & 0xc0) != 0x80) return std::nullopt;
      symbol = (symbol & 0x1f) << 6 | (second & 0x3f);
    }
    if (symbol > max_symbol || inverse[symbol] < 0) return std::nullopt;
    bytes += static_cast<char>(inverse[symbol]);
  }
  return bytes;
}

std::string with_spaces(std::string_view text) { return replaced(text, space_symbol, " "); }

std::string with_space_symbols(std::string_view text) { return replaced(text, " ", space_symbol); }

std::string name_of_byte(uint8_t byte) {
  return std::string("<0x") + digits[byte >> 4] + digits[byte & 15] + ">";
}

std::optional<uint8_t> byte_of_name(std::string_view name) {
  if (name.size() != 6 || !starts_with(name, "<0x") || name[5] != '>') return std::nullopt;
  const size_t high = digits.find(name[3]);
  const size_t low = digits.find(name[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
  return static_cast<uint8_t>(high * 16 + low);
}

const std::vector<std::string>& special_token_names() {
  static const std::vector<std::string> names = {
      "<|BOS|>", "<|PAD|>", "<|EOS|>", "<|UNK|>", "<|im_start|>", "<|im_end|>"};
  return names;
}

bool Vocabulary::is_byte(int32_t id) const {
  const std::string& token = tokens[id];
  return token.size() == 1 && byte_ids[static_cast<uint8_t>(token[0])] == id;
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

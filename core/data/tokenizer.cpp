#include "core/data/tokenizer.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/data/pretokenizer.h"

namespace forge::data {
namespace {

std::string fingerprint_of(const Vocabulary& vocabulary) {
  Hasher hasher;
  const auto number = [&](int64_t value) { hasher.update(std::to_string(value) + "\n"); };
  hasher.update("byte_level_bpe gpt2 1\n");
  number(vocabulary.prefix_space);
  for (const int32_t id : {vocabulary.bos_id, vocabulary.pad_id, vocabulary.eos_id}) number(id);
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    number(vocabulary.special[id]);
    number(static_cast<int64_t>(vocabulary.tokens[id].size()));
    hasher.update(vocabulary.tokens[id]);
  }
  for (const Merge& merge : vocabulary.merges) {
    for (const int32_t id : {merge.left, merge.right, merge.merged}) number(id);
  }
  return hasher.hex();
}

}  // namespace

Tokenizer::Tokenizer(Vocabulary vocabulary)
    : vocabulary_(std::move(vocabulary)),
      merger_(vocabulary_.merges),
      fingerprint_(fingerprint_of(vocabulary_)) {
  for (int32_t id = 0; id < vocabulary_.size(); ++id) {
    const std::string& token = vocabulary_.tokens[id];
    if (token.size() == 1 && !vocabulary_.special[id])
      byte_ids_[static_cast<uint8_t>(token[0])] = id;
  }
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, SpecialTokens special) const {
  std::vector<int32_t> ids;
  size_t begin = 0;
  if (special == SpecialTokens::as_ids) {
    std::vector<std::pair<size_t, int32_t>> next;  // where each special token occurs next
    for (int32_t id = 0; id < vocabulary_.size(); ++id) {
      if (vocabulary_.special[id]) next.emplace_back(text.find(vocabulary_.tokens[id]), id);
    }
    while (!next.empty()) {
      const auto [place, id] = *std::min_element(next.begin(), next.end());
      if (place == std::string_view::npos) break;
      append_text(text.substr(begin, place - begin), ids);
      ids.push_back(id);
      begin = place + vocabulary_.tokens[id].size();
      for (auto& [at, other] : next) {
        if (at < begin) at = text.find(vocabulary_.tokens[other], begin);
      }
    }
  }
  append_text(text.substr(begin), ids);
  return ids;
}

std::vector<int32_t> Tokenizer::encode_document(std::string_view text) const {
  std::vector<int32_t> ids;
  append_document(text, ids);
  return ids;
}

void Tokenizer::append_document(std::string_view text, std::vector<int32_t>& ids) const {
  if (vocabulary_.bos_id >= 0) ids.push_back(vocabulary_.bos_id);
  append_text(text, ids);
}

void Tokenizer::append_text(std::string_view text, std::vector<int32_t>& ids) const {
  if (text.empty()) return;
  if (vocabulary_.prefix_space) {
    const size_t cut = next_safe_cut(text, 1);  // so that only the first word is copied
    append_continuation(" " + std::string(text.substr(0, cut)), ids);
    text.remove_prefix(cut);
  }
  append_continuation(text, ids);
}

void Tokenizer::append_continuation(std::string_view text, std::vector<int32_t>& ids) const {
  for (size_t position = 0; position < text.size();) {
    const size_t end = position + piece_length(text, position);
    const size_t begin = ids.size();
    for (; position < end; ++position) {
      ids.push_back(byte_ids_[static_cast<uint8_t>(text[position])]);
    }
    merger_.apply(ids, begin);
  }
}

std::string Tokenizer::decode(const std::vector<int32_t>& ids) const {
  std::string text = decode_continuation(ids);
  if (vocabulary_.prefix_space && !text.empty() && text.front() == ' ') text.erase(0, 1);
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

#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/fs.h"
#include "core/base/json_text.h"
#include "core/data/byte_symbols.h"
#include "core/data/piece_symbols.h"
#include "core/data/tokenizer_json.h"
#include "core/data/tokenizer_json_steps.h"

namespace forge::data {
namespace {

using OrderedJson = nlohmann::ordered_json;  // the vocabulary is written in the order of its ids

/// How each token is written in the file.
std::vector<std::string> written_tokens(const Vocabulary& vocabulary) {
  std::vector<char> as_it_is = vocabulary.special;
  for (const AddedToken& token : vocabulary.added) as_it_is[token.id] = 1;
  std::vector<std::string> written;
  written.reserve(vocabulary.tokens.size());
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string& token = vocabulary.tokens[id];
    const uint8_t first = token.empty() ? 0 : static_cast<uint8_t>(token[0]);
    if (as_it_is[id]) {
      written.push_back(token);
    } else if (vocabulary.alphabet == Alphabet::bytes) {
      written.push_back(to_symbols(token));
    } else if (token.size() == 1 && vocabulary.byte_ids[first] == id) {
      written.push_back(name_of_byte(first));
    } else {
      written.push_back(with_space_symbols(token));
    }
  }
  return written;
}

OrderedJson added_tokens(const Vocabulary& vocabulary) {
  OrderedJson tokens = OrderedJson::array();
  for (const AddedToken& token : vocabulary.added) {
    tokens.push_back({{"id", token.id},
                      {"content", vocabulary.tokens[token.id]},
                      {"single_word", token.single_word},
                      {"lstrip", token.lstrip},
                      {"rstrip", token.rstrip},
                      {"normalized", token.normalized},
                      {"special", vocabulary.special[token.id] != 0}});
  }
  return tokens;
}

OrderedJson model(const Vocabulary& vocabulary) {
  const bool in_characters = vocabulary.alphabet == Alphabet::characters;
  OrderedJson model = {{"type", "BPE"},
                       {"dropout", nullptr},
                       {"unk_token", nullptr},
                       {"continuing_subword_prefix", nullptr},
                       {"end_of_word_suffix", nullptr},
                       {"fuse_unk", in_characters},
                       {"byte_fallback", in_characters},
                       {"ignore_merges", vocabulary.whole_pieces_first}};
  if (vocabulary.ranked_by_token) model["ranked_by_token"] = true;
  if (vocabulary.unk_id >= 0) model["unk_token"] = vocabulary.tokens[vocabulary.unk_id];
  const std::vector<std::string> written = written_tokens(vocabulary);
  // Pushed to the underlying list: a look-up for each key would be quadratic.
  OrderedJson::object_t entries;
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    static_cast<std::vector<std::pair<const std::string, OrderedJson>>&>(entries).emplace_back(
        written[id], id);
  }
  model["vocab"] = std::move(entries);
  OrderedJson merges = OrderedJson::array();
  for (const Merge& merge : vocabulary.merges) {
    merges.push_back(written[merge.left] + " " + written[merge.right]);
  }
  model["merges"] = std::move(merges);
  return model;
}

}  // namespace

std::string tokenizer_to_json(const Tokenizer& tokenizer) {
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  OrderedJson json = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}};
  json["added_tokens"] = added_tokens(vocabulary);
  write_text_steps(vocabulary, json);
  json["model"] = model(vocabulary);
  return json_text(json, 2) + "\n";
}

void save_tokenizer(const Tokenizer& tokenizer, const std::filesystem::path& path) {
  write_file_atomic(path, tokenizer_to_json(tokenizer));
}

}  // namespace forge::data

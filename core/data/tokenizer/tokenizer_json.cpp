#include "core/data/tokenizer/tokenizer_json.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/data/tokenizer/tokenizer_json_pipeline.h"
#include "core/data/tokenizer/vocabulary.h"

namespace forge::data {
namespace {

using Json = nlohmann::json;
using Ids = std::unordered_map<std::string, int32_t>;  ///< of tokens as the file writes them

Json parsed(const std::string& text, const std::filesystem::path& path) {
  try {
    return Json::parse(text);  // depth is bounded by the parser's own explicit stack
  } catch (const Json::parse_error& error) {
    const size_t place = std::min(error.byte > 0 ? error.byte - 1 : 0, text.size());
    const auto begin = text.begin();
    const auto end = begin + static_cast<std::ptrdiff_t>(place);
    const size_t newline = place == 0 ? std::string::npos : text.rfind('\n', place - 1);
    const size_t column = place - (newline == std::string::npos ? 0 : newline + 1) + 1;
    throw Error("cannot use the tokenizer '" + shown_path(path) + "': it is no JSON from line " +
                std::to_string(std::count(begin, end, '\n') + 1) + ", column " +
                std::to_string(column) + " on");
  }
}

void read_added_token(const Json& json,
                      const std::string& name,
                      int32_t id,
                      Vocabulary& vocabulary) {
  const auto flag = [&](const char* key) {
    return flag_of(
        member(json, key), false, std::string(key) + " of the added token '" + name + "'");
  };
  AddedToken token;
  token.id = id;
  vocabulary.special[id] = flag("special");
  token.single_word = flag("single_word");
  token.lstrip = flag("lstrip");
  token.rstrip = flag("rstrip");
  token.normalized = flag("normalized");
  vocabulary.added.push_back(token);
}

/// Where spaces are U+2581 when it is sought, they would not be the white space that it takes.
void refuse_stripping_in_symbols(const Vocabulary& vocabulary) {
  if (vocabulary.alphabet == Alphabet::bytes) return;
  for (const AddedToken& token : vocabulary.added) {
    if (!token.normalized || !(token.lstrip || token.rstrip)) continue;
    refuse("the added token '" + vocabulary.tokens[token.id] +
               "' is sought in the normalised text and takes white space along",
           "\"normalized\": false seeks it in the text as given");
  }
}

Ids read_vocabulary(const Json& json, Vocabulary& vocabulary) {
  const Json& entries = member(member(json, "model"), "vocab");
  const Json& added = member(json, "added_tokens");
  if (!entries.is_object() || entries.empty()) refuse("model.vocab is missing");
  size_t size = entries.size();
  std::vector<std::string> names;
  for (const Json& token : added.is_array() ? added : Json::array()) {
    names.push_back(text_of(member(token, "content"), "the content of an added token"));
    if (names.back().empty()) refuse("an added token is empty");
    if (!entries.contains(names.back())) ++size;
  }
  vocabulary.tokens.resize(size);
  vocabulary.special.assign(size, 0);
  Ids ids;
  std::vector<char> taken(size, 0);
  const auto place = [&](const std::string& name, int32_t id) {
    if (taken[id]) refuse("two tokens have the id " + std::to_string(id));
    taken[id] = 1;
    vocabulary.tokens[id] = name;
    ids[name] = id;
  };
  for (const auto& [name, id] : entries.items()) {
    place(name, id_of(id, "the id of '" + name + "'", size));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const int32_t id = id_of(member(added[i], "id"), "the id of '" + names[i] + "'", size);
    if (!entries.contains(names[i])) place(names[i], id);
    if (vocabulary.tokens[id] != names[i]) refuse("two tokens have the id " + std::to_string(id));
    read_added_token(added[i], names[i], id, vocabulary);
  }
  return ids;
}

std::vector<char> added_marks(const Vocabulary& vocabulary) {
  std::vector<char> marks(vocabulary.tokens.size(), 0);
  for (const AddedToken& token : vocabulary.added) marks[token.id] = 1;
  return marks;
}

/// From the symbols of the file to bytes, with every byte there.
void read_byte_tokens(Vocabulary& vocabulary) {
  const std::vector<char> added = added_marks(vocabulary);
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    if (added[id]) continue;
    const std::optional<std::string> bytes = from_symbols(vocabulary.tokens[id]);
    if (!bytes || bytes->empty()) {
      refuse("the token '" + vocabulary.tokens[id] + "' is not written in byte symbols");
    }
    vocabulary.tokens[id] = *bytes;
  }
  find_byte_ids(vocabulary);
}

void read_character_tokens(Vocabulary& vocabulary) {
  vocabulary.byte_ids.fill(-1);
  const std::vector<char> added = added_marks(vocabulary);
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    if (added[id]) continue;
    std::string& token = vocabulary.tokens[id];
    if (token.empty()) refuse("the token with the id " + std::to_string(id) + " is empty");
    if (const std::optional<uint8_t> byte = byte_of_name(token)) {
      vocabulary.byte_ids[*byte] = id;
      token = static_cast<char>(*byte);
      continue;
    }
    if (token.find(' ') != std::string::npos) {
      refuse("the token '" + token + "' holds a space, which no text reaches: they are U+2581");
    }
    token = with_spaces(token);
  }
  for (int byte = 0; byte < 256; ++byte) {
    if (vocabulary.byte_ids[byte] >= 0) continue;
    refuse("it has byte_fallback, but no token for byte " + std::to_string(byte) +
           ", so some texts would be lost");
  }
}

void read_merges(const Json& json, const Ids& ids, Vocabulary& vocabulary) {
  const Json& merges = member(member(json, "model"), "merges");
  if (!merges.is_array()) refuse("model.merges is missing");
  const auto find = [&](const std::string& token, size_t rank) {
    const auto found = ids.find(token);
    if (found == ids.end() || vocabulary.special[found->second]) {
      refuse("merge " + std::to_string(rank) + " needs the token '" + token +
             "', which is not in the vocabulary");
    }
    return found->second;
  };
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    std::vector<std::string> parts;
    if (merges[rank].is_string()) {
      parts = split(merges[rank].get<std::string>(), ' ');
    } else if (merges[rank].is_array()) {
      for (const Json& part : merges[rank]) parts.push_back(text_of(part, "a part of a merge"));
    }
    if (parts.size() != 2) refuse("merge " + std::to_string(rank) + " is not of two tokens");
    vocabulary.merges.push_back(
        {find(parts[0], rank), find(parts[1], rank), find(parts[0] + parts[1], rank)});
  }
}

void read_model(const Json& json, Vocabulary& vocabulary) {
  const Json& model = member(json, "model");
  const Json& type = member(model, "type");
  const bool untyped = type.is_null() && model.is_object() && model.contains("merges");
  if (type != "BPE" && !untyped) refuse("its model is " + shown(type) + ", not \"BPE\"");
  for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
    if (asks_nothing(member(model, key))) continue;
    refuse(std::string("its model.") + key + " is " + shown(member(model, key)),
           "forge knows BPE without it");
  }
  vocabulary.whole_pieces_first =
      flag_of(member(model, "ignore_merges"), false, "model.ignore_merges");
  vocabulary.ranked_by_token =
      flag_of(member(model, "ranked_by_token"), false, "model.ranked_by_token");
}

Tokenizer tokenizer_from_json(const Json& json) {
  if (!json.is_object()) refuse("it is not a JSON object");
  Vocabulary vocabulary;
  read_model(json, vocabulary);
  const Ids ids = read_vocabulary(json, vocabulary);
  read_merges(json, ids, vocabulary);
  read_text_steps(json, vocabulary);
  refuse_stripping_in_symbols(vocabulary);
  if (vocabulary.alphabet == Alphabet::bytes) {
    read_byte_tokens(vocabulary);
  } else {
    read_character_tokens(vocabulary);
  }
  read_post_processor(json, vocabulary);
  find_special_ids(vocabulary);
  return Tokenizer(std::move(vocabulary));
}

}  // namespace

Tokenizer load_tokenizer(const std::filesystem::path& path) {
  const Json json = parsed(read_file(path), path);
  try {
    return tokenizer_from_json(json);
  } catch (const Error& error) {
    throw Error("cannot use the tokenizer '" + shown_path(path) + "': " + error.message(),
                error.hint());
  }
}

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

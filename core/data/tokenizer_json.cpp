#include "core/data/tokenizer_json.h"

#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/data/byte_symbols.h"

namespace forge::data {
namespace {

using OrderedJson = nlohmann::ordered_json;  // the vocabulary is written in the order of its ids
using Json = nlohmann::json;

std::string written_token(const Vocabulary& vocabulary, int32_t id) {
  const std::string& token = vocabulary.tokens[id];
  return vocabulary.special[id] ? token : to_symbols(token);
}

OrderedJson added_tokens(const Vocabulary& vocabulary) {
  OrderedJson tokens = OrderedJson::array();
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    if (!vocabulary.special[id]) continue;
    tokens.push_back({{"id", id},
                      {"content", vocabulary.tokens[id]},
                      {"single_word", false},
                      {"lstrip", false},
                      {"rstrip", false},
                      {"normalized", false},
                      {"special", true}});
  }
  return tokens;
}

/// BOS in front of a text, and in front of the second of two.
OrderedJson post_processor(const Vocabulary& vocabulary) {
  if (vocabulary.bos_id < 0) return nullptr;
  const std::string& bos = vocabulary.tokens[vocabulary.bos_id];
  const auto special = [&](int type) {
    return OrderedJson{{"SpecialToken", {{"id", bos}, {"type_id", type}}}};
  };
  const auto text = [](const char* id, int type) {
    return OrderedJson{{"Sequence", {{"id", id}, {"type_id", type}}}};
  };
  OrderedJson processor = {{"type", "TemplateProcessing"}};
  processor["single"] = OrderedJson::array({special(0), text("A", 0)});
  processor["pair"] = OrderedJson::array({special(0), text("A", 0), special(1), text("B", 1)});
  processor["special_tokens"][bos] = {{"id", bos},
                                      {"ids", OrderedJson::array({vocabulary.bos_id})},
                                      {"tokens", OrderedJson::array({bos})}};
  return processor;
}

/// The prefix space is a normaliser and a decoder of its own, not ByteLevel's add_prefix_space,
/// which leaves a text that begins with a space alone and never takes the space away again.
void write_text_steps(const Vocabulary& vocabulary, OrderedJson& json) {
  const OrderedJson byte_level = {{"type", "ByteLevel"},
                                  {"add_prefix_space", false},
                                  {"trim_offsets", true},
                                  {"use_regex", true}};
  json["normalizer"] = nullptr;
  json["pre_tokenizer"] = byte_level;
  json["post_processor"] = post_processor(vocabulary);
  json["decoder"] = byte_level;
  if (!vocabulary.prefix_space) return;
  json["normalizer"] = {{"type", "Prepend"}, {"prepend", " "}};
  const OrderedJson strip = {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}};
  json["decoder"] = {{"type", "Sequence"}, {"decoders", OrderedJson::array({byte_level, strip})}};
}

OrderedJson model(const Vocabulary& vocabulary) {
  OrderedJson model = {{"type", "BPE"},
                       {"dropout", nullptr},
                       {"unk_token", nullptr},
                       {"continuing_subword_prefix", nullptr},
                       {"end_of_word_suffix", nullptr},
                       {"fuse_unk", false},
                       {"byte_fallback", false},
                       {"ignore_merges", false}};
  if (vocabulary.unk_id >= 0) model["unk_token"] = vocabulary.tokens[vocabulary.unk_id];
  // Pushed to the underlying list: a look-up for each key would be quadratic.
  OrderedJson::object_t entries;
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    static_cast<std::vector<std::pair<const std::string, OrderedJson>>&>(entries).emplace_back(
        written_token(vocabulary, id), id);
  }
  model["vocab"] = std::move(entries);
  OrderedJson merges = OrderedJson::array();
  for (const Merge& merge : vocabulary.merges) {
    merges.push_back(written_token(vocabulary, merge.left) + " " +
                     written_token(vocabulary, merge.right));
  }
  model["merges"] = std::move(merges);
  return model;
}

// Reading. Every accessor checks the type; `refuse` names the file once, in load_tokenizer.

[[noreturn]] void refuse(const std::string& reason, const std::string& hint = "") {
  throw Error(reason, {}, hint);
}

const Json& member(const Json& object, const char* key) {
  static const Json null;
  if (!object.is_object()) return null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

/// A value for a message; only scalars, for a deep tree must not be walked recursively.
std::string shown(const Json& value) {
  return value.is_structured() ? "a " + std::string(value.type_name()) : value.dump();
}

std::string text_of(const Json& value, const std::string& what) {
  if (!value.is_string()) refuse(what + " is not a string");
  return value.get<std::string>();
}

int32_t id_of(const Json& value, const std::string& what, size_t limit) {
  if (!value.is_number_integer() || value < 0 || value >= static_cast<int64_t>(limit)) {
    refuse(what + " is not an id from 0 to " + std::to_string(limit - 1) + ": " + shown(value));
  }
  return value.get<int32_t>();
}

bool is_type(const Json& value, const char* type) { return member(value, "type") == type; }

/// Whether a key is absent, null, false, 0 or "": that is, asks for nothing.
bool asks_nothing(const Json& value) {
  return value.is_null() || value == false || value == 0 || value == "";
}

std::unordered_map<std::string, int32_t> read_vocabulary(const Json& json, Vocabulary& vocabulary) {
  const Json& entries = member(member(json, "model"), "vocab");
  const Json& added = member(json, "added_tokens");
  if (!entries.is_object() || entries.empty()) refuse("model.vocab is missing");
  std::unordered_map<std::string, int32_t> ids;
  size_t size = entries.size();
  std::vector<std::string> specials;
  for (const Json& token : added.is_array() ? added : Json::array()) {
    const std::string name = text_of(member(token, "content"), "the content of an added token");
    if (name.empty()) refuse("an added token is empty");
    if (member(token, "special") != true) {
      refuse("the added token '" + name + "' is not special", "forge knows special tokens only");
    }
    if (!entries.contains(name)) ++size;
    specials.push_back(name);
  }
  vocabulary.tokens.resize(size);
  vocabulary.special.assign(size, 0);
  std::vector<char> taken(size, 0);
  const auto place = [&](const std::string& name, int32_t id) {
    if (taken[id]) refuse("two tokens have the id " + std::to_string(id));
    taken[id] = 1;
    vocabulary.tokens[id] = name;
    ids[name] = id;
  };
  for (const auto& [name, id] : entries.items())
    place(name, id_of(id, "the id of '" + name + "'", size));
  for (size_t i = 0; i < specials.size(); ++i) {
    const int32_t id = id_of(member(added[i], "id"), "the id of '" + specials[i] + "'", size);
    if (!entries.contains(specials[i])) place(specials[i], id);
    if (vocabulary.tokens[id] != specials[i])
      refuse("two tokens have the id " + std::to_string(id));
    vocabulary.special[id] = 1;
  }
  return ids;
}

/// From the symbols of the file to bytes, with every byte there.
void read_bytes(Vocabulary& vocabulary) {
  std::vector<char> seen(256, 0);
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.special[id]) continue;
    const std::optional<std::string> bytes = from_symbols(vocabulary.tokens[id]);
    if (!bytes || bytes->empty()) {
      refuse("the token '" + vocabulary.tokens[id] + "' is not written in byte symbols",
             "forge reads byte-level vocabularies");
    }
    vocabulary.tokens[id] = *bytes;
    if (bytes->size() == 1) seen[static_cast<uint8_t>((*bytes)[0])] = 1;
  }
  for (int byte = 0; byte < 256; ++byte) {
    if (!seen[byte]) refuse("the vocabulary has no token for byte " + std::to_string(byte));
  }
}

void read_merges(const Json& json,
                 const std::unordered_map<std::string, int32_t>& ids,
                 Vocabulary& vocabulary) {
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

void read_text_steps(const Json& json, Vocabulary& vocabulary) {
  const Json& normalizer = member(json, "normalizer");
  vocabulary.prefix_space = is_type(normalizer, "Prepend") && member(normalizer, "prepend") == " ";
  if (!normalizer.is_null() && !vocabulary.prefix_space) {
    refuse("its normalizer " + shown(member(normalizer, "type")) + " would change the text",
           "set \"normalizer\" to null; text that is in that form already keeps its ids");
  }
  const Json& splitter = member(json, "pre_tokenizer");
  if (!is_type(splitter, "ByteLevel") || member(splitter, "use_regex") == false) {
    refuse("its pre_tokenizer is not ByteLevel with GPT-2's pattern");
  }
  if (member(splitter, "add_prefix_space") == true) vocabulary.prefix_space = true;
  const Json& model = member(json, "model");
  if (!is_type(model, "BPE"))
    refuse("its model is " + shown(member(model, "type")) + ", not \"BPE\"");
  for (const char* key :
       {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "ignore_merges"}) {
    if (!asks_nothing(member(model, key))) {
      refuse(std::string("its model.") + key + " is " + shown(member(model, key)),
             "forge knows plain byte-level BPE");
    }
  }
}

/// The one special token that the post-processor puts in front of a text, if any.
void read_post_processor(const Json& json, Vocabulary& vocabulary) {
  vocabulary.bos_id = -1;
  const Json& processor = member(json, "post_processor");
  if (processor.is_null() || is_type(processor, "ByteLevel")) return;
  const Json& single = member(processor, "single");
  const bool known = is_type(processor, "TemplateProcessing") && single.is_array() &&
                     single.size() == 2 && single[0].contains("SpecialToken") &&
                     single[1].contains("Sequence");
  if (!known) {
    refuse("its post_processor does something else than put one special token before a text");
  }
  const std::string name =
      text_of(member(single[0]["SpecialToken"], "id"), "the post_processor's special token");
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.special[id] && vocabulary.tokens[id] == name) vocabulary.bos_id = id;
  }
  if (vocabulary.bos_id < 0) refuse("its post_processor's token '" + name + "' is not special");
}

Tokenizer tokenizer_from_json(const std::string& text) {
  // Depth is bounded by the parser's own explicit stack; a file of brackets is no attack.
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) refuse("it is not a JSON object");
  Vocabulary vocabulary;
  const std::unordered_map<std::string, int32_t> ids = read_vocabulary(json, vocabulary);
  read_merges(json, ids, vocabulary);
  read_bytes(vocabulary);
  read_text_steps(json, vocabulary);
  find_special_ids(vocabulary);
  read_post_processor(json, vocabulary);
  return Tokenizer(std::move(vocabulary));
}

}  // namespace

std::string tokenizer_to_json(const Tokenizer& tokenizer) {
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  OrderedJson json = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}};
  json["added_tokens"] = added_tokens(vocabulary);
  write_text_steps(vocabulary, json);
  json["model"] = model(vocabulary);
  return json.dump(2) + "\n";
}

void save_tokenizer(const Tokenizer& tokenizer, const std::filesystem::path& path) {
  write_file_atomic(path, tokenizer_to_json(tokenizer));
}

Tokenizer load_tokenizer(const std::filesystem::path& path) {
  try {
    return tokenizer_from_json(read_file(path));
  } catch (const Error& error) {
    throw Error("cannot use the tokenizer '" + shown_path(path) + "': " + error.message(),
                {},
                error.hint());
  }
}

}  // namespace forge::data

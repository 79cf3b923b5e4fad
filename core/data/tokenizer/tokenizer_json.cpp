#include "core/data/tokenizer/tokenizer_json.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/json_file.h"
#include "core/base/text.h"
#include "core/data/tokenizer/vocabulary.h"

namespace forge::data {
namespace {

using Json = nlohmann::json;
using Ids = std::unordered_map<std::string, int32_t>;  ///< of tokens as the file writes them

// Values of a tokenizer.json, each with its type checked: the file may be anything.

/// Throws the Error for a file that cannot be used; load_tokenizer puts the file's name in front.
[[noreturn]] void refuse(const std::string& reason, const std::string& hint = "") {
  throw Error(reason, hint);
}

/// A member of an object; null where there is none, or no object.
const Json& member(const Json& object, const char* key) {
  static const Json null;
  if (!object.is_object()) return null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

/// A value for a message; only scalars, for a deep tree must not be walked recursively.
std::string shown(const Json& value) {
  return value.is_structured() ? "a " + std::string(value.type_name()) : json_text(value);
}

std::string text_of(const Json& value, const std::string& what) {
  if (!value.is_string()) refuse(what + " is not a string");
  return value.get<std::string>();
}

bool flag_of(const Json& value, bool absent, const std::string& what) {
  if (value.is_null()) return absent;
  if (!value.is_boolean()) refuse(what + " is " + shown(value) + ", not true or false");
  return value.get<bool>();
}

/// An id below `limit`.
int32_t id_of(const Json& value, const std::string& what, size_t limit) {
  if (!value.is_number_integer() || value < 0 || value >= static_cast<int64_t>(limit)) {
    refuse(what + " is not an id from 0 to " + std::to_string(limit - 1) + ": " + shown(value));
  }
  return value.get<int32_t>();
}

bool is_type(const Json& value, const char* type) { return member(value, "type") == type; }

/// Whether a key is absent, null, false, 0 or "".
bool asks_nothing(const Json& value) {
  return value.is_null() || value == false || value == 0 || value == "";
}

/// The steps of a value that is null, one step, or a Sequence that lists them under `key`. Throws
/// Error where a Sequence is within a Sequence.
std::vector<const Json*> steps_of(const Json& value, const char* key, const std::string& what) {
  if (value.is_null()) return {};
  if (!is_type(value, "Sequence")) return {&value};
  std::vector<const Json*> steps;
  for (const Json& step : member(value, key)) {
    if (is_type(step, "Sequence")) refuse("its " + what + " has a Sequence within a Sequence");
    steps.push_back(&step);
  }
  return steps;
}

std::string type_of(const Json& step) { return shown(member(step, "type")); }

/// none where a step of that type is another one.
UnicodeForm unicode_form_of(const Json& type) {
  for (const auto form :
       {UnicodeForm::nfc, UnicodeForm::nfd, UnicodeForm::nfkc, UnicodeForm::nfkd}) {
    if (type == name_of(form)) return form;
  }
  return UnicodeForm::none;
}

/// Whether a step writes spaces as U+2581.
bool replaces_spaces(const Json& step) {
  return is_type(step, "Replace") && member(member(step, "pattern"), "String") == " " &&
         member(step, "content") == space_symbol;
}

/// Returns whether the normaliser writes spaces as U+2581.
bool read_normalizer(const Json& json, Vocabulary& vocabulary) {
  bool spaces_replaced = false;
  for (const Json* step : steps_of(json, "normalizers", "normalizer")) {
    const Json& type = member(*step, "type");
    const Json& prepended = member(*step, "prepend");
    if (const UnicodeForm form = unicode_form_of(type); form != UnicodeForm::none) {
      if (vocabulary.unicode_form != UnicodeForm::none && vocabulary.unicode_form != form) {
        refuse("its normalizer asks for " + std::string(name_of(form)) +
               " and another Unicode form");
      }
      vocabulary.unicode_form = form;
    } else if (type == "Prepend" && (prepended == " " || prepended == space_symbol)) {
      vocabulary.prefix_space = PrefixSpace::every_text;
    } else if (replaces_spaces(*step)) {
      spaces_replaced = true;
    } else {
      refuse("its normalizer " + type_of(*step) + " would change the text in a way of its own",
             "forge follows NFC, NFD, NFKC, NFKD, Prepend of a space, and Replace of spaces by "
             "U+2581");
    }
  }
  return spaces_replaced;
}

TextSplit split_of_pattern(const Json& step) {
  const Json& pattern = member(member(step, "pattern"), "Regex");
  for (const TextSplit split : {TextSplit::gpt2, TextSplit::llama3, TextSplit::qwen2}) {
    if (pattern == pattern_of(split)) return split;
  }
  // The same language: an optional quantifier's possessiveness and (?i:...)'s place differ.
  if (pattern ==
      R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)") {
    return TextSplit::llama3;
  }
  refuse("its pre_tokenizer splits by a pattern that forge does not know: " + shown(pattern),
         "forge knows the patterns of GPT-2, of Llama 3 (and GPT-4), and of Qwen 2");
}

/// The matches of a known pattern are the whole text, so both ways to say it mean the same.
bool keeps_matches(const Json& step) {
  const bool inverted = flag_of(member(step, "invert"), false, "pre_tokenizer's invert");
  return member(step, "behavior") == (inverted ? "Removed" : "Isolated");
}

void read_byte_level(const std::vector<const Json*>& steps, Vocabulary& vocabulary) {
  const Json& byte_level = *steps.back();
  if (!is_type(byte_level, "ByteLevel") || steps.size() > 2) {
    refuse("its pre_tokenizer has other steps than a Split and ByteLevel");
  }
  const bool prefixed = flag_of(member(byte_level, "add_prefix_space"), true, "add_prefix_space");
  const bool by_gpt2 = flag_of(member(byte_level, "use_regex"), true, "use_regex");
  vocabulary.split = by_gpt2 ? TextSplit::gpt2 : TextSplit::whole;
  if (steps.size() == 2) {
    if (!is_type(*steps[0], "Split") || !keeps_matches(*steps[0])) {
      refuse("its pre_tokenizer " + type_of(*steps[0]) + " is not a Split into what matches");
    }
    if (by_gpt2 || prefixed) refuse("its pre_tokenizer ByteLevel changes what Split has divided");
    vocabulary.split = split_of_pattern(*steps[0]);
  }
  if (prefixed && vocabulary.prefix_space == PrefixSpace::none) {
    vocabulary.prefix_space = PrefixSpace::unless_there;
  }
}

PrefixSpace prefix_of_metaspace(const Json& step) {
  const Json& scheme = member(step, "prepend_scheme");
  if (scheme == "never") return PrefixSpace::none;
  if (scheme == "first") return PrefixSpace::first_of_several;
  if (!scheme.is_null() && scheme != "always") {
    refuse("Metaspace's prepend_scheme is " + shown(scheme), "always, first or never");
  }
  const bool prefixed = flag_of(member(step, "add_prefix_space"), true, "add_prefix_space");
  return prefixed ? PrefixSpace::unless_there : PrefixSpace::none;
}

/// Pieces of characters, in which a space is U+2581.
void read_metaspace(const std::vector<const Json*>& steps,
                    bool spaces_replaced,
                    Vocabulary& vocabulary) {
  vocabulary.split = TextSplit::whole;
  for (const Json* step : steps) {
    const bool splits_at_space =
        is_type(*step, "Split") && member(member(*step, "pattern"), "String") == " ";
    if (splits_at_space && spaces_replaced) continue;  // there is no space any more
    if (!is_type(*step, "Metaspace") || member(*step, "replacement") != space_symbol) {
      refuse("its pre_tokenizer " + type_of(*step) + " is neither ByteLevel nor Metaspace");
    }
    spaces_replaced = true;
    if (flag_of(member(*step, "split"), true, "Metaspace's split")) {
      vocabulary.split = TextSplit::spaces;
    }
    if (vocabulary.prefix_space == PrefixSpace::none) {
      vocabulary.prefix_space = prefix_of_metaspace(*step);
    }
  }
  if (!spaces_replaced) {
    refuse("neither its normalizer nor its pre_tokenizer writes spaces as U+2581");
  }
}

int32_t special_id_of(const Json& processor,
                      const std::string& name,
                      const Vocabulary& vocabulary) {
  const Json& tokens = member(processor, "special_tokens");
  const Json& ids = member(member(tokens, name.c_str()), "ids");
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    if (!vocabulary.special[id] || vocabulary.tokens[id] != name) continue;
    if (!ids.is_null() && ids != Json::array({id})) {
      refuse("its post_processor gives '" + name + "' other ids than " + std::to_string(id));
    }
    return id;
  }
  refuse("its post_processor's token '" + name + "' is not special");
}

void read_template(const Json& processor, Vocabulary& vocabulary) {
  bool text_seen = false;
  for (const Json& item : member(processor, "single")) {
    const Json& special = member(item, "SpecialToken");
    if (!special.is_null()) {
      const std::string name = text_of(member(special, "id"), "the post_processor's special token");
      (text_seen ? vocabulary.after_text : vocabulary.before_text)
          .push_back(special_id_of(processor, name, vocabulary));
    } else if (member(member(item, "Sequence"), "id") == "A" && !text_seen) {
      text_seen = true;
    } else {
      refuse("its post_processor's template for one text holds more than that and special tokens");
    }
  }
  if (!text_seen) refuse("its post_processor's template for one text leaves the text out");
}

/// Reads normalizer and pre_tokenizer: sets alphabet, unicode_form, prefix_space and split.
void read_text_steps(const Json& json, Vocabulary& vocabulary) {
  vocabulary.prefix_space = PrefixSpace::none;
  const bool spaces_replaced = read_normalizer(member(json, "normalizer"), vocabulary);
  const std::vector<const Json*> steps =
      steps_of(member(json, "pre_tokenizer"), "pretokenizers", "pre_tokenizer");
  bool is_byte_level = false;
  for (const Json* step : steps) is_byte_level |= is_type(*step, "ByteLevel");
  vocabulary.alphabet = is_byte_level ? Alphabet::bytes : Alphabet::characters;
  if (is_byte_level) {
    if (spaces_replaced) refuse("its normalizer replaces spaces, which ByteLevel writes itself");
    read_byte_level(steps, vocabulary);
  } else if (member(member(json, "model"), "byte_fallback") == true) {
    read_metaspace(steps, spaces_replaced, vocabulary);
  } else {
    refuse("its pre_tokenizer is not ByteLevel and its model has no byte_fallback",
           "text that its vocabulary lacks would be lost");
  }
}

/// Reads the post_processor: sets before_text and after_text. The tokens must be known.
void read_post_processor(const Json& json, Vocabulary& vocabulary) {
  bool seen = false;
  for (const Json* step :
       steps_of(member(json, "post_processor"), "processors", "post_processor")) {
    if (is_type(*step, "ByteLevel")) continue;  // is about offsets only
    if (!is_type(*step, "TemplateProcessing") || seen) {
      refuse("its post_processor " + type_of(*step) + " is not one TemplateProcessing");
    }
    seen = true;
    read_template(*step, vocabulary);
  }
}

/// The largest in use have 35 MB.
constexpr uintmax_t largest_file = uintmax_t{128} << 20;
constexpr int deepest = 1000;  // a Sequence of a Sequence of …

Json parsed(const std::string& text) {
  try {
    Json json = read_json_text(text, deepest);
    return json.is_discarded() ? Json::parse(text) : json;  // which says where it is none
  } catch (const Json::parse_error& error) {
    const size_t place = std::min(error.byte > 0 ? error.byte - 1 : 0, text.size());
    const auto begin = text.begin();
    const auto end = begin + static_cast<std::ptrdiff_t>(place);
    const size_t newline = place == 0 ? std::string::npos : text.rfind('\n', place - 1);
    const size_t column = place - (newline == std::string::npos ? 0 : newline + 1) + 1;
    throw Error("it is no JSON from line " + std::to_string(std::count(begin, end, '\n') + 1) +
                ", column " + std::to_string(column) + " on");
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
  const std::string text = read_file_within(path, largest_file);
  try {
    require_shallow_json(text);
    const Json json = parsed(text);
    return tokenizer_from_json(json);
  } catch (const Error& error) {
    throw Error("cannot use the tokenizer '" + shown_path(path) + "': " + error.message(),
                error.hint());
  }
}

}  // namespace forge::data

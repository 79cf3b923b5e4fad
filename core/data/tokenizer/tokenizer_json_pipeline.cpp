#include "core/data/tokenizer/tokenizer_json_pipeline.h"

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/data/tokenizer/vocabulary.h"

namespace forge::data {

using Json = nlohmann::json;

void refuse(const std::string& reason, const std::string& hint) { throw Error(reason, hint); }

const Json& member(const Json& object, const char* key) {
  static const Json null;
  if (!object.is_object()) return null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

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

int32_t id_of(const Json& value, const std::string& what, size_t limit) {
  if (!value.is_number_integer() || value < 0 || value >= static_cast<int64_t>(limit)) {
    refuse(what + " is not an id from 0 to " + std::to_string(limit - 1) + ": " + shown(value));
  }
  return value.get<int32_t>();
}

bool is_type(const Json& value, const char* type) { return member(value, "type") == type; }

bool asks_nothing(const Json& value) {
  return value.is_null() || value == false || value == 0 || value == "";
}

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

namespace {

std::string type_of(const Json& step) { return shown(member(step, "type")); }

void read_unicode_form(const std::string& name, UnicodeForm form, Vocabulary& vocabulary) {
  if (vocabulary.unicode_form != UnicodeForm::none && vocabulary.unicode_form != form) {
    refuse("its normalizer asks for " + name + " and another Unicode form");
  }
  vocabulary.unicode_form = form;
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
    if (type == "NFC") {
      read_unicode_form("NFC", UnicodeForm::nfc, vocabulary);
    } else if (type == "NFD") {
      read_unicode_form("NFD", UnicodeForm::nfd, vocabulary);
    } else if (type == "NFKC") {
      read_unicode_form("NFKC", UnicodeForm::nfkc, vocabulary);
    } else if (type == "NFKD") {
      read_unicode_form("NFKD", UnicodeForm::nfkd, vocabulary);
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

}  // namespace

std::string_view pattern_of(TextSplit split) {
  switch (split) {
    case TextSplit::gpt2:
      return R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
    case TextSplit::llama3:
      return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
    case TextSplit::qwen2:
      return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
    case TextSplit::spaces:
    case TextSplit::space_runs:
    case TextSplit::whole: break;
  }
  return "";
}

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

namespace {

using OrderedJson = nlohmann::ordered_json;

/// null, the one step, or a Sequence of them.
OrderedJson in_sequence(const OrderedJson& steps, const char* key) {
  if (steps.empty()) return nullptr;
  if (steps.size() == 1) return steps[0];
  return {{"type", "Sequence"}, {key, steps}};
}

OrderedJson byte_level(bool prefix_space, bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", prefix_space},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

OrderedJson replace(std::string_view from, std::string_view to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

/// A space before every text is a normaliser and a decoder of its own: ByteLevel's and Metaspace's
/// leave a text that begins with a space alone, and ByteLevel's is never taken away again.
OrderedJson normalizers(const Vocabulary& vocabulary) {
  const bool in_characters = vocabulary.alphabet == Alphabet::characters;
  const char* const forms[] = {nullptr, "NFC", "NFD", "NFKC", "NFKD"};
  OrderedJson steps = OrderedJson::array();
  if (const char* form = forms[static_cast<int>(vocabulary.unicode_form)]) {
    steps.push_back({{"type", form}});
  }
  if (vocabulary.prefix_space == PrefixSpace::every_text) {
    steps.push_back({{"type", "Prepend"}, {"prepend", in_characters ? space_symbol : " "}});
  }
  if (in_characters) steps.push_back(replace(" ", space_symbol));
  return steps;
}

OrderedJson byte_level_steps(const Vocabulary& vocabulary) {
  const bool prefixed = vocabulary.prefix_space == PrefixSpace::unless_there;
  if (vocabulary.split == TextSplit::gpt2) return OrderedJson::array({byte_level(prefixed, true)});
  OrderedJson steps = OrderedJson::array();
  if (const std::string_view pattern = pattern_of(vocabulary.split); !pattern.empty()) {
    steps.push_back({{"type", "Split"},
                     {"pattern", {{"Regex", pattern}}},
                     {"behavior", "Isolated"},
                     {"invert", false}});
  }
  steps.push_back(byte_level(prefixed, false));
  return steps;
}

OrderedJson metaspace_steps(const Vocabulary& vocabulary) {
  const char* scheme = "never";
  if (vocabulary.prefix_space == PrefixSpace::unless_there) scheme = "always";
  if (vocabulary.prefix_space == PrefixSpace::first_of_several) scheme = "first";
  const bool splits = vocabulary.split == TextSplit::spaces;
  if (!splits && scheme == std::string_view("never")) return OrderedJson::array();
  return OrderedJson::array({{{"type", "Metaspace"},
                              {"replacement", space_symbol},
                              {"prepend_scheme", scheme},
                              {"split", splits}}});
}

OrderedJson decoders(const Vocabulary& vocabulary) {
  OrderedJson steps = OrderedJson::array();
  if (vocabulary.alphabet == Alphabet::bytes) {
    steps.push_back(byte_level(false, true));
  } else {
    steps.push_back(replace(space_symbol, " "));
    steps.push_back({{"type", "ByteFallback"}});
    steps.push_back({{"type", "Fuse"}});
  }
  if (vocabulary.prefix_space != PrefixSpace::none) {
    steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  return steps;
}

/// The special tokens around a text, and around each of two.
OrderedJson post_processor(const Vocabulary& vocabulary) {
  if (vocabulary.before_text.empty() && vocabulary.after_text.empty()) return nullptr;
  OrderedJson specials = OrderedJson::object();
  const auto add_one = [&](const char* text, int type, OrderedJson& items) {
    const auto add_specials = [&](const std::vector<int32_t>& ids) {
      for (const int32_t id : ids) {
        const std::string& name = vocabulary.tokens[id];
        items.push_back({{"SpecialToken", {{"id", name}, {"type_id", type}}}});
        specials[name] = {{"id", name},
                          {"ids", OrderedJson::array({id})},
                          {"tokens", OrderedJson::array({name})}};
      }
    };
    add_specials(vocabulary.before_text);
    items.push_back({{"Sequence", {{"id", text}, {"type_id", type}}}});
    add_specials(vocabulary.after_text);
  };
  OrderedJson single = OrderedJson::array();
  add_one("A", 0, single);
  OrderedJson pair = OrderedJson::array();
  add_one("A", 0, pair);
  add_one("B", 1, pair);
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"pair", pair},
          {"special_tokens", specials}};
}

}  // namespace

void write_text_steps(const Vocabulary& vocabulary, OrderedJson& json) {
  const bool in_bytes = vocabulary.alphabet == Alphabet::bytes;
  json["normalizer"] = in_sequence(normalizers(vocabulary), "normalizers");
  json["pre_tokenizer"] = in_sequence(
      in_bytes ? byte_level_steps(vocabulary) : metaspace_steps(vocabulary), "pretokenizers");
  json["post_processor"] = post_processor(vocabulary);
  json["decoder"] = in_sequence(decoders(vocabulary), "decoders");
}

}  // namespace forge::data

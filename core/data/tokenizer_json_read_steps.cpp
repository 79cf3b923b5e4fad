#include "core/data/piece_symbols.h"
#include "core/data/tokenizer_json_steps.h"
#include "core/data/tokenizer_json_values.h"

namespace forge::data {
namespace {

using Json = nlohmann::json;

std::string type_of(const Json& step) { return shown(member(step, "type")); }

void read_unicode_form(const std::string& name, UnicodeForm form, Vocabulary& vocabulary) {
  if (vocabulary.unicode_form != UnicodeForm::as_given && vocabulary.unicode_form != form) {
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

}  // namespace forge::data

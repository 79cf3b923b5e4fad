#include "core/data/piece_symbols.h"
#include "core/data/tokenizer_json_steps.h"

namespace forge::data {
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

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/data/tokenizer/tokenizer_json.h"
#include "core/data/tokenizer/vocabulary.h"

namespace forge::data {
namespace {

using OrderedJson = nlohmann::ordered_json;  // the vocabulary is written in the order of its ids

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
  OrderedJson steps = OrderedJson::array();
  if (vocabulary.unicode_form != UnicodeForm::none) {
    steps.push_back({{"type", name_of(vocabulary.unicode_form)}});
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

/// How each token is written in the file.
std::vector<std::string> written_tokens(const Vocabulary& vocabulary) {
  std::vector<char> as_it_is = vocabulary.special;
  for (const AddedToken& token : vocabulary.added) as_it_is[token.id] = 1;
  std::vector<std::string> written;
  written.reserve(vocabulary.tokens.size());
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string& token = vocabulary.tokens[id];
    if (as_it_is[id]) {
      written.push_back(token);
    } else if (vocabulary.alphabet == Alphabet::bytes) {
      written.push_back(to_symbols(token));
    } else if (vocabulary.is_byte(id)) {
      written.push_back(name_of_byte(static_cast<uint8_t>(token[0])));
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
  const bool in_bytes = vocabulary.alphabet == Alphabet::bytes;
  json["normalizer"] = in_sequence(normalizers(vocabulary), "normalizers");
  json["pre_tokenizer"] = in_sequence(
      in_bytes ? byte_level_steps(vocabulary) : metaspace_steps(vocabulary), "pretokenizers");
  json["post_processor"] = post_processor(vocabulary);
  json["decoder"] = in_sequence(decoders(vocabulary), "decoders");
  json["model"] = model(vocabulary);
  return json_text(json, 2) + "\n";
}

void save_tokenizer(const Tokenizer& tokenizer, const std::filesystem::path& path) {
  write_file_atomic(path, tokenizer_to_json(tokenizer));
}

}  // namespace forge::data

#include "core/hf/tokenizer_files.h"

namespace forge::hf {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct Role {
  const char* name;  ///< "bos" of bos_token, bos_token_id
  int32_t id;        ///< -1: no token has it
};

std::vector<Role> roles_of(const data::Vocabulary& vocabulary) {
  return {{"bos", vocabulary.bos_id},
          {"eos", vocabulary.eos_id},
          {"unk", vocabulary.unk_id},
          {"pad", vocabulary.pad_id}};
}

}  // namespace

OrderedJson special_tokens_map(const data::Tokenizer& tokenizer) {
  const data::Vocabulary& vocabulary = tokenizer.vocabulary();
  std::vector<char> has_role(vocabulary.tokens.size(), 0);
  OrderedJson map = OrderedJson::object();
  for (const Role& role : roles_of(vocabulary)) {
    if (role.id < 0) continue;
    map[std::string(role.name) + "_token"] = vocabulary.tokens[static_cast<size_t>(role.id)];
    has_role[static_cast<size_t>(role.id)] = 1;
  }
  OrderedJson others = OrderedJson::array();
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (vocabulary.special[id] && !has_role[id]) others.push_back(vocabulary.tokens[id]);
  }
  if (!others.empty()) map["additional_special_tokens"] = others;
  return map;
}

OrderedJson tokenizer_config(const data::Tokenizer& tokenizer, int64_t max_positions) {
  const data::Vocabulary& vocabulary = tokenizer.vocabulary();
  OrderedJson config = {{"tokenizer_class", "PreTrainedTokenizerFast"}};
  OrderedJson added = OrderedJson::object();
  for (const data::AddedToken& token : vocabulary.added) {
    const size_t id = static_cast<size_t>(token.id);
    added[std::to_string(id)] = {{"content", vocabulary.tokens[id]},
                                 {"lstrip", token.lstrip},
                                 {"normalized", token.normalized},
                                 {"rstrip", token.rstrip},
                                 {"single_word", token.single_word},
                                 {"special", vocabulary.special[id] != 0}};
  }
  config["added_tokens_decoder"] = added;
  const OrderedJson roles = special_tokens_map(tokenizer);
  for (const auto& [role, token] : roles.items()) config[role] = token;
  config["clean_up_tokenization_spaces"] = false;
  config["model_max_length"] = max_positions;
  return config;
}

OrderedJson generation_config(const data::Tokenizer& tokenizer) {
  OrderedJson config = OrderedJson::object();
  OrderedJson ends = OrderedJson::array();
  for (const int32_t id : {tokenizer.eos_id(), tokenizer.bos_id()}) {
    if (id >= 0) ends.push_back(id);
  }
  if (tokenizer.bos_id() >= 0) config["bos_token_id"] = tokenizer.bos_id();
  if (!ends.empty()) config["eos_token_id"] = ends;
  if (tokenizer.pad_id() >= 0) config["pad_token_id"] = tokenizer.pad_id();
  return config;
}

}  // namespace forge::hf

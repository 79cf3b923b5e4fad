#include "core/hf/tokenizer_files.h"

#include "tests/support/catch.h"

namespace forge::hf {
namespace {

using Json = nlohmann::json;

data::Tokenizer tokenizer() { return data::Tokenizer(data::initial_vocabulary()); }

TEST_CASE("special tokens are mapped by their role and the rest is listed") {
  REQUIRE(Json(special_tokens_map(tokenizer())) == Json::parse(R"({
    "bos_token": "<|BOS|>", "eos_token": "<|EOS|>", "unk_token": "<|UNK|>", "pad_token": "<|PAD|>",
    "additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})"));
}

TEST_CASE("tokenizer_config names the class and the special tokens with their ids") {
  const Json config = tokenizer_config(tokenizer(), 512);
  REQUIRE(config["tokenizer_class"] == "PreTrainedTokenizerFast");
  REQUIRE(config["model_max_length"] == 512);
  REQUIRE(config["clean_up_tokenization_spaces"] == false);
  REQUIRE(config["eos_token"] == "<|EOS|>");
  REQUIRE(config["added_tokens_decoder"].size() == 6);
  REQUIRE(config["added_tokens_decoder"]["2"]["content"] == "<|EOS|>");
  REQUIRE(config["added_tokens_decoder"]["2"]["special"] == true);
}

TEST_CASE("generation ends at EOS and where the next document would begin") {
  REQUIRE(Json(generation_config(tokenizer())) ==
          Json::parse(R"({"bos_token_id": 0, "eos_token_id": [2, 0], "pad_token_id": 1})"));
}

TEST_CASE("a vocabulary without special tokens gives none") {
  data::Vocabulary vocabulary = data::initial_vocabulary();
  std::fill(vocabulary.special.begin(), vocabulary.special.end(), 0);
  vocabulary.bos_id = vocabulary.pad_id = vocabulary.eos_id = vocabulary.unk_id = -1;
  const data::Tokenizer plain(vocabulary);
  REQUIRE(Json(special_tokens_map(plain)) == Json::object());
  REQUIRE(Json(generation_config(plain)) == Json::object());
}

}  // namespace
}  // namespace forge::hf

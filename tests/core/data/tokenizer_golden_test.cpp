#include <nlohmann/json.hpp>

#include "core/base/fs.h"
#include "core/data/sentencepiece_model.h"
#include "core/data/tiktoken_file.h"
#include "core/data/tokenizer_file.h"
#include "core/data/tokenizer_json.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::data {
namespace {

using Ids = std::vector<int32_t>;
using nlohmann::json;

std::filesystem::path folder_of_cases() { return tests::tests_dir() / "golden" / "tokenizers"; }

json read_json(const std::string& name) { return json::parse(read_file(folder_of_cases() / name)); }

/// As Hugging Face's encode: special tokens in the text become ids, those of the template are put
/// around it.
Ids encode_all(const Tokenizer& tokenizer, const std::string& text) {
  Ids ids = tokenizer.vocabulary().before_text;
  for (const int32_t id : tokenizer.encode(text, SpecialTokens::as_ids)) ids.push_back(id);
  tokenizer.append_end(ids);
  return ids;
}

Tokenizer written_and_read(const Tokenizer& tokenizer, const tests::TemporaryFolder& folder) {
  save_tokenizer(tokenizer, folder / "written.json");
  return load_tokenizer(folder / "written.json");
}

TEST_CASE("every kind of tokenizer json gives the ids of Hugging Face's tokenizers") {
  const tests::TemporaryFolder folder;
  const json texts = read_json("texts.json");
  for (const json& one : read_json("cases.json")) {
    const std::string file = one.at("file");
    if (!one.contains("patch")) continue;
    INFO(file << ": " << one.at("name"));
    json content = read_json(file);
    content.merge_patch(one.at("patch"));
    const Tokenizer tokenizer = load_tokenizer(folder.write("tokenizer.json", content.dump()));
    const Tokenizer again = written_and_read(tokenizer, folder);
    REQUIRE(again.fingerprint() == tokenizer.fingerprint());
    for (size_t i = 0; i < texts.size(); ++i) {
      const std::string text = texts[i];
      INFO("text " << i << ": " << text);
      REQUIRE(encode_all(tokenizer, text) == one.at("ids").at(i).get<Ids>());
      REQUIRE(encode_all(again, text) == one.at("ids").at(i).get<Ids>());
    }
  }
}

TEST_CASE("a rank file gives the ids of tiktoken") {
  const tests::TemporaryFolder folder;
  const json texts = read_json("texts.json");
  const json one = read_json("cases.json").back();
  const Tokenizer tokenizer = read_tokenizer_file(folder_of_cases() / std::string(one.at("file")));
  const Tokenizer again = written_and_read(tokenizer, folder);
  REQUIRE(again.fingerprint() == tokenizer.fingerprint());
  for (size_t i = 0; i < texts.size(); ++i) {
    INFO("text " << i);
    REQUIRE(tokenizer.encode(std::string(texts[i])) == one.at("ids").at(i).get<Ids>());
    REQUIRE(again.encode(std::string(texts[i])) == one.at("ids").at(i).get<Ids>());
  }
}

TEST_CASE("a SentencePiece model gives the ids of its own library") {
  const tests::TemporaryFolder folder;
  const json texts = read_json("texts.json");
  for (const json& one : read_json("sentencepiece_cases.json")) {
    const std::string file = one.at("file");
    const Tokenizer tokenizer = read_tokenizer_file(folder_of_cases() / file);
    const Tokenizer again = written_and_read(tokenizer, folder);
    REQUIRE(again.fingerprint() == tokenizer.fingerprint());
    for (size_t i = 0; i < texts.size(); ++i) {
      INFO(file << ", text " << i);
      REQUIRE(tokenizer.encode(std::string(texts[i])) == one.at("ids").at(i).get<Ids>());
      REQUIRE(again.encode(std::string(texts[i])) == one.at("ids").at(i).get<Ids>());
    }
  }
}

TEST_CASE("special tokens of files have the roles of their models") {
  const Tokenizer llama2 = load_sentencepiece(folder_of_cases() / "llama_like.model");
  REQUIRE(llama2.bos_id() == 1);
  REQUIRE(llama2.eos_id() == 2);
  REQUIRE(llama2.vocabulary().unk_id == 0);
  REQUIRE(llama2.encode_document("") == Ids{1});
  const Tokenizer llama3 = load_tiktoken(folder_of_cases() / "llama3_like.tiktoken");
  REQUIRE(llama3.vocab_size() == 414 + 256);
  REQUIRE(llama3.bos_id() == 414);
  REQUIRE(llama3.eos_id() == 415);
  REQUIRE(llama3.encode("<|eot_id|>", SpecialTokens::as_ids) == Ids{414 + 9});
  REQUIRE(llama3.vocabulary().tokens.back() == "<|reserved_special_token_250|>");
}

}  // namespace
}  // namespace forge::data

#include <set>

#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/data/stories/toy_stories.h"
#include "core/data/tokenizer/bpe_trainer.h"
#include "core/data/tokenizer/tokenizer_json.h"
#include "core/data/tokenizer/vocabulary.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::data {
namespace {

TEST_CASE("byte symbols are those of GPT-2") {
  REQUIRE(to_symbols("A") == "A");
  REQUIRE(to_symbols(" ") == "\u0120");
  REQUIRE(to_symbols("\n") == "\u010a");
  REQUIRE(to_symbols("\xad") == "\u0143");
  REQUIRE(to_symbols("\u00e9") == "\u00c3\u00a9");
  const std::set<uint16_t> distinct(byte_symbols().begin(), byte_symbols().end());
  REQUIRE(distinct.size() == 256);
}

TEST_CASE("bytes are ordered by the code points of their symbols") {
  REQUIRE(bytes_by_symbol()[0] == '!');
  REQUIRE(bytes_by_symbol()[93] == '~');
  REQUIRE(bytes_by_symbol()[94] == 0xa1);
  REQUIRE(bytes_by_symbol()[188] == 0);
  REQUIRE(bytes_by_symbol()[255] == 0xad);
}

TEST_CASE("symbols become bytes again and others are refused") {
  std::string every_byte;
  for (int byte = 0; byte < 256; ++byte) every_byte += static_cast<char>(byte);
  REQUIRE(from_symbols(to_symbols(every_byte)) == every_byte);
  REQUIRE_FALSE(from_symbols(" "));
  REQUIRE_FALSE(from_symbols("\u0144"));
  REQUIRE_FALSE(from_symbols("\u20ac"));
  REQUIRE_FALSE(from_symbols("\xc4"));
  REQUIRE_FALSE(from_symbols("\xc4\x20"));
}

using tests::contains;

using nlohmann::json;

const Tokenizer& small_tokenizer() {
  static const Tokenizer tokenizer = train_byte_level_bpe(
      [given = false](std::string& document) mutable {
        document = toy_story(1, Split::training, 0);
        return !std::exchange(given, true);
      },
      300,
      {});
  return tokenizer;
}

json small_json() { return json::parse(tokenizer_to_json(small_tokenizer())); }

std::string error_of_loading(const json& content) {
  tests::TemporaryFolder folder;
  const auto path = folder.write("tokenizer.json", content.dump());
  return tests::error_of([&] { load_tokenizer(path); });
}

TEST_CASE("a tokenizer that has a token twice is refused") {
  tests::TemporaryFolder folder;
  std::string text = small_json().dump();
  const std::string begin = R"("vocab":{)";
  text.insert(text.find(begin) + begin.size(), R"("a":7,"a":8,)");
  const auto path = folder.write("tokenizer.json", text);
  CHECK(contains(tests::error_of([&] { load_tokenizer(path); }), "has the key 'a' twice"));
}

TEST_CASE("a saved tokenizer is read back the same") {
  tests::TemporaryFolder folder;
  save_tokenizer(small_tokenizer(), folder / "tokenizer.json");
  const Tokenizer read = load_tokenizer(folder / "tokenizer.json");
  REQUIRE(read.fingerprint() == small_tokenizer().fingerprint());
  REQUIRE(read.bos_id() == 0);
  REQUIRE(tokenizer_to_json(read) == tokenizer_to_json(small_tokenizer()));
}

TEST_CASE("tokenizer.json has the structure that Hugging Face's tokenizers reads") {
  const json content = small_json();
  REQUIRE(content["version"] == "1.0");
  REQUIRE(content["added_tokens"].size() == 6);
  REQUIRE(content["added_tokens"][4] == json({{"id", 4},
                                              {"content", "<|im_start|>"},
                                              {"single_word", false},
                                              {"lstrip", false},
                                              {"rstrip", false},
                                              {"normalized", false},
                                              {"special", true}}));
  REQUIRE(content["normalizer"] == json({{"type", "Prepend"}, {"prepend", " "}}));
  REQUIRE(content["pre_tokenizer"]["type"] == "ByteLevel");
  REQUIRE(content["pre_tokenizer"]["add_prefix_space"] == false);
  REQUIRE(content["post_processor"]["type"] == "TemplateProcessing");
  REQUIRE(content["post_processor"]["single"][0]["SpecialToken"]["id"] == "<|BOS|>");
  REQUIRE(content["post_processor"]["special_tokens"]["<|BOS|>"]["ids"] == json::array({0}));
  REQUIRE(content["decoder"]["decoders"][0]["type"] == "ByteLevel");
  REQUIRE(content["decoder"]["decoders"][1] ==
          json({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}));
  REQUIRE(content["model"]["type"] == "BPE");
  REQUIRE(content["model"]["unk_token"] == "<|UNK|>");
  REQUIRE(content["model"]["vocab"].size() == 300);
  REQUIRE(content["model"]["vocab"]["!"] == 6);
  REQUIRE(content["model"]["merges"].size() == 38);
  const Merge first = small_tokenizer().vocabulary().merges[0];
  const std::string merged = content["model"]["merges"][0];
  REQUIRE(merged.find(' ') != std::string::npos);
  REQUIRE(content["model"]["vocab"][merged.substr(0, merged.find(' '))] == first.left);
}

TEST_CASE("merges may be pairs") {
  tests::TemporaryFolder folder;
  json content = small_json();
  for (json& merge : content["model"]["merges"]) {
    const std::string text = merge;
    const size_t space = text.find(' ');
    merge = json::array({text.substr(0, space), text.substr(space + 1)});
  }
  const auto path = folder.write("tokenizer.json", content.dump());
  REQUIRE(load_tokenizer(path).fingerprint() == small_tokenizer().fingerprint());
}

TEST_CASE("a tokenizer without a post-processor puts nothing in front") {
  tests::TemporaryFolder folder;
  json content = small_json();
  content["post_processor"] = nullptr;
  const Tokenizer tokenizer = load_tokenizer(folder.write("tokenizer.json", content.dump()));
  REQUIRE(tokenizer.bos_id() == -1);
  REQUIRE(tokenizer.encode_document("a") == tokenizer.encode("a"));
}

TEST_CASE("what would change ids or text is refused with the reason") {
  json content = small_json();
  content["normalizer"] = {{"type", "Lowercase"}};
  REQUIRE(contains(error_of_loading(content), "normalizer \"Lowercase\" would change the text"));
  content = small_json();
  content["model"]["dropout"] = 0.1;
  REQUIRE(contains(error_of_loading(content), "model.dropout is 0.1"));
  content = small_json();
  content["model"]["type"] = "Unigram";
  REQUIRE(contains(error_of_loading(content), "\"Unigram\""));
  content = small_json();
  content["pre_tokenizer"] = {{"type", "Whitespace"}};
  REQUIRE(contains(error_of_loading(content), "pre_tokenizer"));
  content = small_json();
  content["post_processor"]["single"].push_back({{"Sequence", {{"id", "B"}, {"type_id", 0}}}});
  REQUIRE(contains(error_of_loading(content), "post_processor"));
}

TEST_CASE("a broken vocabulary is refused with the reason") {
  json content = small_json();
  content["model"]["vocab"]["!"] = 7;
  REQUIRE(contains(error_of_loading(content), "id 7"));
  content = small_json();
  content["model"]["vocab"]["!"] = 300;
  REQUIRE(contains(error_of_loading(content), "not an id from 0 to 299"));
  content = small_json();
  content["model"]["vocab"]["!"] = "6";
  REQUIRE(contains(error_of_loading(content), "not an id"));
  content = small_json();
  content["model"]["vocab"].erase("!");
  content["model"]["vocab"]["!!!"] = 6;
  REQUIRE(contains(error_of_loading(content), "no token for byte 33"));
  content = small_json();
  content["model"]["merges"].push_back("q qqq");
  REQUIRE(contains(error_of_loading(content), "merge 38 needs the token 'qqq'"));
  content = small_json();
  content["model"]["merges"].push_back(5);
  REQUIRE(contains(error_of_loading(content), "not of two tokens"));
  content = small_json();
  content["model"]["vocab"].erase("!");
  content["model"]["vocab"]["\u20ac"] = 6;
  REQUIRE(contains(error_of_loading(content), "byte symbols"));
}

TEST_CASE("rubbish is refused and never crashes") {
  tests::TemporaryFolder folder;
  const std::string whole = tokenizer_to_json(small_tokenizer());
  for (const std::string& text : {std::string(),
                                  std::string("null"),
                                  std::string("{}"),
                                  whole.substr(0, whole.size() / 2),
                                  std::string(200000, '['),
                                  std::string("{\"model\":{\"vocab\":{\"a\":0}}}"),
                                  "{\"pre_tokenizer\":{\"type\":" + std::string(100000, '[') +
                                      std::string(100000, ']') + "}}"}) {
    const auto path = folder.write("bad.json", text);
    REQUIRE(contains(tests::error_of([&] { load_tokenizer(path); }), "cannot use the tokenizer"));
  }
  REQUIRE(contains(tests::error_of([&] { load_tokenizer(folder / "none.json"); }), "No such file"));
}

}  // namespace
}  // namespace forge::data

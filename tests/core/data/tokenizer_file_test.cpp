#include "core/data/tokenizer_file.h"

#include "core/base/fs.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/support.h"

namespace forge::data {
namespace {

using tests::contains;

std::string content_of(const std::string& name) {
  return read_file(tests::tests_dir() / "golden" / "tokenizers" / name);
}

std::string error_of_reading(const std::string& content) {
  const tests::TemporaryFolder folder;
  const auto path = folder.write("tokenizer.model", content);
  return tests::error_of([&] { read_tokenizer_file(path); });
}

TEST_CASE("a broken rank file is refused with its line") {
  const std::string ranks = content_of("llama3_like.tiktoken");
  const size_t second = ranks.find('\n') + 1;
  const auto with_second_line = [&](const std::string& line) {
    return error_of_reading(ranks.substr(0, second) + line +
                            ranks.substr(ranks.find('\n', second)));
  };
  REQUIRE(contains(with_second_line("Ig=="), "line 2 is not a token in Base64"));
  REQUIRE(contains(with_second_line("I*== 1"), "line 2 is not a token in Base64"));
  REQUIRE(contains(with_second_line("Ig== -1"), "line 2 is not a token in Base64"));
  REQUIRE(contains(with_second_line("Ig== 1 "), "line 2 is not a token in Base64"));
  REQUIRE(contains(with_second_line("Ig== 99999999999"), "line 2 is not a token in Base64"));
  REQUIRE(contains(with_second_line(""), "line 2 is not a token in Base64"));
  REQUIRE(contains(with_second_line("Ig== 7"), "line 2 has the rank 7 where 1 follows"));
  REQUIRE(contains(with_second_line("IQ== 1"), "line 2 repeats a token"));
  REQUIRE(contains(error_of_reading(ranks.substr(0, second)), "no token for byte"));
  REQUIRE(error_of_reading(ranks + "\n") == "");
}

// A later field of a message of Protocol Buffers takes the place of an earlier one.
TEST_CASE("a SentencePiece model that forge cannot follow is refused with the reason") {
  const std::string model = content_of("llama_like.model");
  const auto error = [&](const std::string& more) { return error_of_reading(model + more); };
  REQUIRE(error("") == "");
  REQUIRE(contains(error("\x12\x02\x18\x01"), "its model is unigram, not BPE"));
  REQUIRE(contains(error("\x12\x02\x18\x04"), "its model is character, not BPE"));
  REQUIRE(contains(error(std::string("\x12\x03\x98\x02\x00", 5)), "it has no byte_fallback"));
  REQUIRE(contains(error("\x1a\x02\x20\x01"), "it removes spaces"));
  REQUIRE(contains(error("\x12\x03\xc0\x01\x01"), "treats spaces in a way of its own"));
  REQUIRE(contains(error("\x1a\x03\x12\x01x"), "its rule of normalisation 'identity'"));
  REQUIRE(contains(error("\x2a\x03\x12\x01x"), "treats spaces in a way of its own"));
  // Pieces: 1 text, 2 score, 3 type.
  const std::string minus_one = std::string("\x15\x00\x00\x80\xbf", 5);
  REQUIRE(contains(error("\x0a\x09\x0a\x02zq" + minus_one), "have the same score"));
  REQUIRE(contains(error("\x0a\x06\x0a\x02zq\x18\x04"), "is user-defined"));
  REQUIRE(contains(error("\x0a\x06\x0a\x02zq\x18\x05"), "is of the type 5"));
  const std::string minus_half = std::string("\x15\x00\x00\x00\xbf", 5);
  REQUIRE(contains(error("\x0a\x09\x0a\x02z\x7f" + minus_half), "a character that is no piece"));
}

TEST_CASE("files cut anywhere are refused and crash nothing") {
  for (const std::string name : {"llama_like.model", "llama3_like.tiktoken", "byte_level.json"}) {
    const std::string whole = content_of(name);
    for (size_t size = 1; size < whole.size() - 1; size += 1 + whole.size() / 40) {
      INFO(name << " cut to " << size << " bytes");
      // A rank file cut at the end of a line is one with fewer tokens.
      if (name == "llama3_like.tiktoken" && (whole[size] == '\n' || whole[size - 1] == '\n'))
        continue;
      REQUIRE(contains(error_of_reading(whole.substr(0, size)), "cannot use the "));
    }
  }
  REQUIRE(contains(error_of_reading(""), "cannot use the tokenizer"));
  REQUIRE(contains(error_of_reading("rubbish"), "it is no SentencePiece model, or a damaged one"));
  REQUIRE(contains(error_of_reading("{\n  \"model\": 1,\n oops }"),
                   "it is no JSON from line 3, column 2 on"));
}

}  // namespace
}  // namespace forge::data

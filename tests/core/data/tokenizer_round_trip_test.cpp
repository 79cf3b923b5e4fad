#include <algorithm>
#include <future>

#include "core/base/fs.h"
#include "core/base/random.h"
#include "core/data/tokenizer_file.h"
#include "core/data/toy_stories.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::data {
namespace {

const std::vector<std::string> files = {
    "byte_level.json", "characters.json", "llama_like.model", "llama3_like.tiktoken"};

Tokenizer read_golden(const std::string& name) {
  return read_tokenizer_file(tests::tests_dir() / "golden" / "tokenizers" / name);
}

void append_utf8(uint32_t code, std::string& text) {
  if (code < 0x80) {
    text += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  const uint32_t mark = more == 1 ? 0xc0 : more == 2 ? 0xe0 : 0xf0;
  text += static_cast<char>(mark | code >> (6 * more));
  for (int i = more - 1; i >= 0; --i) text += static_cast<char>(0x80 | (code >> (6 * i) & 0x3f));
}

/// Any scalar values but U+2581, which is a space in vocabularies of characters; many from the
/// blocks that texts are of.
std::string random_text(RandomStream& random) {
  const uint32_t limits[] = {0x80, 0x80, 0x250, 0x3000, 0x10000, 0x110000};
  std::string text;
  for (uint64_t length = random.below(24); length > 0; --length) {
    const auto code = static_cast<uint32_t>(random.below(limits[random.below(6)]));
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    append_utf8(surrogate || code == 0x2581 ? ' ' : code, text);
  }
  return text;
}

TEST_CASE("a hundred thousand random texts come back from every lossless kind of tokenizer") {
  const uint64_t seed = 20260101;
  INFO("seed " << seed);
  std::vector<Tokenizer> tokenizers;
  for (const std::string& file : files) tokenizers.push_back(read_golden(file));
  RandomStream random(seed, 0);
  for (int round = 0; round < 100000; ++round) {
    const std::string text = random_text(random);
    for (const Tokenizer& tokenizer : tokenizers) {
      if (tokenizer.decode(tokenizer.encode(text)) != text) FAIL("round " << round << ": " << text);
    }
  }
}

TEST_CASE("bytes that are no text come back too") {
  const uint64_t seed = 12;
  INFO("seed " << seed);
  RandomStream random(seed, 0);
  for (const std::string& file : files) {
    const Tokenizer tokenizer = read_golden(file);
    for (int round = 0; round < 500; ++round) {
      std::string text;
      for (uint64_t i = random.below(40); i > 0; --i) text += static_cast<char>(random.below(256));
      if (text.find("\u2581") == std::string::npos) {
        REQUIRE(tokenizer.decode(tokenizer.encode(text)) == text);
      }
    }
  }
}

TEST_CASE("what a tokenizer of characters leaves out is only the spelling of spaces") {
  const Tokenizer tokenizer = read_golden("characters.json");
  REQUIRE(tokenizer.decode(tokenizer.encode("a\u2581b")) == "a b");
}

TEST_CASE("texts encoded in parts have the ids of the whole in every kind of tokenizer") {
  const uint64_t seed = 5;
  INFO("seed " << seed);
  RandomStream random(seed, 0);
  for (const std::string& file : files) {
    const Tokenizer tokenizer = read_golden(file);
    for (int round = 0; round < 200; ++round) {
      const std::string text = random_text(random) + " " + random_text(random) + "\n" +
                               toy_story(3, Split::training, static_cast<uint64_t>(round));
      const size_t cut = tokenizer.next_safe_cut(text, random.below(text.size()) + 1);
      std::vector<int32_t> ids;
      tokenizer.append_beginning(std::string_view(text).substr(0, cut), ids);
      tokenizer.append_continuation(std::string_view(text).substr(cut), ids);
      tokenizer.append_end(ids);
      REQUIRE(ids == tokenizer.encode_document(text));
    }
  }
}

TEST_CASE("threads that share a tokenizer and its caches get the same ids") {
  const Tokenizer shared = read_golden("byte_level.json");
  const auto encode_stories = [](const Tokenizer& tokenizer) {
    std::vector<int32_t> ids;
    for (uint64_t i = 0; i < 30; ++i) {
      tokenizer.append_document(toy_story(9, Split::training, i), ids);
    }
    return ids;
  };
  const std::vector<int32_t> expected = encode_stories(read_golden("byte_level.json"));
  std::vector<std::future<std::vector<int32_t>>> threads;
  for (int i = 0; i < 4; ++i) {
    threads.push_back(std::async(std::launch::async, encode_stories, std::cref(shared)));
  }
  for (auto& thread : threads) REQUIRE(thread.get() == expected);
  REQUIRE(encode_stories(shared) == expected);
}

TEST_CASE("a long text without a space is no attack on any tokenizer") {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += i % 3 == 0 ? "the" : "an\u00e9";
  for (const std::string& file : files) {
    const Tokenizer tokenizer = read_golden(file);
    REQUIRE(tokenizer.decode(tokenizer.encode(text)) == text);
    const std::string spaces(100000, ' ');
    REQUIRE(tokenizer.decode(tokenizer.encode(spaces)) == spaces);
    REQUIRE(tokenizer.next_safe_cut(spaces, 1) == spaces.size());
  }
}

}  // namespace
}  // namespace forge::data

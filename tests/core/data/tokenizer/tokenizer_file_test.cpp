#include <algorithm>
#include <future>

#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/base/random.h"
#include "core/data/stories/toy_stories.h"
#include "core/data/tokenizer/tokenizer_file.h"
#include "core/data/tokenizer/tokenizer_json.h"
#include "tests/support/catch.h"
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
  const std::string error = error_of_reading("{\n  \"model\": 1,\n oops }");
  REQUIRE(contains(error, "it is no JSON from line 3, column 2 on"));
  REQUIRE(error.find("cannot use") == error.rfind("cannot use"));
}

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
  const Tokenizer llama2 = read_tokenizer_file(folder_of_cases() / "llama_like.model");
  REQUIRE(llama2.bos_id() == 1);
  REQUIRE(llama2.eos_id() == 2);
  REQUIRE(llama2.vocabulary().unk_id == 0);
  REQUIRE(llama2.encode_document("") == Ids{1});
  const Tokenizer llama3 = read_tokenizer_file(folder_of_cases() / "llama3_like.tiktoken");
  REQUIRE(llama3.vocab_size() == 414 + 256);
  REQUIRE(llama3.bos_id() == 414);
  REQUIRE(llama3.eos_id() == 415);
  REQUIRE(llama3.encode("<|eot_id|>", SpecialTokens::as_ids) == Ids{414 + 9});
  REQUIRE(llama3.vocabulary().tokens.back() == "<|reserved_special_token_250|>");
}

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

TEST_CASE("a hundred thousand random texts come back from every lossless kind of tokenizer",
          "[slow]") {
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

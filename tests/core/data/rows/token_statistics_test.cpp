#include "core/data/rows/token_statistics.h"
#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/data/rows/token_file.h"
#include "core/data/tokenizer/bpe_trainer.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::data {
namespace {

/// Documents as a token file, and what is scored of it.
class Scored {
 public:
  explicit Scored(const std::vector<std::string>& documents, Vocabulary vocabulary)
      : tokenizer_(std::move(vocabulary)) {
    TokenFileWriter writer(path(), tokenizer_.vocab_size(), tokenizer_.fingerprint());
    for (const std::string& document : documents) {
      const std::vector<int32_t> ids = tokenizer_.encode_document(document);
      writer.append(ids.data(), ids.size(), {0});
    }
    writer.finish();
  }
  std::filesystem::path path() const { return folder_ / "a.tokens"; }
  int64_t tokens() const { return TokenFile(path()).size(); }
  int64_t bytes(int64_t targets) const {
    return scored_bytes(TokenFile(path()), targets, tokenizer_);
  }

 private:
  tests::TemporaryFolder folder_;
  Tokenizer tokenizer_;
};

TEST_CASE("all targets of documents stand for all their bytes") {
  const std::vector<std::string> documents = {"one", " two", "dré\n"};
  const Scored scored(documents, initial_vocabulary());
  REQUIRE(scored.tokens() == 3 * 2 + 3 + 4 + 5);  // BOS, the space in front, the bytes
  REQUIRE(scored.bytes(scored.tokens() - 1) == 3 + 4 + 5);
  REQUIRE(scored.bytes(0) == 0);
  REQUIRE(scored.bytes(1) == 0);  // the space in front
  REQUIRE(scored.bytes(3) == 2);
}

TEST_CASE("bytes of merged tokens are counted and a tokenizer without a space in front") {
  Vocabulary vocabulary = initial_vocabulary();
  vocabulary.prefix_space = PrefixSpace::none;
  const Scored scored({" a", "b"}, vocabulary);
  REQUIRE(scored.bytes(scored.tokens() - 1) == 3);
  const std::string text(200'000, 'x');  // longer than what is read at once
  const Scored longer({text, text}, initial_vocabulary());
  REQUIRE(longer.bytes(longer.tokens() - 1) == 400'000);
}

TEST_CASE("the space in front is no byte of a document, whatever special tokens are before it") {
  Vocabulary none = initial_vocabulary();
  none.before_text.clear();
  none.bos_id = -1;
  const Scored without({"one", "two"}, none);
  CHECK(without.tokens() == 2 * (1 + 3));
  CHECK(without.bytes(without.tokens() - 1) == 3 + 3);
  Vocabulary two = initial_vocabulary();
  two.before_text.push_back(two.eos_id);
  const Scored with({"one", "two"}, two);
  CHECK(with.tokens() == 2 * (2 + 1 + 3));
  CHECK(with.bytes(with.tokens() - 1) == 3 + 3);
}

TEST_CASE("statistics count tokens and documents and the bytes that they stand for") {
  tests::TemporaryFolder folder;
  const Tokenizer tokenizer(initial_vocabulary());
  TokenFileWriter writer(folder / "a.tokens", tokenizer.vocab_size(), tokenizer.fingerprint());
  for (const char* text : {"aaab", "", "a b", "cccccccccc"}) {
    const std::vector<int32_t> ids = tokenizer.encode_document(text);
    writer.append(ids.data(), ids.size(), {0});
  }
  writer.finish();
  const TokenFile file(folder / "a.tokens");
  const TokenStatistics statistics = statistics_of(file, tokenizer, 2, {});
  REQUIRE(statistics.documents == 4);
  REQUIRE(statistics.tokens == 6 + 1 + 5 + 12);  // BOS, the space in front, the bytes
  REQUIRE(statistics.text_bytes == 4 + 0 + 3 + 10);
  REQUIRE(statistics.shortest == 1);
  REQUIRE(statistics.longest == 12);
  REQUIRE(statistics.mean_length == 6);
  REQUIRE(statistics.quantiles == std::vector<int64_t>{1, 1, 5, 6, 12});
  REQUIRE(statistics.length_classes == std::vector<int64_t>{1, 0, 2, 1});
  REQUIRE(statistics.top.size() == 2);
  REQUIRE(statistics.top[0].count == 10);
  REQUIRE(tokenizer.decode_continuation({statistics.top[0].id}) == "c");
  REQUIRE(statistics.unused_entries == tokenizer.vocab_size() - 5);
}

TEST_CASE("statistics of a token file that was damaged are refused") {
  tests::TemporaryFolder folder;
  const Tokenizer tokenizer(initial_vocabulary());
  TokenFileWriter writer(folder / "a.tokens", tokenizer.vocab_size(), tokenizer.fingerprint());
  const std::vector<int32_t> ids = tokenizer.encode_document("some text");
  writer.append(ids.data(), ids.size(), {0});
  writer.finish();
  std::string content = read_file(folder / "a.tokens");
  content[75] ^= 1;
  const TokenFile file(folder.write("a.tokens", content));
  const std::string error = tests::error_of([&] { statistics_of(file, tokenizer, 2, {}); });
  INFO(error);
  REQUIRE(error.find("does not have the hash in its header") != std::string::npos);
  REQUIRE(error.find("remove it") != std::string::npos);
}

TEST_CASE("statistics refuse ids that the vocabulary does not have") {
  tests::TemporaryFolder folder;
  const Tokenizer tokenizer(initial_vocabulary());
  TokenFileWriter writer(folder / "a.tokens", 2000, hash_hex("another"));
  const int32_t id = tokenizer.vocab_size();
  writer.append(&id, 1, {0});
  writer.finish();
  REQUIRE(tests::error_of([&] {
            statistics_of(TokenFile(folder / "a.tokens"), tokenizer, 2, {});
          }).find("the vocabulary has only") != std::string::npos);
}

}  // namespace
}  // namespace forge::data

#include "core/data/scored_bytes.h"

#include "core/data/bpe_trainer.h"
#include "core/data/token_file_writer.h"
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

}  // namespace
}  // namespace forge::data

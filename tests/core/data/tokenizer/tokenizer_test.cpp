#include "core/data/tokenizer/tokenizer.h"

#include "core/base/random.h"
#include "core/data/stories/toy_stories.h"
#include "core/data/tokenizer/bpe_trainer.h"
#include "core/data/tokenizer/pretokenizer.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::data {
namespace {

using Ids = std::vector<int32_t>;

const Tokenizer& story_tokenizer() {
  static const Tokenizer tokenizer = train_byte_level_bpe(
      [index = 0](std::string& document) mutable {
        document = toy_story(1, Split::training, static_cast<uint64_t>(index));
        return index++ < 200;
      },
      1000,
      {});
  return tokenizer;
}

/// Merges as defined: the earliest merge that applies anywhere, at its leftmost place, again and
/// again.
Ids merge_slowly(Ids ids, const std::vector<Merge>& merges) {
  while (true) {
    bool merged = false;
    for (size_t rank = 0; rank < merges.size() && !merged; ++rank) {
      for (size_t i = 0; i + 1 < ids.size() && !merged; ++i) {
        if (ids[i] != merges[rank].left || ids[i + 1] != merges[rank].right) continue;
        ids[i] = merges[rank].merged;
        ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        merged = true;
      }
    }
    if (!merged) return ids;
  }
}

TEST_CASE("decoding gives back every string of bytes") {
  const uint64_t seed = 20240607;
  INFO("seed " << seed);
  RandomStream random(seed, 0);
  const Tokenizer& tokenizer = story_tokenizer();
  for (int round = 0; round < 1000; ++round) {
    std::string text;
    for (uint64_t i = random.below(80); i > 0; --i) text += static_cast<char>(random.below(256));
    REQUIRE(tokenizer.decode(tokenizer.encode(text)) == text);
    REQUIRE(tokenizer.decode(tokenizer.encode_document(text)) == text);
  }
}

TEST_CASE("decoding gives back every Unicode text") {
  const uint64_t seed = 7;
  INFO("seed " << seed);
  RandomStream random(seed, 1);
  const Tokenizer& tokenizer = story_tokenizer();
  const std::vector<std::string> parts = {" ",
                                          "  ",
                                          "\n",
                                          "\r\n",
                                          "\t",
                                          "the",
                                          "\u00e9",
                                          "e\u0301",
                                          "\u4f60\u597d",
                                          "\U0001f468\u200d\U0001f469",
                                          "\u00a0",
                                          "\u3000",
                                          "'s",
                                          "'",
                                          "1",
                                          "\u0663",
                                          ".",
                                          "\u2014",
                                          "\u0130",
                                          std::string(1, '\0'),
                                          "<|BOS|>",
                                          "\ufeff"};
  for (int round = 0; round < 1000; ++round) {
    std::string text;
    for (uint64_t i = random.below(20); i > 0; --i) text += parts[random.below(parts.size())];
    REQUIRE(tokenizer.decode(tokenizer.encode(text)) == text);
  }
}

TEST_CASE("awkward texts come back too") {
  const Tokenizer& tokenizer = story_tokenizer();
  for (const std::string_view text :
       {"", " ", "  ", " a", "  a ", "\n", "a", "\xff", "\xe4\xbd", "a\xcc"}) {
    REQUIRE(tokenizer.decode(tokenizer.encode(text)) == text);
  }
  REQUIRE(tokenizer.encode("").empty());
  REQUIRE(tokenizer.decode({}) == "");
}

TEST_CASE("a first word has the tokens of later words") {
  const Tokenizer& tokenizer = story_tokenizer();
  const Ids first = tokenizer.encode("the");
  const Ids twice = tokenizer.encode("the the");
  REQUIRE(first.size() == 1);
  REQUIRE(twice == Ids{first[0], first[0]});
}

TEST_CASE("a document begins with BOS and no text reaches a special id unasked") {
  const Tokenizer& tokenizer = story_tokenizer();
  const Ids document = tokenizer.encode_document("<|EOS|> and <|im_start|>");
  REQUIRE(document[0] == 0);
  for (size_t i = 1; i < document.size(); ++i) REQUIRE(document[i] >= 6);
  REQUIRE(tokenizer.encode_document("") == Ids{0});
}

TEST_CASE("special tokens in a text become ids when asked for") {
  const Tokenizer& tokenizer = story_tokenizer();
  Ids expected = {4};
  for (const int32_t id : tokenizer.encode("he")) expected.push_back(id);
  expected.push_back(5);
  expected.push_back(4);
  REQUIRE(tokenizer.encode("<|im_start|>he<|im_end|><|im_start|>", SpecialTokens::as_ids) ==
          expected);
  REQUIRE(tokenizer.decode(expected) == "he");
}

TEST_CASE("ids that go on after others keep their first space") {
  const Tokenizer& tokenizer = story_tokenizer();
  const Ids ids = tokenizer.encode("time");
  REQUIRE(tokenizer.decode(ids) == "time");
  REQUIRE(tokenizer.decode_continuation(ids) == " time");
}

TEST_CASE("an id outside the vocabulary is refused") {
  const Tokenizer& tokenizer = story_tokenizer();
  REQUIRE(tests::error_of([&] { tokenizer.decode({1000}); }) ==
          "error: token id 1000 is not in the vocabulary of 1000");
  REQUIRE(tests::error_of([&] { tokenizer.decode({-1}); }) != "");
}

TEST_CASE("short and long pieces merge as the definition says") {
  const uint64_t seed = 3;
  INFO("seed " << seed);
  RandomStream random(seed, 2);
  const Tokenizer& tokenizer = story_tokenizer();
  const std::vector<Merge>& merges = tokenizer.vocabulary().merges;
  const BpeMerger merger(merges, /*ranked_by_token=*/false);
  std::string letters;
  for (int i = 0; letters.size() < 4000; ++i) {
    for (const char letter : toy_story(2, Split::training, static_cast<uint64_t>(i))) {
      if (letter >= 'a' && letter <= 'z') letters += letter;
    }
  }
  for (const size_t length : {1, 2, 3, 7, 20, 47, 48, 49, 50, 90, 300}) {
    for (int round = 0; round < 4; ++round) {
      Ids ids = {9};  // what lies before `begin` is left alone
      Ids piece;
      const size_t begin = random.below(letters.size() - length);
      for (size_t i = 0; i < length; ++i) piece.push_back(6 + letters[begin + i] - '!');
      ids.insert(ids.end(), piece.begin(), piece.end());
      merger.apply(ids, 1);
      Ids expected = merge_slowly(piece, merges);
      expected.insert(expected.begin(), 9);
      REQUIRE(ids == expected);
    }
  }
}

TEST_CASE("a text encoded in parts has the ids of the whole") {
  const Tokenizer& tokenizer = story_tokenizer();
  const std::string text =
      toy_story(4, Split::training, 0) + "\n\n  " + toy_story(4, Split::training, 1);
  for (size_t place = 1; place < text.size(); place += 97) {
    const size_t cut = tokenizer.next_safe_cut(text, place);
    Ids ids;
    tokenizer.append_document(std::string_view(text).substr(0, cut), ids);
    tokenizer.append_continuation(std::string_view(text).substr(cut), ids);
    REQUIRE(ids == tokenizer.encode_document(text));
  }
}

TEST_CASE("the fingerprint tells vocabularies and settings apart") {
  const Vocabulary vocabulary = story_tokenizer().vocabulary();
  REQUIRE(Tokenizer(vocabulary).fingerprint() == story_tokenizer().fingerprint());
  Vocabulary other = vocabulary;
  std::swap(other.merges[0], other.merges[1]);
  REQUIRE(Tokenizer(other).fingerprint() != story_tokenizer().fingerprint());
  other = vocabulary;
  other.prefix_space = PrefixSpace::none;
  REQUIRE(Tokenizer(other).fingerprint() != story_tokenizer().fingerprint());
  REQUIRE(Tokenizer(other).decode(Tokenizer(other).encode(" a")) == " a");
}

}  // namespace
}  // namespace forge::data

#include "core/data/tokenizer/bpe_trainer.h"

#include <map>

#include "core/base/random.h"
#include "core/data/tokenizer/pretokenizer.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::data {
namespace {

NextDocument documents(std::vector<std::string> texts) {
  return [texts, next = size_t{0}](std::string& document) mutable {
    if (next == texts.size()) return false;
    document = texts[next++];
    return true;
  };
}

std::vector<std::string> learned(const Tokenizer& tokenizer) {
  const std::vector<std::string>& tokens = tokenizer.vocabulary().tokens;
  return {tokens.begin() + 262, tokens.end()};
}

/// The rule word for word: count all pairs anew for every merge.
std::vector<std::string> train_slowly(const std::string& text, int vocab_size) {
  Vocabulary vocabulary = initial_vocabulary();
  std::vector<std::vector<int32_t>> words;
  const std::string prefixed = " " + text;
  for (size_t position = 0; position < prefixed.size();) {
    const size_t end = position + piece_length(TextSplit::gpt2, prefixed, position);
    words.emplace_back();
    for (; position < end; ++position) {
      for (int32_t id = 6; id < 262; ++id) {
        if (vocabulary.tokens[id][0] == prefixed[position]) words.back().push_back(id);
      }
    }
  }
  while (vocabulary.size() < vocab_size) {
    std::map<std::pair<int32_t, int32_t>, int64_t> counts;
    for (const auto& word : words) {
      for (size_t i = 0; i + 1 < word.size(); ++i) ++counts[{word[i], word[i + 1]}];
    }
    if (counts.empty()) break;
    auto best = counts.begin();
    for (auto pair = counts.begin(); pair != counts.end(); ++pair) {
      if (pair->second > best->second) best = pair;
    }
    const auto [left, right] = best->first;
    const std::string bytes = vocabulary.tokens[left] + vocabulary.tokens[right];
    int32_t merged = vocabulary.size();
    for (int32_t id = 262; id < vocabulary.size(); ++id) {
      if (vocabulary.tokens[id] == bytes) merged = id;
    }
    if (merged == vocabulary.size()) vocabulary.tokens.push_back(bytes);
    for (auto& word : words) {
      std::vector<int32_t> shorter;
      for (size_t i = 0; i < word.size(); ++i) {
        const bool found = i + 1 < word.size() && word[i] == left && word[i + 1] == right;
        shorter.push_back(found ? merged : word[i]);
        i += found;
      }
      word = shorter;
    }
  }
  return {vocabulary.tokens.begin() + 262, vocabulary.tokens.end()};
}

TEST_CASE("a vocabulary begins with the special tokens and then the bytes by their symbols") {
  const Tokenizer tokenizer = train_byte_level_bpe(documents({"x"}), 262, {});
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  REQUIRE(std::vector<std::string>(vocabulary.tokens.begin(), vocabulary.tokens.begin() + 7) ==
          std::vector<std::string>{
              "<|BOS|>", "<|PAD|>", "<|EOS|>", "<|UNK|>", "<|im_start|>", "<|im_end|>", "!"});
  REQUIRE(vocabulary.tokens[261] == "\xad");
  REQUIRE(tokenizer.bos_id() == 0);
  REQUIRE(tokenizer.pad_id() == 1);
  REQUIRE(tokenizer.eos_id() == 2);
  REQUIRE(vocabulary.unk_id == 3);
}

TEST_CASE("the most frequent pair is merged first") {
  // " low" 5, " lower" 2, " newest" 6, " widest" 3: the example of Sennrich et al. with our spaces.
  std::string text;
  const std::vector<std::pair<std::string, int>> words = {
      {"low", 5}, {"lower", 2}, {"newest", 6}, {"widest", 3}};
  for (const auto& [word, count] : words) {
    for (int i = 0; i < count; ++i) text += (text.empty() ? "" : " ") + word;
  }
  const Tokenizer tokenizer = train_byte_level_bpe(documents({text}), 262 + 6, {});
  // "es" and then "est" 9 times; of the three pairs in " low", 7 times, "lo" has the smallest ids,
  // for l comes before o, w and the symbol of the space; that comes before the new "lo".
  REQUIRE(learned(tokenizer) == std::vector<std::string>{"es", "est", "lo", " lo", " low", "ew"});
}

TEST_CASE("of equally frequent pairs the one with the smaller ids is merged first") {
  const Tokenizer tokenizer = train_byte_level_bpe(documents({"zy\nba\ndc"}), 262 + 3, {});
  // The first word has a space in front: its pair "zy" has larger ids than "ba" and "dc".
  REQUIRE(learned(tokenizer) == std::vector<std::string>{"ba", "dc", "zy"});
}

TEST_CASE("training agrees with counting all pairs anew for every merge") {
  const uint64_t seed = 5;
  INFO("seed " << seed);
  RandomStream random(seed, 1);
  for (int round = 0; round < 30; ++round) {
    std::string text;
    for (int i = 0; i < 400; ++i) text += "aaabbc \n"[random.below(8)];
    const std::vector<std::string> slow = train_slowly(text, 262 + 25);
    const int reached = 262 + static_cast<int>(slow.size());
    REQUIRE(learned(train_byte_level_bpe(documents({text}), reached, {})) == slow);
  }
}

TEST_CASE("no pair reaches over the end of a piece or of a document") {
  const Tokenizer tokenizer = train_byte_level_bpe(documents({"a1", "a1", "b"}), 262 + 2, {});
  REQUIRE(learned(tokenizer) == std::vector<std::string>{" a", " b"});
}

TEST_CASE("a text without enough pairs is refused with the size that it reaches") {
  const std::string error =
      tests::error_of([] { train_byte_level_bpe(documents({"one two"}), 2000, {}); });
  REQUIRE(error.find("too small for a vocabulary of 2,000") != std::string::npos);
  REQUIRE(error.find("at most 268") != std::string::npos);
  REQUIRE(tests::error_of([] { train_byte_level_bpe(documents({}), 300, {}); }) != "");
  REQUIRE(tests::error_of([] {
            train_byte_level_bpe(documents({"one"}), 261, {});
          }).find("at least 262") != std::string::npos);
}

TEST_CASE("training tells how far it is and ends when that throws") {
  std::string text;
  for (int i = 0; i < 500; ++i) text += " word" + std::to_string(i * 37);
  double last = -1;
  train_byte_level_bpe(documents({text}), 400, [&](double fraction, const std::string&) {
    REQUIRE(fraction >= last);
    REQUIRE(fraction <= 1);
    last = fraction;
  });
  REQUIRE(last > 0.5);
  const Progress stop = [](double, const std::string&) { throw std::runtime_error("stop"); };
  REQUIRE_THROWS_AS(train_byte_level_bpe(documents({text}), 400, stop), std::runtime_error);
}

}  // namespace
}  // namespace forge::data

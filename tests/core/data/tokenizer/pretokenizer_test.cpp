#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/data/tokenizer/pretokenizer.h"
#include "tests/support/catch.h"

namespace forge::data {
namespace {

TEST_CASE("each Unicode form has its own spelling") {
  const std::string text = "e\u0301 \u00e9 \ufb01 \u1100\u1161";
  REQUIRE(normalized(text, UnicodeForm::none) == text);
  REQUIRE(normalized(text, UnicodeForm::nfc) == "\u00e9 \u00e9 \ufb01 \uac00");
  REQUIRE(normalized(text, UnicodeForm::nfd) == "e\u0301 e\u0301 \ufb01 \u1100\u1161");
  REQUIRE(normalized(text, UnicodeForm::nfkc) == "\u00e9 \u00e9 fi \uac00");
  REQUIRE(normalized(text, UnicodeForm::nfkd) == "e\u0301 e\u0301 fi \u1100\u1161");
}

TEST_CASE("bytes that are no characters stay as they are") {
  REQUIRE(normalized("a\xff\xe9"
                     "e\u0301\xcc",
                     UnicodeForm::nfc) == "a\xff\xe9\u00e9\xcc");
  REQUIRE(normalized("\xcc", UnicodeForm::nfc) == "\xcc");
  REQUIRE(normalized("\xed\xa0\x80", UnicodeForm::nfkd) == "\xed\xa0\x80");  // a surrogate
  REQUIRE(normalized(std::string("\0\u00e9", 3), UnicodeForm::nfd) == std::string("\0e\u0301", 4));
}

TEST_CASE("a text cut before ASCII has the normal forms of its parts") {
  const uint64_t seed = 77;
  INFO("seed " << seed);
  RandomStream random(seed, 0);
  const std::vector<std::string> parts = {
      "a", "e", " ", "\u0301", "\u0323", "\u00e9", "\u212b", "\u1100", "\u1161", "\xff", "1"};
  for (int round = 0; round < 3000; ++round) {
    std::string front;
    std::string back = round % 2 == 0 ? "a" : " ";
    for (uint64_t i = random.below(8); i > 0; --i) front += parts[random.below(parts.size())];
    for (uint64_t i = random.below(8); i > 0; --i) back += parts[random.below(parts.size())];
    for (const UnicodeForm form : {UnicodeForm::nfc, UnicodeForm::nfd, UnicodeForm::nfkc}) {
      const std::string whole = normalized(front + back, form);
      REQUIRE(whole == normalized(front, form) + normalized(back, form));
      REQUIRE(normalized(whole, form) == whole);
    }
  }
}

using Pieces = std::vector<std::string>;

Pieces pieces(std::string_view text, TextSplit split = TextSplit::gpt2) {
  Pieces found;
  for (size_t position = 0; position < text.size();) {
    const size_t length = piece_length(split, text, position);
    found.emplace_back(text.substr(position, length));
    position += length;
  }
  return found;
}

TEST_CASE("text is split as GPT-2's pattern splits it") {
  REQUIRE(pieces("Hello world") == Pieces{"Hello", " world"});
  REQUIRE(pieces("I've we'll it's o'clock") ==
          Pieces{"I", "'ve", " we", "'ll", " it", "'s", " o", "'", "clock"});
  REQUIRE(pieces("DON'T") == Pieces{"DON", "'", "T"});
  REQUIRE(pieces("'sam") == Pieces{"'s", "am"});
  REQUIRE(pieces("a1b 23.5!") == Pieces{"a", "1", "b", " 23", ".", "5", "!"});
  REQUIRE(pieces("wait... what?!") == Pieces{"wait", "...", " what", "?!"});
}

TEST_CASE("white space before a word leaves the word its last space") {
  REQUIRE(pieces("a   b") == Pieces{"a", "  ", " b"});
  REQUIRE(pieces("a\n\nb") == Pieces{"a", "\n", "\n", "b"});
  REQUIRE(pieces("a\n b") == Pieces{"a", "\n", " b"});
  REQUIRE(pieces("a \nb") == Pieces{"a", " ", "\n", "b"});
  REQUIRE(pieces("a \n ") == Pieces{"a", " \n "});
  REQUIRE(pieces(" ") == Pieces{" "});
  REQUIRE(pieces("  ") == Pieces{"  "});
}

TEST_CASE("letters numbers and white space are those of Unicode") {
  REQUIRE(pieces("Gr\u00f6\u00dfe \u4f60\u597d") == Pieces{"Gr\u00f6\u00dfe", " \u4f60\u597d"});
  REQUIRE(pieces("x\u00b2 \u2167") == Pieces{"x", "\u00b2", " \u2167"});
  REQUIRE(pieces("a\u00a0b") == Pieces{"a", "\u00a0", "b"});
  REQUIRE(pieces("a\u3000\u3000b") == Pieces{"a", "\u3000", "\u3000", "b"});
  REQUIRE(pieces("e\u0301") == Pieces{"e", "\u0301"});  // a combining mark is no letter
  REQUIRE(pieces("a \U0001f600!") == Pieces{"a", " \U0001f600!"});
}

TEST_CASE("bytes that are no UTF-8 count as other characters") {
  REQUIRE(pieces("a\xff\xfe z") == Pieces{"a", "\xff\xfe", " z"});
  REQUIRE(pieces("a\xe4\xbd") == Pieces{"a", "\xe4\xbd"});
  REQUIRE(pieces(" \x80.") == Pieces{" \x80."});
}

TEST_CASE("text is split as Llama 3's pattern splits it") {
  const auto split = [](std::string_view text) { return pieces(text, TextSplit::llama3); };
  REQUIRE(split("Hello world") == Pieces{"Hello", " world"});
  REQUIRE(split("DON'T it's '\u017fo 'LLama") ==
          Pieces{"DON", "'T", " it", "'s", " '", "\u017fo", " '", "LLama"});
  REQUIRE(split("'\u017fo'LLa") == Pieces{"'\u017f", "o", "'LL", "a"});
  REQUIRE(split("12345 67") == Pieces{"123", "45", " ", "67"});
  REQUIRE(split("(word).\n\nNext") == Pieces{"(word", ").\n\n", "Next"});
  REQUIRE(split("a \n\n  b") == Pieces{"a", " \n\n", " ", " b"});
  REQUIRE(split("\tb\n") == Pieces{"\tb", "\n"});
  REQUIRE(split("a  ") == Pieces{"a", "  "});
  REQUIRE(pieces("12 3", TextSplit::qwen2) == Pieces{"1", "2", " ", "3"});
}

TEST_CASE("pieces may begin at each space or at runs of spaces") {
  REQUIRE(pieces("a  b c", TextSplit::spaces) == Pieces{"a", " ", " b", " c"});
  REQUIRE(pieces("  a  b\nc ", TextSplit::space_runs) == Pieces{"  a", "  b\nc", " "});
  REQUIRE(pieces(" a b", TextSplit::whole) == Pieces{" a b"});
}

TEST_CASE("a safe cut lies before white space and changes no piece") {
  REQUIRE(next_safe_cut(TextSplit::gpt2, "ab cd", 0) == 2);
  REQUIRE(next_safe_cut(TextSplit::gpt2, "ab  cd ef", 3) == 6);
  REQUIRE(next_safe_cut(TextSplit::gpt2, "\u4f60\n\u597d", 0) == 3);
  REQUIRE(next_safe_cut(TextSplit::gpt2, "a\u3000 b", 0) == 6);
  REQUIRE(next_safe_cut(TextSplit::gpt2, "abc", 1) == 3);

  const uint64_t seed = 11;
  INFO("seed " << seed);
  RandomStream random(seed, 0);
  const Pieces parts = {
      " ", "\n", "a", "Z", "7", "'", "s", "!", "\u00e9", "\u3000", "\xff", "\u4f60", "\x85"};
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (uint64_t i = random.below(14) + 1; i > 0; --i) text += parts[random.below(parts.size())];
    for (const TextSplit split : {TextSplit::gpt2,
                                  TextSplit::llama3,
                                  TextSplit::qwen2,
                                  TextSplit::spaces,
                                  TextSplit::space_runs,
                                  TextSplit::whole}) {
      const size_t cut = next_safe_cut(split, text, random.below(text.size() + 1));
      Pieces joined = pieces(std::string_view(text).substr(0, cut), split);
      for (const std::string& piece : pieces(std::string_view(text).substr(cut), split))
        joined.push_back(piece);
      REQUIRE(joined == pieces(text, split));
    }
  }
}

}  // namespace
}  // namespace forge::data

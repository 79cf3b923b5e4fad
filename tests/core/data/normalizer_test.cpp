#include "core/data/normalizer.h"

#include <vector>

#include "core/base/random.h"
#include "tests/support/catch.h"

namespace forge::data {
namespace {

TEST_CASE("each Unicode form has its own spelling") {
  const std::string text = "e\u0301 \u00e9 \ufb01 \u1100\u1161";
  REQUIRE(normalized(text, UnicodeForm::as_given) == text);
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

}  // namespace
}  // namespace forge::data

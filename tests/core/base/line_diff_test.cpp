#include "core/base/line_diff.h"

#include "tests/support/catch.h"

namespace forge {
namespace {

std::string shown(const std::string& left, const std::string& right) {
  std::string text;
  for (const LineChange& change : line_changes(left, right))
    text += (change.is_left ? "-" : "+") + std::to_string(change.number) + change.text + " ";
  return text;
}

TEST_CASE("changed lines are those that only one text has", "[line_diff]") {
  CHECK(shown("a\nb\nc\n", "a\nb\nc\n").empty());
  CHECK(shown("a\nb\nc\n", "a\nx\nc\n") == "-2b +2x ");
  CHECK(shown("a\nb\n", "b\nc\n") == "-1a +2c ");
  CHECK(shown("", "a\nb") == "+1a +2b ");
  CHECK(shown("a\na\nb\n", "") == "-1a -2a -3b ");
  CHECK(shown("a\nb\nc\nd\n", "b\nd\na\n") == "-1a -3c +3a ");
}

TEST_CASE("no change of a long text is left out", "[line_diff][hostile]") {
  std::string same, left, right;
  for (int i = 1; i <= 10000; ++i) same += "line " + std::to_string(i) + "\n";
  CHECK(shown(same + "a\n", same + "b\n") == "-10001a +10001b ");
  CHECK(shown(same + "end\n", "x\n" + same + "end\n") == "+1x ");
  for (int i = 1; i <= 5000; ++i) left += "l\n", right += "r\n";
  const std::vector<LineChange> all = line_changes("a\n" + left + "b\n", "c\n" + right + "b\n");
  REQUIRE(all.size() == 2 * 5001);
  CHECK(all[5000].number == 5001);
  CHECK(all.back().text == "r");
  CHECK(all.back().number == 5001);
}

}  // namespace
}  // namespace forge

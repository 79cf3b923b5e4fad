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

}  // namespace
}  // namespace forge

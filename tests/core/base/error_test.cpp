#include "core/base/error.h"

#include "tests/support/catch.h"

namespace forge {
namespace {

TEST_CASE("an error shows the place, the line, a caret, the way there and a hint") {
  auto parent = std::make_shared<SourceText>(SourceText{"parent.yaml", "", "-- extends 'x'\n", 1});
  auto source =
      std::make_shared<SourceText>(SourceText{"configs/a.yaml", "part", "k: v\n\thiden: 1\n", 11});
  SourceSpan span = make_span(source, 12, 2);
  span.via = std::make_shared<SourceSpan>(make_span(parent, 1, 4));
  const Error error("unknown key 'hiden'", span, "did you mean 'hidden'?");
  REQUIRE(describe(error) ==
          "configs/a.yaml:12:2 (inline part): error: unknown key 'hiden'\n"
          "    \thiden: 1\n"
          "    \t^\n"
          "  used from parent.yaml:1:4\n"
          "hint: did you mean 'hidden'?");
}

TEST_CASE("an error without a place is one line") {
  REQUIRE(describe(Error("no such config")) == "error: no such config");
}

}  // namespace
}  // namespace forge

#include "core/templating/line_preprocessor.h"

#include "tests/core/templating/templates.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

using templating::preprocess_lines;
using templating::PreprocessedText;

std::string processed(const std::string& text) { return preprocess_lines(text).text; }

TEST_CASE("a comment line leaves nothing and a trailing comment takes one blank with it") {
  CHECK(processed("a\n  ## gone\nb") == "a\nb");
  CHECK(processed("######## heading\nb") == "b");
  CHECK(processed("a  ## b") == "a ");
  CHECK(processed("a ## b ## c") == "a ## b");
  CHECK(processed("a## b # c") == "a## b # c");
  CHECK(processed("x: \"a ## b\"") == "x: \"a");
}

TEST_CASE("a sigil makes a statement only when white space follows it") {
  CHECK(processed("  -- set x = 1") == "{% set x = 1 %}");
  CHECK(processed(">>\tif x") == "{% if x -%}");
  CHECK(processed("<< endif") == "{%- endif %}");
  CHECK(processed("=> super()") == "{{ super()|trim('\\n')}}");
  CHECK(processed("--x\n---\n<<: *merge\n--") == "--x\n---\n<<: *merge\n--");
}

TEST_CASE("a block lasts until a header of the same or a smaller indentation") {
  CHECK(rendered("[a]\nA\n[b]\nB\n") == "A\n\nB\n");
  CHECK(rendered("[a]\nA\n\n[b]\nB\n") == "A\n\nB\n");
  CHECK(rendered("[a]\nA\n  [i]\nI\n  [j]\nJ\n[b]\nB\n") == "A\nI\n\nJ\n\n\nB\n");
  CHECK(rendered("[a]\n  [i]\nin i\nat column 0\n") == "in i\nat column 0\n\n");
}

TEST_CASE("a block with an exclamation mark is trimmed and glues to what follows") {
  CHECK(rendered("[a!]\n\n  A\n\n[b]\nB\n") == "AB\n");
}

TEST_CASE("names with a dot or a dash are no headers but a bare word in brackets is") {
  CHECK(processed("[a.b]\n[a-b]\n[a b]\n[]") == "[a.b]\n[a-b]\n[a b]\n[]");
  CHECK(processed("  [\xC3\xA9t\xC3\xA9_1]  ") ==
        "{% block \xC3\xA9t\xC3\xA9_1 %}{{'\\n'}}{% endblock \xC3\xA9t\xC3\xA9_1 +%}");
}

TEST_CASE("line ends of three kinds split lines and come out as newlines") {
  CHECK(processed("a\r\nb\rc\nd") == "a\nb\nc\nd");
}

TEST_CASE("each preprocessed line knows its original line and the shift of its columns") {
  const PreprocessedText text = preprocess_lines("## c\n  -- set x = 1\nplain\n[b]\n  == x");
  REQUIRE(text.lines.size() == 4);
  CHECK(text.lines[0].line == 2);
  CHECK(text.lines[0].column_shift == 2);  // `set` stands in column 6, in the tag in column 4
  CHECK(text.lines[1].line == 3);
  CHECK(text.lines[1].column_shift == 0);
  CHECK(text.lines[2].line == 4);
  CHECK(text.lines[3].line == 5);
}

}  // namespace
}  // namespace forge::tests

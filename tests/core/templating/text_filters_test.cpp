#include "tests/core/templating/templates.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

TEST_CASE("letters change case as in Python, one to several where Unicode says so") {
  CHECK(rendered("{{ 'straße ﬁn ǆ'.upper() }}") == "STRASSE FIN Ǆ");
  CHECK(rendered("{{ 'ΟΔΟΣ ΣΑΣ.'.lower() }}") == "οδος σας.");
  CHECK(rendered("{{ 'ǆ ﬁ ß'.title() }} {{ 'ǆX'.capitalize() }}") == "ǅ Fi Ss ǅx");
  CHECK(rendered("{{ 'ß'.casefold() }} {{ 'İ'.lower() | length }}") == "ss 2");
  CHECK(rendered("{{ \"it's\".title() }} {{ \"it's a-b\" | title }}") == "It'S It's A-B");
}

TEST_CASE("words are wrapped at blanks and hyphens") {
  CHECK(rendered("{{ 'the quick brown fox' | wordwrap(10) }}") == "the quick\nbrown fox");
  CHECK(rendered("{{ 'well-known--and so' | wordwrap(6, wrapstring='|') }}") ==
        "well-|known|--and|so");
  CHECK(rendered("{{ 'abcdefgh' | wordwrap(3) }}") == "abc\ndef\ngh");
  CHECK(rendered("{{ 'abcdefgh x' | wordwrap(3, false) }}") == "abcdefgh\nx");
  CHECK(render_error("{{ 'a' | wordwrap(0) }}").find("must be positive") != std::string::npos);
}

TEST_CASE("long values are printed over several lines with sorted keys") {
  CHECK(rendered("{{ {'b': 1, 'a': [2]} | pprint }}") == "{'a': [2], 'b': 1}");
  CHECK(rendered("{{ ['word ' * 12, 'x'] | pprint }}") ==
        "['word word word word word word word word word word word word ', 'x']");
  CHECK(rendered("{{ {'k': ['word ' * 9, 'word ' * 9]} | pprint }}") ==
        "{'k': ['word word word word word word word word word ',\n"
        "       'word word word word word word word word word ']}");
}

TEST_CASE("text is made fit for URLs and XML") {
  CHECK(rendered("{{ 'a b/c?é' | urlencode }}") == "a%20b/c%3F%C3%A9");
  CHECK(rendered("{{ {'a b': 'c/d'} | urlencode }}") == "a+b=c%2Fd");
  CHECK(rendered("<x{{ {'a': '<', 'b': none} | xmlattr }}>") == "<x a=\"&lt;\">");
  CHECK(rendered("{{ '<b>a</b> <!-- > --> &lt;&#65;' | striptags }}") == "a <A");
  CHECK(render_error("{{ {'a b': 1} | xmlattr }}").find("'a b' cannot be the name") !=
        std::string::npos);
}

TEST_CASE("a container that toyaml meets twice is written once") {
  CHECK(rendered("{% set l = [1] %}{{ [l, l, {'a': l}] | toyaml }}") ==
        "[&id001 [1], *id001, {a: *id001}]");
  CHECK(rendered("{{ [[], [], 'a', 'a'] | toyaml }}") == "[[], [], a, a]");
}

TEST_CASE("formats number all of their fields or none and methods take their arguments by order") {
  CHECK(rendered("{{ '{1} {0}'.format(1, 2) }} {{ '{!a}'.format('é') }}") == "2 1 '\\xe9'");
  CHECK(render_error("{{ '{} {0}'.format(1) }}").find("numbers all of its fields") !=
        std::string::npos);
  CHECK(render_error("{{ 'a'.replace(old='a', new='b') }}").find("takes no named arguments") !=
        std::string::npos);
  CHECK(render_error("{{ '%x' % 1.5 }}").find("an integer is required") != std::string::npos);
}

TEST_CASE("an unknown filter is an error where it could run") {
  CHECK(render_error("{% macro m() %}{{ 1 | nope }}{% endmacro %}") != "");
  CHECK(render_error("{% if false %}{% for i in [] %}{{ i | nope }}{% endfor %}{% endif %}") != "");
  CHECK(rendered("{% if false %}{{ 1 | nope }}{% endif %}x") == "x");
  Templates silenced({{"main", "{% extends 'base' %}{{ 1 | nope }}"}, {"base", "B"}});
  CHECK(silenced.text() == "B");
}

TEST_CASE("autoescaping can be switched off but not on") {
  CHECK(rendered("{% autoescape false %}{{ '<' }}{% endautoescape %}") == "<");
  CHECK(render_error("{% autoescape true %}{{ '<' }}{% endautoescape %}")
            .find("autoescaping is not supported") != std::string::npos);
}

}  // namespace
}  // namespace forge::tests

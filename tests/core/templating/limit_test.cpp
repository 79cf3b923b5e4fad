#include "tests/core/templating/templates.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

std::string repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

bool refuses(const std::string& text, const std::string& reason) {
  const std::string message = render_error(text);
  INFO(message.substr(0, 300));
  CHECK(message.find(reason) != std::string::npos);
  return message.find(reason) != std::string::npos;
}

TEST_CASE("deep expressions and tags are refused instead of exhausting the stack") {
  for (const char* part :
       {"(", "not ", "-", "1+", "1 if 1 else ", "1 ** ", "1 and ", "f(", "[0,"}) {
    INFO(part);
    CHECK(render_error("{{ " + repeated(part, 5000) + "1 }}") != "");
  }
  for (const char* part : {".a", "|e", "(1)", "[1]"}) {
    CHECK(refuses("{{ x" + repeated(part, 5000) + " }}", "nested too deeply"));
  }
  CHECK(refuses(repeated("{% if 1 %}", 5000), "nested too deeply"));
  CHECK(render_error("{% set " + repeated("(", 5000) + " %}") != "");
  CHECK(rendered("{{ " + repeated("(", 50) + "1" + repeated(")", 50) + " }}") == "1");
  CHECK(rendered("{{ " + repeated("1 ~ ", 5000) + "1 }}") == repeated("1", 5001));
}

TEST_CASE("macros and blocks and loops that call themselves for ever are refused") {
  CHECK(refuses("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "too deeply"));
  CHECK(refuses("{% block a %}{{ self.a() }}{% endblock %}", "too deeply"));
  CHECK(refuses("{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}", "too deeply"));
  CHECK(rendered("{% macro m(x) %}{% if x %}{{ m(x-1) }}.{% endif %}{% endmacro %}{{ m(50) }}") ==
        repeated(".", 50));
}

TEST_CASE("loops may not run more than ten million times in all", "[slow]") {
  const std::string loops =
      "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}";
  CHECK(refuses(loops, "more than 10 million times"));
}

TEST_CASE("no operation makes a text or list that fills the memory") {
  for (const char* expression : {"'a' * 1000000000",
                                 "'ab' * 9223372036854775807",
                                 "'{:1000000000}'.format(1)",
                                 "'a'.center(1000000000)",
                                 "'x'.zfill(100000000000)",
                                 "'\\t'.expandtabs(10000000000)",
                                 "('a' * 100000).replace('a', 'b' * 10000)",
                                 "(['a' * 1000000] * 1000) | join"}) {
    CHECK(refuses(std::string("{{ ") + expression + " }}", "a text grows past 64 MiB"));
  }
  CHECK(refuses("{{ [1] * 1000000000 }}", "a list grows past 10 million items"));
  CHECK(refuses("{{ range(9223372036854775807) }}", "range too big"));
  CHECK(refuses("{% set x = 'a' * 40000000 %}{{ x }}{{ x }}", "a text grows past 64 MiB"));
}

TEST_CASE("a render may do only so much work in all", "[slow]") {
  const std::string reason = "this template does too much work";
  const std::string big = "{% set big = 'x' * 60000000 %}", thousand = "{% for i in range(1000) %}";
  const std::string repeated_work[] = {
      "{% set x = 'x' * 60000000 %}",
      "{{ 'y' in big }}",
      "{% set x = big == big ~ '' %}",
      "{% set x = big | upper %}",
      "{% set x = big | length %}",
      "{{ big[59999999] }}",
      "{{ big.startswith('y') }}",
      "{% set x = {big: 1} %}",
      "{% set x %}{{ big }}{% endset %}",
      "{% set x = range(100000) | list %}",
  };
  for (const std::string& statement : repeated_work)
    CHECK(refuses(big + thousand + statement + "{% endfor %}", reason));
}

TEST_CASE("what grows with each of its steps is work, too", "[slow]") {
  const std::string reason = "this template does too much work";
  const std::string grown =
      "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}"
      "{% set ns.l = [ns.l, ns.l] %}{% endfor %}";
  CHECK(refuses(grown + "{{ ns.l | tojson }}", reason));
  CHECK(
      refuses("{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}"
              "{{ m(50) }}",
              reason));
  CHECK(refuses("{{ ('a' * 60000000).find('a' * 30000000 ~ 'b') }}", reason));
  CHECK(
      refuses("{% set l = [] %}{% for i in range(100000) %}{% for j in range(99) %}"
              "{{ l.append([]) }}{% endfor %}{% endfor %}",
              reason));
  Templates including({{"main",
                        "{% for i in range(100000) %}{% for j in range(99) %}{% include 'part' %}"
                        "{% endfor %}{% endfor %}"},
                       {"part", ""}});
  CHECK(including.error().find("more than a million includes") != std::string::npos);
}

TEST_CASE("a new render has all of its work before it") {
  for (int i = 0; i < 3; ++i) CHECK(rendered("{{ ('x' * 60000000) | length }}") == "60000000");
}

TEST_CASE("integers leave 64 bits with an error and not silently") {
  CHECK(rendered("{{ 9223372036854775807 }} {{ -9223372036854775807 - 1 }}") ==
        "9223372036854775807 -9223372036854775808");
  for (const char* expression : {"9223372036854775807 + 1",
                                 "2 ** 63",
                                 "(-9223372036854775807 - 1) // -1",
                                 "-(-9223372036854775807 - 1)",
                                 "(-9223372036854775807 - 1) | abs",
                                 "5000000000 * 5000000000"}) {
    CHECK(refuses(std::string("{{ ") + expression + " }}", "does not fit 64 bits"));
  }
}

TEST_CASE("values that contain themselves are printed and compared within bounds") {
  CHECK(rendered("{% set l = [1] %}{{ l.append(l) }}{{ l }}{{ l == l }}{{ l.clear() }}") ==
        "None[1, [...]]TrueNone");
  CHECK(rendered("{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}") ==
        "<Namespace {'a': <Namespace {...}>}>");
  const std::string doubled =
      "{% set ns = namespace(a=[1], b=[1]) %}{% for i in range(60) %}"
      "{% set ns.a = [ns.a, ns.a] %}{% set ns.b = [ns.b, ns.b] %}{% endfor %}";
  CHECK(refuses(doubled + "{{ ns.a == ns.b }}", "too deeply nested to be compared"));
  CHECK(refuses(doubled + "{{ ns.a }}", "a text grows past 64 MiB"));
}

TEST_CASE("a value nested a hundred thousand deep is freed without recursion") {
  CHECK(rendered("{% set ns = namespace(l=[]) %}{% for i in range(100000) %}{% set ns.l = [ns.l] %}"
                 "{% endfor %}{{ ns.l | length }}") == "1");
}

TEST_CASE("rubbish is refused or printed but never crashes") {
  const std::string bytes = "{%}#-+\"'|()[]=:,.~ \n\\aif x09set\xC3\xA9";
  uint32_t state = 12345;
  for (int round = 0; round < 3000; ++round) {
    std::string text = round % 2 == 0 ? "{{ " : "{% ";
    for (int i = 0; i < 20; ++i) {
      state = state * 1664525u + 1013904223u;
      text += bytes[(state >> 16) % bytes.size()];
    }
    INFO(text);
    CHECK_NOTHROW(render_error(text + (round % 2 == 0 ? " }}" : " %}")));
  }
}

}  // namespace
}  // namespace forge::tests

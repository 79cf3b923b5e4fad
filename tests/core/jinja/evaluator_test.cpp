// What a library of templates relies on: the order in which things run, and what is seen where.

#include <utility>
#include <vector>

#include "core/jinja/loader.h"
#include "tests/core/jinja/templates.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

struct Case {
  std::vector<Templates::Files::value_type> files;  ///< one is named "main"
  std::string text;
};

void check_all(const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    INFO(one.files[0].second);
    CHECK(Templates(one.files).text() == one.text);
  }
}

std::string message_of(const std::vector<Templates::Files::value_type>& files) {
  return Templates(files).error();
}

TEST_CASE("a parent's name may be an expression and what stands beside extends is settled") {
  const std::string base = "B[{% block a %}a{% endblock %}]{{ x | default('-') }}";
  check_all({
      {{{"main", "-- set ns = namespace(p='base')\n-- extends ns.p\n"}, {"base", base}}, "B[a]-"},
      {{{"main", "{% extends 'ba' ~ 'se' %}"}, {"base", base}}, "B[a]-"},
      // Text outside blocks is dropped once a parent is set, and emitted before that.
      {{{"main", "before{% extends 'base' %}dropped{{ 1 }}"}, {"base", base}}, "beforeB[a]-"},
      // Assignments and imports around extends run before the parent's body and are seen in blocks.
      {{{"main", "{% set x = 1 %}{% extends 'base' %}"}, {"base", base}}, "B[a]1"},
      {{{"main", "{% extends 'base' %}{% set x = 2 %}{% block a %}{{ x }}{% endblock %}"},
        {"base", base}},
       "B[2]2"},
      {{{"main", "{% extends 'base' %}{% from 'm' import f %}{% block a %}{{ f() }}{% endblock %}"},
        {"base", base},
        {"m", "{% macro f() %}F{% endmacro %}"}},
       "B[F]-"},
      // In a false `if` it does nothing, and the file renders itself.
      {{{"main", "{% if false %}{% extends 'base' %}{% endif %}own{% block a %}x{% endblock %}"},
        {"base", base}},
       "ownx"},
  });
}

TEST_CASE("blocks are overridden by name over the whole chain") {
  const std::string nested = "{% block o %}<{% block i %}i{% endblock %}>{% endblock %}";
  check_all({
      {{{"main", "{% extends 'mid' %}{% block a %}3{{ super() }}{% endblock %}"},
        {"mid", "{% extends 'base' %}{% block a %}2{{ super() }}{% endblock %}"},
        {"base", "{% block a %}1{% endblock %}"}},
       "321"},
      {{{"main", "{% extends 'mid' %}{% block a %}3{{ super() }}{% endblock %}"},
        {"mid", "{% extends 'base' %}"},
        {"base", "{% block a %}1{% endblock %}"}},
       "31"},
      {{{"main", "{% extends 'base' %}{% block i %}I{% endblock %}"}, {"base", nested}}, "<I>"},
      // Overridden without super(), the outer block takes the inner override with it.
      {{{"main", "{% extends 'base' %}{% block o %}O{% endblock %}{% block i %}I{% endblock %}"},
        {"base", nested}},
       "O"},
      {{{"main",
         "{% extends 'base' %}{% block o %}({{ super() }}){% endblock %}{% block i %}I{% endblock "
         "%}"},
        {"base", nested}},
       "(<I>)"},
      {{{"main", "{% extends 'base' %}{% block nowhere %}x{% endblock %}"}, {"base", nested}},
       "<i>"},
  });
  CHECK(message_of({{"main", "[a]\n[a]\n"}}).find("'a'") != std::string::npos);
}

TEST_CASE("a required block holds nothing and wants an override") {
  const std::string base = "-- block a required\n\n{# to be filled #}\n-- endblock a\nend";
  check_all({{{{"main", "-- extends 'base'\n[a]\nx\n"}, {"base", base}}, "x\nend"}});
  CHECK(message_of({{"main", "-- extends 'base'\n"}, {"base", base}}) != "");
  CHECK(message_of({{"main", "{% block a required %}text{% endblock %}"}}) != "");
}

TEST_CASE("a block sees the top level but no loop and no block around it") {
  check_all({
      {{{"main", "{% set x = 1 %}{% block a %}{{ x }}{{ project_dir }}{% endblock %}"}},
       "1/projects/demo"},
      {{{"main", "{% for i in [1, 2] %}{% block a %}{{ i is defined }}{% endblock %}{% endfor %}"}},
       "FalseFalse"},
      {{{"main",
         "{% block a %}{% set x = 1 %}{% block b %}{{ x is defined }}{% endblock %}{% endblock "
         "%}"}},
       "False"},
  });
}

TEST_CASE("set is local to blocks, loops and filters but not to if, and a namespace is global") {
  check_all({
      {{{"main", "{% block a %}{% set x = 1 %}{% endblock %}{{ x is defined }}"}}, "False"},
      {{{"main", "{% for i in [1] %}{% set x = 1 %}{% endfor %}{{ x is defined }}"}}, "False"},
      {{{"main", "{% filter trim %}{% set x = 1 %}{% endfilter %}{{ x is defined }}"}}, "False"},
      {{{"main", "{% if true %}{% set x = 1 %}{% endif %}{{ x }}"}}, "1"},
      {{{"main",
         "-- set ns = namespace()\n{% filter trim %}{% block m %}{% set ns.x = 2 %}\n{% endblock %}"
         "{% endfilter %}{{ ns.x }}"}},
       "2"},
      // Where super() stands decides whether the child's value is a default or an override.
      {{{"main", "-- extends 'base'\n-- block m\n-- set ns.x = 'child'\n== super()\n-- endblock\n"},
        {"base",
         "-- set ns = namespace()\n{% filter trim %}{% block m %}{% set ns.x = 'base' %}{% "
         "endblock %}"
         "{% endfilter %}{{ ns.x }}"}},
       "base"},
      {{{"main", "-- extends 'base'\n-- block m\n== super()\n-- set ns.x = 'child'\n-- endblock\n"},
        {"base",
         "-- set ns = namespace()\n{% filter trim %}{% block m %}{% set ns.x = 'base' %}{% "
         "endblock %}"
         "{% endfilter %}{{ ns.x }}"}},
       "child"},
  });
}

TEST_CASE("an include sees what is around it, gives nothing back and has blocks of its own") {
  check_all({
      {{{"main", "{% block a %}{% set x = 1 %}{% include 'i' %}{{ x }}{% endblock %}"},
        {"i", "{{ x }}{% set x = 2 %}"}},
       "11"},
      {{{"main", "{% block a %}A{% endblock %}{% include 'i' %}"},
        {"i", "{% extends 'base' %}{% block a %}I{% endblock %}"},
        {"base", "<{% block a %}B{% endblock %}>"}},
       "A<I>"},
      // The include's last newline was dropped at its end, that behind the tag by the tag.
      {{{"main", "x\n-- include 'i'\ny\n"}, {"i", "I\n"}}, "x\nIy"},
      {{{"main", "x\n-- include 'i'\n\ny\n"}, {"i", "I\n"}}, "x\nI\ny"},
  });
}

TEST_CASE("macros are imported without context and a missing one is an error only in use") {
  check_all({
      {{{"main", "{% set x = 1 %}{% from 'm' import f %}{{ f() }}"},
        {"m", "{% macro f(t='d') %}{{ x is defined }}{{ t }}{% endmacro %}"}},
       "Falsed"},
      {{{"main", "{% from 'm' import nothing %}fine"}, {"m", ""}}, "fine"},
      {{{"main", "{% from 'm' import h %}{{ h('Title') }}"},
        {"m", "{% macro h(t) %}{{ '{:#^20}'.format(' ' ~ t ~ ' ') }}{% endmacro %}"}},
       "###### Title #######"},
  });
  CHECK(message_of({{"main", "{% from 'm' import f %}{{ f() }}"}, {"m", ""}}) != "");
}

TEST_CASE("whatever uses an undefined value fails, but for tests of it and defaults") {
  for (const char* use : {"{{ x }}",
                          "{% if x %}{% endif %}",
                          "{{ x == 1 }}",
                          "{% for i in x %}{% endfor %}",
                          "{{ x.y }}",
                          "{{ x | upper }}",
                          "{{ x + 1 }}",
                          "{{ x | toyaml }}",
                          "{{ joinpath('a', x) }}"}) {
    INFO(use);
    CHECK(render_error(use).find("'x' is undefined") != std::string::npos);
  }
  CHECK(rendered("{{ x is defined }}{{ x | default(1) }}{{ x | toyaml(none) }}") == "False1null");
  CHECK(rendered("{% set ns = namespace() %}{{ ns.x | default(2) }}") == "2");
}

TEST_CASE("values print as Python prints them") {
  CHECK(rendered("{{ true }} {{ none }} {{ 0.00001 }} {{ 0.001 }} {{ 10.0 ** 16 }} {{ 6.0 }}") ==
        "True None 1e-05 0.001 1e+16 6.0");
  CHECK(rendered("{{ -7 // 2 }} {{ 6 / 2 }} {{ 2 ** 3 }} {{ {'a': ['b', 1.0]} }}") ==
        "-4 3.0 8 {'a': ['b', 1.0]}");
  CHECK(
      rendered("{{ 0.00001 | toyaml }} {{ 10000.0 | toyaml }} {{ 'a b: c' | toyaml }} "
               "{{ '' | toyaml }} {{ 'null' | toyaml }} {{ '1' | toyaml }} {{ [1, 'x'] | toyaml }} "
               "{{ {'a': none} | toyaml }} {{ true | toyaml }}") ==
      "1.0e-05 10000.0 'a b: c' '' 'null' '1' [1, x] {a: null} True");
}

TEST_CASE("the last newline of a source is dropped, and only one") {
  CHECK(rendered("a\n") == "a");
  CHECK(rendered("a\n\n") == "a\n");
}

TEST_CASE("a comment rule of two words is harmless and one of one word cuts the file") {
  CHECK(jinja::split_inline_templates("x\n#---- Title here ----\ny\n").size() == 1);
  CHECK(jinja::split_inline_templates("x\n#---- Title ----\ny\n").size() == 2);
}

TEST_CASE("an undefined variable is shown where it stands with near misses") {
  CHECK(render_error("-- set hidden_size = 4\nx: {{ hiden_size }}") ==
        "main:2:7: error: 'hiden_size' is undefined\n"
        "    x: {{ hiden_size }}\n"
        "          ^\n"
        "hint: did you mean 'hidden_size'?");
}

TEST_CASE("a missing attribute of a namespace is undefined with near misses") {
  CHECK(render_error("-- set ns = namespace(model_name='a')\n== ns.model_nam") ==
        "main:2:7: error: this namespace has no attribute 'model_nam'\n"
        "    == ns.model_nam\n"
        "          ^\n"
        "hint: did you mean 'model_name'?");
}

TEST_CASE("unknown filters and tests and tags suggest the right name when a template is loaded") {
  CHECK(render_error("-- if false\n-- else\n== 'a' | uper\n-- endif").find("no filter 'uper'") !=
        std::string::npos);
  CHECK(render_error("{{ 1 | defualt(2) }}").find("hint: did you mean 'default'?") !=
        std::string::npos);
  CHECK(render_error("{{ 1 is defind }}").find("hint: did you mean 'defined'?") !=
        std::string::npos);
  CHECK(render_error("\n\n-- inclde 'x'") ==
        "main:3:4: error: there is no tag 'inclde'\n"
        "    -- inclde 'x'\n"
        "       ^\n"
        "hint: did you mean 'include'?");
}

TEST_CASE("an unknown filter under a condition matters only when it runs") {
  CHECK(rendered("-- if false\n== 'a' | nope\n-- endif\nx") == "x");
  CHECK(rendered("{{ 'a' | nope if false else 'b' }}") == "b");
}

TEST_CASE("a tag that is never ended is shown at its begin") {
  CHECK(render_error("a\n-- for x in [1]\nb\n").find("main:2:4: error: 'for' is never ended") == 0);
  CHECK(render_error("{% if 1 %}").find("expected {% elif %} or {% else %} or {% endif %}") !=
        std::string::npos);
  CHECK(render_error("{{ (1 ").find("main:1:1: error: this {{ is never closed") == 0);
  CHECK(render_error("x {# y").find("main:1:3: error: this comment never ends") == 0);
  CHECK(render_error("{% endif %}").find("'endif' ends nothing here") != std::string::npos);
}

TEST_CASE("an error in an included template tells the way to it") {
  Templates templates({{"main", "-- extends 'base'\n[b]\n-- include 'i'\n"},
                       {"base", "[b]\n"},
                       {"i", "ok\n#--- other ---\nx\n  == 1 / 0\n"}});
  CHECK(templates.error("main") == "");
  templates.folder().write("i", "ok\n-- include 'other'\n#--- other ---\nx\n  == 1 // 0\n");
  CHECK(templates.error() ==
        "i:5:8 (inline other): error: division by zero\n"
        "      == 1 // 0\n"
        "           ^\n"
        "  used from i:2:4\n"
        "  used from main:3:4");
}

TEST_CASE("templates that lead to themselves are reported as a cycle of one turn") {
  Templates templates(
      {{"main", "-- include 'a'"}, {"a", "x\n-- extends 'b'"}, {"b", "-- include 'a'"}});
  CHECK(templates.error() ==
        "a:2:4: error: template cycle: 'b' uses 'a' uses 'b'\n"
        "    -- extends 'b'\n"
        "       ^\n"
        "  used from b:1:4");
}

TEST_CASE("a required block that nobody fills is named") {
  CHECK(render_error("-- block model required\n-- endblock")
            .find("main:1:4: error: required block 'model' is not defined") == 0);
}

TEST_CASE("setting an attribute of something else than a namespace says how to make one") {
  const std::string message = render_error("-- set ns.x = 1");
  CHECK(message.find("cannot set 'ns.x': 'ns' is undefined") != std::string::npos);
  CHECK(message.find("{% set ns = namespace() %}") != std::string::npos);
}

TEST_CASE("wrong arguments are named") {
  CHECK(render_error("-- macro f(size)\n-- endmacro\n== f(sise=1)")
            .find("macro 'f' has no parameter 'sise'\n") != std::string::npos);
  CHECK(render_error("{{ 'a' | replace('b') }}").find("needs an argument 'new'") !=
        std::string::npos);
  CHECK(render_error("{{ joinpath('a', nope) }}").find("'nope' is undefined") != std::string::npos);
}

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
                                 "(['a' * 1000000] * 1000) | join",
                                 "(['a' * 1000000] * 1000) | tojson",
                                 "{'k': ['a' * 1000000] * 1000} | tojson(1)"}) {
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

TEST_CASE("values that contain themselves are printed and compared within bounds", "[slow]") {
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

TEST_CASE("malformed text is refused or printed but never crashes") {
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

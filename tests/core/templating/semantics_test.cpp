// What a library of templates relies on: the order in which things run, and what is seen where.

#include <utility>
#include <vector>

#include "core/templating/loader.h"
#include "tests/core/templating/templates.h"
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
  CHECK(templating::split_inline_templates("x\n#---- Title here ----\ny\n").size() == 1);
  CHECK(templating::split_inline_templates("x\n#---- Title ----\ny\n").size() == 2);
}

}  // namespace
}  // namespace forge::tests

#include "tests/core/templating/templates.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

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
            .find("main:1:4: error: the required block 'model' is not filled") == 0);
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

}  // namespace
}  // namespace forge::tests

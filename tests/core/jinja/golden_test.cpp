#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/jinja/line_preprocessor.h"
#include "tests/core/jinja/templates.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

using jinja::preprocess_lines;
using jinja::PreprocessedText;

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

using nlohmann::json;

json golden(const std::string& file) {
  return json::parse(read_file(tests_dir() / "golden" / file));
}

jinja::Variable variable_of(const json& value) {
  jinja::Variable variable;
  if (value.is_boolean()) {
    variable.kind = jinja::Variable::Kind::boolean;
    variable.boolean = value;
  } else if (value.is_number_integer()) {
    variable.kind = jinja::Variable::Kind::integer;
    variable.integer = value;
  } else if (value.is_number()) {
    variable.kind = jinja::Variable::Kind::real;
    variable.real = value;
  } else if (value.is_string()) {
    variable.kind = jinja::Variable::Kind::string;
    variable.string = value;
  }
  return variable;
}

Templates templates_of(const json& golden_case) {
  const auto files = golden_case["files"].get<std::map<std::string, std::string>>();
  Templates templates({files.begin(), files.end()});
  templates.request.host_environment.working_directory = "/cwd";
  if (!golden_case.contains("variables")) return templates;
  for (const auto& [name, value] : golden_case["variables"].items()) {
    templates.request.variables[name] = variable_of(value);
  }
  return templates;
}

/// The message of a whole error: without the place before it and the source line and hint below.
std::string statement_of(const std::string& error) {
  const size_t begin = error.find("error: ");
  if (begin == std::string::npos) return error;
  const size_t message = begin + std::string("error: ").size();
  return error.substr(message, error.find('\n', message) - message);
}

}  // namespace

TEST_CASE("every golden line is preprocessed as by Forgather") {
  const json cases = golden("template_cases.json")["line"];
  REQUIRE(cases.size() >= 30);
  for (const auto& line : cases) {
    INFO(line["name"].get<std::string>());
    CHECK(jinja::preprocess_lines(line["input"].get<std::string>()).text == line["text"]);
  }
}

TEST_CASE("every golden template renders as by Forgather") {
  const json cases = golden("template_cases.json")["render"];
  REQUIRE(cases.size() >= 66);
  for (const auto& golden_case : cases) {
    INFO(golden_case["name"].get<std::string>());
    Templates templates = templates_of(golden_case);
    const std::string main = golden_case["main"];
    if (golden_case.contains("text")) {
      CHECK(templates.text(main) == golden_case["text"]);
    } else {
      INFO("the original raises " + golden_case["raises"].get<std::string>());
      CHECK(statement_of(templates.error(main)) == golden_case["error"]);
    }
  }
}

TEST_CASE("every golden expression prints as by Jinja") {
  const json cases = golden("jinja_cases.json")["expressions"];
  REQUIRE(cases.size() >= 480);
  for (const auto& golden_case : cases) {
    const std::string expression = golden_case[0];
    INFO(expression);
    Templates templates({{"main", "{{ " + expression + " }}"}});
    templates.request.host_environment.working_directory = "/cwd";
    if (golden_case[1].is_null()) {
      INFO("Jinja raises " + golden_case[3].get<std::string>());
      CHECK(statement_of(templates.error()) == golden_case[2]);
    } else {
      CHECK(templates.text() == golden_case[1]);
    }
  }
}

TEST_CASE("every golden tree of templates renders as by Jinja") {
  const json cases = golden("jinja_cases.json")["templates"];
  REQUIRE(cases.size() >= 430);
  for (const auto& golden_case : cases) {
    INFO(golden_case["files"].dump(1));
    Templates templates = templates_of(golden_case);
    if (golden_case["text"].is_null()) {
      INFO("Jinja raises " + golden_case["raises"].get<std::string>());
      CHECK(statement_of(templates.error()) == golden_case["error"]);
    } else {
      CHECK(templates.text() == golden_case["text"]);
    }
  }
}

}  // namespace forge::tests

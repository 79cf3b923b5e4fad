#include <nlohmann/json.hpp>

#include "core/base/fs.h"
#include "core/templating/line_preprocessor.h"
#include "tests/core/templating/templates.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

using nlohmann::json;

json golden(const std::string& file) {
  return json::parse(read_file(tests_dir() / "golden" / file));
}

templating::Variable variable_of(const json& value) {
  templating::Variable variable;
  if (value.is_boolean()) {
    variable.kind = templating::Variable::Kind::boolean;
    variable.boolean = value;
  } else if (value.is_number_integer()) {
    variable.kind = templating::Variable::Kind::integer;
    variable.integer = value;
  } else if (value.is_number()) {
    variable.kind = templating::Variable::Kind::real;
    variable.real = value;
  } else if (value.is_string()) {
    variable.kind = templating::Variable::Kind::string;
    variable.string = value;
  }
  return variable;
}

Templates templates_of(const json& golden_case) {
  const auto files = golden_case["files"].get<std::map<std::string, std::string>>();
  Templates templates({files.begin(), files.end()});
  templates.request.surroundings.working_directory = "/cwd";
  if (!golden_case.contains("variables")) return templates;
  for (const auto& [name, value] : golden_case["variables"].items()) {
    templates.request.variables[name] = variable_of(value);
  }
  return templates;
}

/// What our message says for an error of the original's kind.
bool says(const std::string& message, const std::string& kind) {
  const auto contains = [&](const char* part) { return message.find(part) != std::string::npos; };
  if (kind == "UndefinedError") return contains("is undefined") || contains("does not export");
  if (kind == "TemplateNotFound") return contains("error: no template '");
  if (kind == "RecursionError") return contains("error: template cycle: '");
  return false;
}

}  // namespace

TEST_CASE("every golden line is preprocessed as by Forgather") {
  const json cases = golden("template_cases.json")["line"];
  REQUIRE(cases.size() >= 30);
  for (const auto& line : cases) {
    INFO(line["name"].get<std::string>());
    CHECK(templating::preprocess_lines(line["input"].get<std::string>()).text == line["text"]);
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
      const std::string message = templates.error(main);
      INFO(message);
      CHECK(says(message, golden_case["error"]));
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
    templates.request.surroundings.working_directory = "/cwd";
    if (golden_case[1].is_null()) {
      CHECK(templates.error() != "");
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
      CHECK(templates.error() != "");
    } else {
      CHECK(templates.text() == golden_case["text"]);
    }
  }
}

}  // namespace forge::tests

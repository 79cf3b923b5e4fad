#include <nlohmann/json.hpp>

#include "core/base/fs.h"
#include "core/templating/line_preprocessor.h"
#include "tests/core/templating/templates.h"
#include "tests/support/catch.h"

using namespace forge;
using namespace forge::tests;

namespace {

nlohmann::json golden_cases() {
  return nlohmann::json::parse(read_file(tests_dir() / "golden" / "template_cases.json"));
}

templating::Variable variable_of(const nlohmann::json& value) {
  templating::Variable variable;
  if (value.is_boolean()) {
    variable.kind = templating::Variable::Kind::boolean;
    variable.boolean = value;
  } else if (value.is_number_integer()) {
    variable.kind = templating::Variable::Kind::integer;
    variable.integer = value;
  } else if (value.is_string()) {
    variable.kind = templating::Variable::Kind::string;
    variable.string = value;
  }
  return variable;
}

/// What our message says for an error of the original's kind.
std::string sign_of(const std::string& kind) {
  if (kind == "UndefinedError") return "";
  if (kind == "TemplateNotFound") return "no template '";
  if (kind == "RecursionError") return "template cycle: ";
  return "?";
}

}  // namespace

TEST_CASE("every golden line is preprocessed as by the original") {
  const nlohmann::json cases = golden_cases()["line"];
  REQUIRE(cases.size() >= 30);
  for (const auto& golden : cases) {
    INFO(golden["name"].get<std::string>());
    CHECK(templating::preprocess_lines(golden["input"].get<std::string>()).text == golden["text"]);
  }
}

TEST_CASE("every golden template renders as by the original") {
  const nlohmann::json cases = golden_cases()["render"];
  REQUIRE(cases.size() >= 66);
  for (const auto& golden : cases) {
    INFO(golden["name"].get<std::string>());
    Templates templates(golden["files"].get<std::map<std::string, std::string>>());
    for (const auto& [name, value] : golden["variables"].items())
      templates.request.variables[name] = variable_of(value);
    const std::string main = golden["main"];
    if (golden.contains("text")) {
      CHECK(templates.text(main) == golden["text"]);
      continue;
    }
    const std::string kind = golden["error"], message = templates.error(main);
    INFO(message);
    CHECK(message.find("error: ") != std::string::npos);
    CHECK(message.find(sign_of(kind)) != std::string::npos);
    const bool says_undefined = message.find("is undefined") != std::string::npos ||
                                message.find("does not export") != std::string::npos;
    CHECK(says_undefined == (kind == "UndefinedError"));
  }
}

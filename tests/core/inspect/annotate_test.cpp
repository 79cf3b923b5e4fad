#include "core/inspect/annotate.h"

#include <nlohmann/json.hpp>

#include "core/inspect/span_json.h"
#include "tests/core/templating/templates.h"
#include "tests/support/catch.h"

namespace forge::inspect {
namespace {

using tests::Templates;

Templates family() {
  return Templates({{"main",
                     "-- extends 'base'\n[body]\n  lr: {{ 0.1 }}\n== super()\n-- include 'part'\n"
                     "\n#--- part ---\ninlined: 1\n"},
                    {"base", "head: 1\n-- block body\nbelow: 2\n-- endblock\n\ntail: 3\n"}});
}

TEST_CASE("each line has the origin of what it begins with") {
  Templates templates = family();
  const auto lines = annotate(templates.rendered(), templates.folder().path());
  std::vector<std::string> shown;
  for (const AnnotatedLine& line : lines) shown.push_back(line.text + "|" + line.place);
  CHECK(shown == std::vector<std::string>{"head: 1|base:1",
                                          "  lr: 0.1|main:3",
                                          "below: 2|base:3",
                                          "|",
                                          "inlined: 1|main:8 (inline part)",
                                          "tail: 3|base:6"});
}

TEST_CASE("as JSON each stretch of a line has its place and the way there") {
  Templates templates = family();
  const auto lines = lines_to_json(templates.rendered());
  REQUIRE(lines.size() == 6);
  CHECK(lines[1]["text"] == "  lr: 0.1");
  CHECK(lines[1]["line"] == 2);
  REQUIRE(lines[1]["origins"].size() == 2);
  CHECK(lines[1]["origins"][0]["at"] == 1);
  CHECK(lines[1]["origins"][1]["at"] == 7);
  CHECK(lines[1]["origins"][1]["line"] == 3);
  CHECK(lines[0]["origins"][0]["via"][0]["line"] == 1);
  CHECK(lines[3]["origins"].empty());
  CHECK(lines[4]["origins"][0]["inline"] == "part");
  CHECK(lines[4]["origins"][0]["via"][0]["line"] == 5);
}

TEST_CASE("an unknown place is null and has no line") {
  CHECK(to_json(SourceSpan{}) == nullptr);
  CHECK(line_of(SourceSpan{}, "/") == "");
}

}  // namespace
}  // namespace forge::inspect

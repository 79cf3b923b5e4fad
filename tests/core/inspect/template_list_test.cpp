#include "core/inspect/template_list.h"

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::inspect {
namespace {

class ListFixture {
 public:
  ListFixture() {
    folder.write("own/configs/a.yaml",
                 "-- extends 'base.yaml'\nx\n#--- a.part ---\n-- extends 'tail.jinja'\n");
    folder.write("own/configs/b.yaml", "-- extends ns.name\n");
    folder.write("own/shared.yaml", "1");
    folder.write("own/.hidden/c.yaml", "1");
    folder.write("own/notes.md", "1");
    folder.write("library/base.yaml", "-- include 'shared.yaml'\n");
    folder.write("library/shared.yaml", "2");
    folder.write("library/tail.jinja", "-- extends 'missing.yaml'\n");
    folder.write("library/wrong.yaml", "-- endblock\n");
    folder.write("library/round.yaml", "-- extends 'round_too.yaml'\n");
    folder.write("library/round_too.yaml", "-- extends 'round.yaml'\n");
    templates = list_templates({folder / "own", folder / "nowhere", folder / "library"});
  }

  tests::TemporaryFolder folder;
  std::vector<ListedTemplate> templates;
};

TEST_CASE("every template file on the search path is listed once") {
  const ListFixture fixture;
  CHECK(list_as_files(fixture.templates, fixture.folder.path()) ==
        "own/configs/a.yaml\nown/configs/b.yaml\nown/shared.yaml\nlibrary/base.yaml\n"
        "library/round.yaml\nlibrary/round_too.yaml\nlibrary/shared.yaml\nlibrary/tail.jinja\n"
        "library/wrong.yaml\n");
}

TEST_CASE("in Markdown a template stands below what its text extends") {
  const ListFixture fixture;
  const std::string text = list_as_markdown(fixture.templates, fixture.folder.path());
  const std::string problem = fixture.templates.back().problem->message();
  CHECK(text ==
        "- [configs/b.yaml](own/configs/b.yaml) (extends what an expression names)\n"
        "- [shared.yaml](own/shared.yaml)\n"
        "- [base.yaml](library/base.yaml)\n"
        "    - [configs/a.yaml](own/configs/a.yaml)\n"
        "- [shared.yaml](library/shared.yaml) (shadowed by a folder before)\n"
        "- [tail.jinja](library/tail.jinja) (extends missing.yaml)\n"
        "    - [a.part](own/configs/a.yaml) (inline at line 4)\n"
        "- [wrong.yaml](library/wrong.yaml) (broken: " +
            problem +
            ")\n"
            "- [round.yaml](library/round.yaml) (extends round_too.yaml)\n"
            "    - [round_too.yaml](library/round_too.yaml)\n");
}

TEST_CASE("as JSON each template says what it is") {
  const ListFixture fixture;
  const auto json = to_json(fixture.templates);
  REQUIRE(json.size() == 10);
  CHECK(json[0]["extends"] == "base.yaml");
  CHECK(json[1]["inline"] == true);
  CHECK(json[1]["name"] == "a.part");
  CHECK(json[2]["dynamic"] == true);
  CHECK(json[9].contains("problem"));
}

}  // namespace
}  // namespace forge::inspect

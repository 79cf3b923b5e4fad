#include "core/inspect/project_page.h"

#include <nlohmann/json.hpp>

#include "tests/core/project/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"

namespace forge::inspect {
namespace {

using tests::contains;

class PageFixture {
 public:
  PageFixture() {
    files.folder.write("forge_workspace/meta_defaults.yaml",
                       "name: Demo\ndescription: What it shows\nsearchdir:\n"
                       "  - {{ project_dir }}/templates\n  - {{ project_dir }}/nowhere\n"
                       "typo: 1\n");
    files.add_project("p", "-- extends 'meta_defaults.yaml'\n");
    files.folder.write("projects/p/README.md",
                       "# A title\n\nWhat it is about.\n\nMore.\n\n## Section\n\nNot this.\n");
    files.add_config("p", "a", "name: First\ndescription: Of all\ntrain: {}\n");
    files.add_config("p",
                     "b",
                     "meta: {config_name: Second}\n"
                     "dynamic_args: [{names: --max-steps, type: int, help: How many}]\n");
    files.add_config("p", "broken", "x: {{ nothing }}\n");
    files.add_config("p", "wrong_graph", "x: !cal:f []\n");
  }

  MetaPage meta() const {
    return meta_page(files.project("p"), files.workspace(), tests::fixed_surroundings());
  }
  IndexPage index() const {
    return index_page(files.project("p"), files.workspace(), tests::fixed_surroundings());
  }

  tests::TemporaryWorkspace files;
};

TEST_CASE("the page on meta.yaml has its keys, its templates and the search path") {
  const PageFixture fixture;
  const std::string page = to_markdown(fixture.meta(), fixture.files.folder.path());
  CHECK(contains(page, "# Demo\n\nFolder: projects/p\n"));
  CHECK(contains(page, "```yaml\nname: Demo\ndescription: What it shows\n"));
  CHECK(contains(page, "- [meta.yaml](meta.yaml)\n    - extends [meta_defaults.yaml]"));
  CHECK(contains(page, "- projects/p/templates\n- projects/p/nowhere (does not exist)\n"));
  const auto json = to_json(fixture.meta());
  CHECK(json["keys"]["name"] == "Demo");
  CHECK(json["unknown_keys"][0]["key"] == "typo");
  CHECK(json["search_path"][0]["exists"] == true);
  CHECK(json["search_path"][1]["exists"] == false);
  CHECK(json["templates"][1]["name"] == "meta_defaults.yaml");
}

TEST_CASE("the index has the README's beginning and every config with its arguments") {
  const PageFixture fixture;
  const IndexPage page = fixture.index();
  CHECK_FALSE(page.is_sound());
  const std::string text = to_markdown(page, fixture.files.folder.path());
  CHECK(contains(text, "# Demo\n\nWhat it shows\n\nWhat it is about.\n\nMore.\n\nFolder: "));
  CHECK_FALSE(contains(text, "Not this"));
  CHECK(contains(text, "- **a** (default): First. Of all\n"));
  CHECK(contains(text, "- **b**: Second\n    - `--max-steps INT` How many\n"));
  CHECK(contains(text, "- **broken**: broken: "));
  CHECK(contains(text, "broken.yaml:1:7: 'nothing' is undefined"));
  CHECK(contains(text, "unknown tag '!cal:f'"));
  const auto json = to_json(page);
  CHECK(json["default_config"] == "a");
  CHECK(json["configs"][0]["trains"] == true);
  CHECK(json["configs"][1]["arguments"][0]["usage"] == "--max-steps INT");
  CHECK(json["configs"][2].contains("problem"));
}

}  // namespace
}  // namespace forge::inspect

#include "core/run/moved_files.h"
#include "core/base/files.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::run {
namespace {

using nlohmann::json;

TEST_CASE("a file that was moved with its folder is found", "[run][moved]") {
  const tests::TemporaryFolder folder;
  const fs::path here = folder.write("now/canon/text.txt", "text"), was = folder / "before";
  const std::vector<MovedFolder> moved = {{was / "x", folder / "now"}, {was, folder / "now"}};
  CHECK(find_moved(was / "canon/text.txt", moved) == here);
  CHECK(find_moved(was / "canon/other.txt", moved) == was / "canon/other.txt");
  CHECK(find_moved(here, {{folder / "now", was}}) == here);
  CHECK(find_moved("canon/text.txt", moved) == "canon/text.txt");
  CHECK(find_moved(was / "canon/text.txt", {{was, ""}, {"", folder / "now"}}) ==
        was / "canon/text.txt");
}

TEST_CASE("a run remembers where its files were moved, and of others nothing", "[run][moved]") {
  const tests::TemporaryFolder folder, runs;
  const fs::path before = folder / "before", now = folder / "now";
  for (const std::string name : {"projects/canon/meta.yaml", "a.txt", "b.txt", "tokenizer.json"})
    folder.write("before/" + name, name);
  RunInputs inputs = tests::small_inputs();
  inputs.workspace = before.string();
  inputs.experiment["data"] = {
      {"path", (before / "a.txt").string()},
      {"sources", {{"s", {{"weight", 1}, {"path", (before / "b.txt").string()}}}}}};
  inputs.experiment["tokenizer"] = {{"path", (before / "tokenizer.json").string()}};
  const RunFolder run = tests::new_run(runs.path(), inputs);
  fs::rename(before, now);
  fs::remove(now / "tokenizer.json");
  const json found = find_moved_files(run.config(), {{before, now}});
  CHECK(found["data"]["path"] == (now / "a.txt").string());
  CHECK(found["data"]["sources"]["s"]["path"] == (now / "b.txt").string());
  CHECK(found["tokenizer"]["path"] == (before / "tokenizer.json").string());

  json changed = found;
  changed["train"]["log_every"] = 7;
  remember_places(run, changed, now.string());
  CHECK(run.config() == found);
  CHECK(run.record().workspace == now.string());
  // What is there stays, whatever somebody else has of it.
  changed["data"]["path"] = folder.write("copy.txt", "a.txt").string();
  remember_places(run, changed, before.string());
  CHECK(run.config() == found);
  CHECK(run.record().workspace == now.string());
}

}  // namespace
}  // namespace forge::run

#include "core/config/check_data.h"

#include "core/base/fs.h"
#include "core/config/paths.h"
#include "tests/core/config/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"

namespace forge::config {
namespace {

using tests::ConfigFixture;
using tests::contains;

/// The error for a section `data` of the small config.
std::string refusal(const std::string& data) {
  const ConfigFixture fixture;
  fixture.files.folder.write("projects/p/a.txt", "text");
  const std::string error = fixture.small_error("data: {" + data + "}\n");
  INFO(error);
  return error;
}
DataConfig accepted(const std::string& data) {
  const ConfigFixture fixture;
  fixture.files.folder.write("projects/p/a.txt", "text");
  return fixture.small("data: {" + data + "}\n").experiment.data;
}

TEST_CASE("a document of JSON lines is a record and nothing else") {
  REQUIRE(accepted("source: jsonl, path: a.txt").documents == DocumentKind::record);
  REQUIRE(contains(refusal("source: jsonl, path: a.txt, documents: line"),
                   "data.documents line does not go with data.source jsonl"));
  REQUIRE(contains(refusal("source: text, path: a.txt, documents: record"),
                   "data.documents record does not go with data.source text"));
}

TEST_CASE("the kind of documents is one of a few words") {
  REQUIRE(accepted("source: text, path: a.txt, documents: block").documents == DocumentKind::block);
  REQUIRE(contains(refusal("source: text, path: a.txt, documents: blok"), "did you mean 'block'"));
  REQUIRE(contains(refusal("rows: paded"), "did you mean 'padded'"));
  REQUIRE(contains(refusal("evaluationpath: a.txt"), "did you mean 'evaluation_path'"));
}

TEST_CASE("data keys that say nothing are refused with what gives them a meaning") {
  REQUIRE(contains(refusal("documents: line"), "has no meaning where data.source is toy_stories"));
  REQUIRE(contains(refusal("source: text, path: a.txt, field: page"),
                   "has no meaning where data.source is text"));
  REQUIRE(contains(refusal("source: text, path: a.txt, separator: X"),
                   "has no meaning where data.documents is file"));
  REQUIRE(contains(refusal("source: text, path: a.txt, training_fraction: 0.1"),
                   "is one of documents, and data.documents is file"));
  REQUIRE(
      contains(refusal("source: text, path: a.txt, evaluation_path: a.txt, held_out_fraction: 0.2"),
               "has no meaning where data.evaluation_path is given"));
  REQUIRE(contains(refusal("source: text, path: a.txt, documents: separator, separator: ''"),
                   "data.separator has 0 bytes"));
  REQUIRE(contains(refusal("source: text, path: a.txt, documents: line, training_fraction: 0"),
                   "data.training_fraction"));
}

TEST_CASE("a path to JSON lines on the command line is read as such") {
  const ConfigFixture fixture;
  fixture.files.folder.write("a.jsonl.gz", "");
  REQUIRE(fixture.small("", {"data.path=a.jsonl.gz"}).experiment.data.source == "jsonl");
  REQUIRE(is_json_lines("b.ndjson"));
  REQUIRE(is_json_lines("b.jsonl.zst"));
  REQUIRE_FALSE(is_json_lines("b.json"));
  REQUIRE_FALSE(is_json_lines("jsonl"));
}

TEST_CASE("a public text that was not got yet hinders only a run and says how to get it") {
  const ConfigFixture fixture;
  const ResolvedConfig resolved =
      fixture.small("data: {source: text, path: 'corpora:never/was.txt'}\n");
  REQUIRE(resolved.experiment.data.path == (corpora_dir() / "never" / "was.txt").string());
  const std::string error = tests::error_of([&] { require_no_obstacles(resolved); });
  INFO(error);
  REQUIRE(contains(error, "'forge data get never' gets it"));
}

}  // namespace
}  // namespace forge::config

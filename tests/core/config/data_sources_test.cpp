#include "core/config/data_sources.h"

#include <nlohmann/json.hpp>

#include "core/config/explain.h"
#include "core/config/json.h"
#include "core/config/keys.h"
#include "tests/core/config/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"

namespace forge::config {
namespace {

using tests::ConfigFixture;
using tests::contains;

const std::string two =
    "data:\n"
    "  sources:\n"
    "    web: {path: a.txt, documents: line, weight: 3}\n"
    "    code: {path: b.jsonl, field: content}\n";

struct Fixture : ConfigFixture {
  Fixture() {
    files.folder.write("projects/p/a.txt", "text");
    files.folder.write("projects/p/b.jsonl", "{}");
    files.folder.write("other.txt", "text");
  }
  DataConfig data(const std::string& more, std::vector<std::string> overrides = {}) const {
    return small(more, std::move(overrides)).experiment.data;
  }
};

TEST_CASE("sources make the data a mixture and each is completed like a text alone") {
  const Fixture fixture;
  const ResolvedConfig resolved = fixture.small(two);
  const DataConfig& data = resolved.experiment.data;
  REQUIRE(data.source == "mixture");
  REQUIRE(data.sources.size() == 2);
  REQUIRE(data.sources.at("web").weight == 3);
  REQUIRE(data.sources.at("web").path == (fixture.files.folder / "projects/p/a.txt").string());
  REQUIRE(data.sources.at("code").weight == 1);
  REQUIRE(data.sources.at("code").source == "jsonl");
  REQUIRE(data.sources.at("code").documents == DocumentKind::record);
  REQUIRE(resolved.json["data"]["sources"]["code"]["field"] == "content");
  REQUIRE(resolved.origins.at("data.source").set_by.derived_from == "data.sources.code.field");
  REQUIRE(resolved.origins.at("data.sources.web.separator").set_by.layer == default_layer);
  const Experiment back = experiment_from_json(resolved.json);
  REQUIRE(to_json(back) == resolved.json);
  const DataConfig alone = data_of_source(data, data.sources.at("web"));
  REQUIRE(alone.source == "text");
  REQUIRE(alone.sources.empty());
  REQUIRE(alone.documents == DocumentKind::line);
}

TEST_CASE("a config without sources has none in its JSON") {
  REQUIRE_FALSE(to_json(Experiment{}).at("data").contains("sources"));
}

TEST_CASE("keys below a name are set from the command line and explained") {
  const Fixture fixture;
  const ResolvedConfig resolved =
      fixture.small(two, {"data.sources.web.weight=0.5", "data.sources.more.path=other.txt"});
  const auto& sources = resolved.experiment.data.sources;
  REQUIRE(sources.at("web").weight == 0.5);
  REQUIRE(sources.at("more").path == (fixture.files.folder / "other.txt").string());
  const auto explained = explain(resolved, "data.sources.web.weight");
  REQUIRE(explained.at(0).history.size() == 3);  // command line, config, default
  REQUIRE(explained.at(0).key->path == "data.sources.NAME.weight");
  REQUIRE(contains(fixture.small_error(two, {"data.sources.web.wieght=1"}),
                   "did you mean 'data.sources.web.weight'"));
  REQUIRE(is_known_path("data.sources.web"));
  REQUIRE_FALSE(is_known_path("data.sources.web.weight.x"));
  REQUIRE_FALSE(is_known_path("data.sources..weight"));
}

TEST_CASE("who gives other data on the command line takes a mixture back") {
  const Fixture fixture;
  const DataConfig text = fixture.data(two, {"data.path=other.txt"});
  REQUIRE(text.source == "text");
  REQUIRE(text.sources.empty());
  REQUIRE(fixture.data(two, {"data.source=toy_stories"}).sources.empty());
  const DataConfig mixture = fixture.data("data: {source: text, path: a.txt, documents: line}\n",
                                          {"data.sources.more.path=other.txt"});
  REQUIRE(mixture.source == "mixture");
  REQUIRE(mixture.path.empty());
  REQUIRE(mixture.documents == DocumentKind::file);
}

TEST_CASE("what disagrees about sources is refused with what would be right") {
  const Fixture fixture;
  const auto refusal = [&](const std::string& data) {
    const std::string error = fixture.small_error("data: {" + data + "}\n");
    INFO(error);
    return error;
  };
  REQUIRE(contains(refusal("source: text, path: a.txt, sources: {web: {path: a.txt}}"),
                   "data.sources.web.path is given, but data.source is text"));
  REQUIRE(contains(refusal("field: x, sources: {web: {path: a.txt}}"),
                   "has no meaning where data.source is mixture"));
  REQUIRE(contains(refusal("source: mixture"), "data.sources names nothing to mix"));
  REQUIRE(contains(refusal("sources: {web: {weight: 2}}"), "data.sources.web.path names no file"));
  REQUIRE(contains(refusal("sources: {web: {path: a.txt, weight: 0}}"), "are 0"));
  REQUIRE(contains(refusal("sources: {web: {path: a.txt, weight: -1}}"),
                   "'data.sources.web.weight' must be"));
  REQUIRE(contains(refusal("sources: {web: {path: a.txt}, b: {path: a.txt, weight: 1.0e-5}}"),
                   "is less than one row in 10,000 of all"));
  REQUIRE(contains(refusal("sources: {'a.b': {path: a.txt}}"), "'a.b' is no name for one of"));
  REQUIRE(contains(refusal("sources: [a.txt]"), "'data.sources' must be a mapping of names"));
  REQUIRE(contains(refusal("sources: {web: a.txt}"), "'data.sources.web' must be a mapping"));
  REQUIRE(contains(refusal("sources: {web: {pth: a.txt}}"), "did you mean 'path'"));
  REQUIRE(contains(refusal("sources: {web: {source: mixture}}"), "text, jsonl, toy_stories"));
  REQUIRE(contains(refusal("sources: {web: {path: a.txt, field: x}}"),
                   "has no meaning where data.sources.web.source is text"));
  REQUIRE(contains(refusal("sources: {toys: {source: toy_stories, path: a.txt}}"),
                   "data.sources.toys.path is given"));
}

}  // namespace
}  // namespace forge::config

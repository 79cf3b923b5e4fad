#include <nlohmann/json.hpp>

#include "core/config/experiment.h"
#include "core/config/keys.h"
#include "core/config/reader.h"
#include "core/yaml/yaml.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::tests_of_reader {

struct Row {
  std::string config;
  double weight = 1;
};
struct Table {
  std::string title = "untitled";
  std::vector<Row> rows;
  std::vector<std::string> columns;
  std::map<std::string, int> widths;
  std::optional<int> limit = 3;
  int count = 0;
  uint64_t seed = 0;
  bool shown = true;
  model::Activation activation = model::Activation::none;
  model::PositionConfig position;
};

template <class Visitor>
void fields(Visitor& visit, Row& row) {
  visit.field("config", row.config, "a config", config::required());
  visit.field("weight", row.weight, "its weight", config::above(0));
}
template <class Visitor>
void fields(Visitor& visit, Table& table) {
  visit.field("title", table.title, "heading");
  visit.field("rows", table.rows, "rows");
  visit.field("columns", table.columns, "columns");
  visit.field("widths", table.widths, "widths", config::between(1, 9));
  visit.field("limit", table.limit, "limit");
  visit.field("count", table.count, "count", config::or_null(config::at_least(1)));
  visit.field("seed", table.seed, "seed");
  visit.field("shown", table.shown, "shown");
  visit.field("activation", table.activation, "activation");
  visit.section("position", table.position, "position");
}

yaml::NodePtr parse(const std::string& text) {
  const auto source = std::make_shared<SourceText>(SourceText{"t.yaml", "", text, 1});
  return yaml::parse(text, [&](int line, int column) { return make_span(source, line, column); });
}
Table read(const std::string& text) { return config::read_fields<Table>(*parse(text)); }
std::string error_for(const std::string& text) {
  return tests::error_of([&] { read(text); });
}
TEST_CASE("a struct with a schema is read with lists and maps and sections") {
  const Table table = read(
      "title: Positions\nrows:\n- {config: a}\n- {config: b, weight: 2}\ncolumns: [x, y]\n"
      "widths: {x: 4}\nlimit: null\nseed: 9007199254740992\nshown: no\nactivation: silu\n"
      "position: {kind: nope, rope_dim: 8}\n");
  REQUIRE(table.title == "Positions");
  REQUIRE(table.rows.size() == 2);
  REQUIRE(table.rows[1].config == "b");
  REQUIRE(table.rows[0].weight == 1);
  REQUIRE(table.rows[1].weight == 2);
  REQUIRE(table.columns == std::vector<std::string>{"x", "y"});
  REQUIRE(table.widths.at("x") == 4);
  REQUIRE_FALSE(table.limit);
  REQUIRE(table.seed == 9007199254740992ULL);
  REQUIRE_FALSE(table.shown);
  REQUIRE(table.activation == model::Activation::silu);
  REQUIRE(table.position.kind == model::PositionKind::nope);
  REQUIRE(table.position.rope_dim == 8);
}

TEST_CASE("an integer that no record could have is refused with the largest one") {
  const std::string said = "'seed' must be from 0 to 9007199254740992, not 9007199254740993";
  REQUIRE(tests::contains(error_for("seed: 9007199254740993\n"), said));
  REQUIRE(tests::contains(error_for("seed: 9223372036854775807\n"), "to 9007199254740992"));
}

TEST_CASE("a missing key keeps the default") {
  const Table table = read("title: T\n");
  REQUIRE(table.limit == 3);
  REQUIRE(table.shown);
}

TEST_CASE("a number that YAML takes for text is a number where one is wanted") {
  REQUIRE(read("position: {theta: 1e4}\n").position.theta == 10000);
  REQUIRE(read("rows: [{config: a, weight: 1e-3}]\n").rows[0].weight == 0.001);
  REQUIRE(read("count: 1e3\n").count == 1000);
  REQUIRE(read("count: 20.0\n").count == 20);
  REQUIRE(read("rows: [{config: a, weight: 1}]\n").rows[0].weight == 1.0);
  REQUIRE(tests::contains(error_for("count: '20'\n"),
                          "'count' must be an integer, not the string '20'"));
  REQUIRE(tests::contains(error_for("count: 1.5\n"), "must be an integer"));
  REQUIRE(tests::contains(error_for("count: 1e-3\n"), "must be an integer"));
  REQUIRE(tests::contains(error_for("position: {theta: 1e}\n"),
                          "must be a number, not the string '1e'"));
}

TEST_CASE("an unknown key is refused at its place with its path and the nearest key") {
  REQUIRE(error_for("title: T\nposition:\n  kind: rope\n  thetta: 1\n") ==
          "t.yaml:4:3: error: unknown key 'position.thetta'\n"
          "      thetta: 1\n"
          "      ^\n"
          "hint: did you mean 'theta'?");
  REQUIRE(tests::contains(error_for("rows: [{config: a, wheight: 1}]\n"),
                          "unknown key 'rows[0].wheight'"));
  REQUIRE(tests::contains(error_for("position: {xyz: 1}\n"),
                          "the keys here are kind, theta, rope_dim"));
}

TEST_CASE("a key that belongs elsewhere is suggested with its whole path") {
  const std::vector<std::string> elsewhere = {"position.theta", "deep.er.thing"};
  config::ReadOptions options;
  options.elsewhere = &elsewhere;
  const auto error = [&](const std::string& text) {
    return tests::error_of([&] { config::read_fields<Table>(*parse(text), options); });
  };
  REQUIRE(tests::contains(error("theta: 1\n"), "did you mean 'position.theta'?"));
  REQUIRE(tests::contains(error("position: {thing: 1}\n"), "did you mean 'deep.er.thing'?"));
}

TEST_CASE("a wrong type is refused at the value") {
  REQUIRE(tests::contains(error_for("title: 12\n"),
                          "t.yaml:1:8: error: 'title' must be text, not the number 12"));
  REQUIRE(tests::contains(error_for("title: no\n"), "quote it to make it text"));
  REQUIRE(tests::contains(error_for("title: [a]\n"), "must be text, not a sequence"));
  REQUIRE(tests::contains(error_for("shown: 1\n"), "must be true or false, not the number 1"));
  REQUIRE(tests::contains(error_for("columns: x\n"), "must be a list, not the string 'x'"));
  REQUIRE(tests::contains(error_for("columns: [x, {a: b}]\n"),
                          "'columns[1]' must be text, not a mapping"));
  REQUIRE(tests::contains(error_for("widths: [1]\n"), "must be a mapping, not a sequence"));
  REQUIRE(tests::contains(error_for("position: rope\n"), "'position' must be a mapping of keys"));
  REQUIRE(tests::contains(error_for("- a\n"), "the document must be a mapping of keys"));
  REQUIRE(tests::contains(error_for("activation: [silu]\n"),
                          "must be one of none, silu, not a sequence"));
  REQUIRE(tests::contains(error_for("title: !call:f [x]\n"),
                          "the tag !call:f means nothing at 'title'"));
}

TEST_CASE("a value out of its limits is refused at the value") {
  REQUIRE(tests::contains(error_for("count: 0\n"),
                          "t.yaml:1:8: error: 'count' must be at least 1, not 0"));
  REQUIRE(tests::contains(error_for("rows: [{config: a, weight: 0}]\n"), "must be above 0, not 0"));
  REQUIRE(
      tests::contains(error_for("widths: {x: 10}\n"), "'widths.x' must be from 1 to 9, not 10"));
  REQUIRE(tests::contains(error_for("seed: -1\n"), "must be from 0 to"));
  REQUIRE(tests::contains(error_for("count: 3000000000\n"), "must be from"));
  REQUIRE(tests::contains(error_for("position: {theta: .inf}\n"), "must be a finite number"));
  REQUIRE(tests::contains(error_for("position: {theta: 1e999}\n"), "must be a finite number"));
}

TEST_CASE("an unknown word of an enumeration is refused with the words there are") {
  const std::string error = error_for("activation: slu\n");
  REQUIRE(tests::contains(error, "'activation' must be one of none, silu, not 'slu'"));
  REQUIRE(tests::contains(error, "did you mean 'silu'?"));
}

TEST_CASE("null is a value only where the schema says so") {
  REQUIRE(read("count: null\n").count == 0);
  REQUIRE_FALSE(read("limit: ~\n").limit);
  REQUIRE(tests::contains(error_for("title: null\n"), "must be text, not null"));
  REQUIRE(tests::contains(error_for("seed:\n"), "must be an integer, not null"));
  REQUIRE(tests::contains(error_for("position:\n"), "must be a mapping of keys, not null"));
  REQUIRE(tests::contains(error_for("activation:\n"), "must be one of none, silu"));
}

TEST_CASE("a required key that is missing is named") {
  REQUIRE(tests::contains(error_for("rows:\n- weight: 2\n"),
                          "t.yaml:2:3: error: missing key 'rows[0].config'"));
}

TEST_CASE("text from a shell may look like a number or be empty") {
  config::ReadOptions options;
  options.plain_is_text = true;
  const auto title = [&](const std::string& text) {
    return config::read_fields<Table>(*parse(text), options).title;
  };
  REQUIRE(title("title: 12\n") == "12");
  REQUIRE(title("title: 010\n") == "010");
  REQUIRE(title("title: on\n") == "on");
  REQUIRE(title("title:\n").empty());
  REQUIRE(
      tests::contains(tests::error_of([&] { title("title: null\n"); }), "must be text, not null"));
}

TEST_CASE("every leaf is told with its path") {
  std::vector<std::string> paths;
  config::ReadOptions options;
  options.on_leaf = [&](const std::string& path, const yaml::Entry& entry) {
    paths.push_back(path + "=" + entry.value->text);
  };
  config::read_fields<Table>(*parse("position: {theta: 2, kind: nope}\ntitle: T\n"), options);
  REQUIRE(paths == std::vector<std::string>{"title=T", "position.kind=nope", "position.theta=2"});
}

}  // namespace forge::tests_of_reader

namespace forge::config {
namespace {

const Key& key(const std::string& path) {
  for (const Key& candidate : all_keys()) {
    if (candidate.path == path) return candidate;
  }
  throw std::runtime_error("no key " + path);
}

TEST_CASE("every key has its type and meaning and default") {
  REQUIRE(key("model.canon.set").type == "text");
  REQUIRE(key("model.canon.set").default_value == "\"\"");
  REQUIRE(key("model.attention.position.kind").type == "rope | nope");
  REQUIRE(key("model.attention.position.rope_dim").type == "integer or null");
  REQUIRE(key("model.attention.num_kv_heads").type == "integer or null");
  REQUIRE(key("model.attention.num_kv_heads").default_value == "null");
  REQUIRE(key("model.hidden_size").required);
  REQUIRE(key("model.hidden_size").default_value.empty());
  REQUIRE(key("train.document_mask").type == "true or false");
  REQUIRE(key("train.deterministic").type == "true, false or null");
  REQUIRE(key("train.deterministic").default_value == "null");
  REQUIRE(key("optimizer.betas").type == "list");
  REQUIRE(key("optimizer.lr").default_value == "0.001");
  REQUIRE(key("train.gradient_slots").default_value == "1");
  REQUIRE(key("train.recompute").type == "none | mlp | blocks");
  REQUIRE(key("parallel.processes").type == "integer or auto");
  REQUIRE(key("parallel.processes").default_value == "1");
  for (const Key& each : all_keys()) REQUIRE_FALSE(each.help.empty());
}

TEST_CASE("the keys are exactly those of the JSON") {
  Experiment experiment;
  experiment.data.sources[any_name];
  experiment.model.blocks[any_name];
  const nlohmann::json flat = to_complete_json(experiment).flatten();
  size_t leaves = 0;
  for (const auto& [pointer, value] : flat.items()) {
    const bool is_of_list = pointer.find("betas/") != std::string::npos ||
                            pointer.find("coefficients/") != std::string::npos;
    const bool is_empty = pointer == "/optimizer/weight_decay_of";  // where no group has its own
    if (!is_of_list && !is_empty) ++leaves;
  }
  // And the two lists of betas, the coefficients, and what is written only where it is set: a
  // window, a block's description and its settings, weight decay of six groups.
  REQUIRE(to_json(experiment)["model"]["attention"].count("window") == 0);
  REQUIRE(all_keys().size() == leaves + 3 + 3 + 6);
}

TEST_CASE("a path is known where it is a key or a section") {
  REQUIRE(is_known_path("train.z_loss.kind"));
  REQUIRE(is_known_path("train.z_loss"));
  REQUIRE(is_known_path("train"));
  REQUIRE_FALSE(is_known_path("train.z"));
  REQUIRE_FALSE(is_known_path("train.seed"));
  REQUIRE_FALSE(is_known_path(""));
  REQUIRE(is_known_path("data.sources.anything.weight"));
  REQUIRE_FALSE(is_known_path("data.sources.anything.wait"));
}

}  // namespace
}  // namespace forge::config

#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/config/check.h"
#include "core/config/experiment.h"
#include "core/config/explain.h"
#include "core/config/keys.h"
#include "tests/core/config/fixture.h"
#include "tests/support/catch.h"

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

using tests::ConfigFixture;
using tests::contains;
using Overrides = std::vector<std::string>;

/// Training of a model that says nothing of its vocabulary, on the section `data`.
std::string config_text(const std::string& data, const std::string& more = "") {
  return "name: T\n"
         "model: {hidden_size: 64, num_layers: 2, "
         "attention: {num_heads: 4}, mlp: {intermediate_size: 96}}\n"
         "data: {" +
         data + "}\n" + (more.empty() ? "train: {max_steps: 10}\n" : more);
}
std::string task_text(const std::string& keys, const std::string& more = "") {
  return config_text("source: task, task: {" + keys + "}", more);
}

std::string task_refusal(const std::string& text, const Overrides& overrides = {}) {
  const std::string error = ConfigFixture().error(text, overrides);
  INFO(error);
  REQUIRE(!error.empty());
  return error;
}
ResolvedConfig task_accepted(const std::string& text, const Overrides& overrides = {}) {
  return ConfigFixture().resolve(text, overrides);
}

/// A config of the task that gives it all sizes but one.
std::string with_sizes(const std::string& task, const std::string& but = "") {
  std::string keys = "name: " + task;
  for (const TaskSize& size : sizes_of(task)) {
    if (size.key != but && size.least > 0) keys += ", " + std::string(size.key) + ": 5";
  }
  return keys;
}

TEST_CASE("data.source task needs the name of one of the tasks") {
  const std::string none = task_refusal(config_text("source: task"));
  REQUIRE(contains(none, "data.source is task, and data.task.name names none"));
  REQUIRE(contains(none, "c.yaml:3:16"));
  REQUIRE(contains(none, "one of depo1, depo2, brevo1, brevo2, mano, lano, capo, copy"));
  const std::string wrong = task_refusal(task_text("name: manno, max_operators: 3"));
  REQUIRE(contains(wrong, "'data.task.name' must be one of depo1, depo2"));
  REQUIRE(contains(wrong, "not 'manno'"));
  REQUIRE(contains(wrong, "did you mean 'mano'"));
  REQUIRE(contains(wrong, "c.yaml:3"));
  REQUIRE(contains(task_refusal(task_text("name: copy, length: 5, variant: papers")),
                   "did you mean 'paper'"));
}

TEST_CASE("a misspelt source is named before the keys that would belong to it") {
  const std::string error =
      task_refusal(config_text("source: tsak, task: {name: copy, length: 5}"));
  REQUIRE(contains(error, "not 'tsak'"));
  REQUIRE(contains(error, "did you mean 'task'"));
}

TEST_CASE("keys are not held against a task that is not known") {
  const ConfigFixture fixture;
  fixture.files.add_config("p", "c", task_text("name: coppy, length: 5"));
  ResolveOptions options = tests::fixed_options();
  std::string problems;
  options.on_problem = [&](const Problem& problem) { problems += problem.error.what(); };
  resolve(fixture.files.project("p"), "c", options);
  INFO(problems);
  REQUIRE(contains(problems, "not 'coppy'"));
  REQUIRE_FALSE(contains(problems, "has no meaning"));
}

TEST_CASE("every task is accepted with its sizes and refused without one of them") {
  for (const std::string& task : task_names()) {
    INFO(task);
    const std::string more =
        task == "capo" ? "model.vocab_size: 2000\ntrain: {max_steps: 1}\n" : "";
    REQUIRE(task_accepted(task_text(with_sizes(task), more)).experiment.data.task.name == task);
    for (const TaskSize& size : sizes_of(task)) {
      if (size.least == 0) continue;
      const std::string key = "data.task." + std::string(size.key);
      const std::string error = task_refusal(task_text(with_sizes(task, size.key), more));
      REQUIRE(contains(error, "the task " + task + " needs " + key));
      REQUIRE(contains(error, "for example " + key + ": " + size.example));
      REQUIRE(contains(error, "c.yaml:3"));
    }
  }
}

TEST_CASE("a size below the least of its task is refused where it stands") {
  const std::string error = task_refusal(task_text("name: brevo1, max_nodes: 2"));
  REQUIRE(contains(error, "data.task.max_nodes 2 is less than 3, the least of the task brevo1"));
  REQUIRE(contains(error, "for example data.task.max_nodes: 110"));
  REQUIRE(contains(task_refusal(task_text("name: copy, length: -1")), "data.task.length"));
  REQUIRE(task_accepted(task_text("name: copy, length: 5")).experiment.data.task.scored_tokens ==
          0);
}

TEST_CASE("a key of another task is refused") {
  const std::string error = task_refusal(task_text("name: copy, length: 5, max_hops: 4"));
  REQUIRE(contains(error, "data.task.max_hops 4 has no meaning for the task copy"));
  REQUIRE(contains(error, "c.yaml:3"));
  REQUIRE(contains(task_refusal(task_text("name: depo1, max_nodes: 5, max_hops: 4, people: 9")),
                   "data.task.people 9 has no meaning for the task depo1"));
  REQUIRE(contains(task_refusal(task_text("name: copy, length: 5, grammar: g.json")),
                   "data.task.grammar g.json has no meaning for the task copy"));
  REQUIRE(contains(task_refusal(task_text("name: copy, length: 5, grammar_seed: 3")),
                   "data.task.grammar_seed 3 has no meaning for the task copy"));
}

TEST_CASE("a task's keys are refused where the data are no task") {
  for (const char* key : {"name: copy", "variant: code", "length: 5", "grammar_seed: 5"}) {
    const std::string error = task_refusal(config_text("task: {" + std::string(key) + "}"));
    INFO(error);
    REQUIRE(contains(error, "has no meaning where data.source is toy_stories"));
    REQUIRE(contains(error, "--set data.source=task"));
  }
}

TEST_CASE("another task takes back the keys that an earlier layer gave the first") {
  const ResolvedConfig resolved = task_accepted(task_text("name: depo1, max_nodes: 5, max_hops: 4"),
                                                {"data.task.name=copy", "data.task.length=7"});
  REQUIRE(resolved.experiment.data.task.max_nodes == 0);
  REQUIRE(resolved.experiment.data.task.max_hops == 0);
  REQUIRE(resolved.experiment.data.task.length == 7);
  const Origin& origin = resolved.origins.at("data.task.max_nodes");
  REQUIRE(origin.set_by.derived_from == "data.task.name");
  REQUIRE(origin.set_by.layer == command_line_layer);
  REQUIRE(origin.overrode.at(0).text == "5");
  REQUIRE(resolved.experiment.model.vocab_size == 9);
}

TEST_CASE("another source takes back the whole task and what followed from it") {
  const std::string text =
      task_text("name: lano, variant: code, grammar_seed: 8", "") + "model.vocab_size: 2000\n";
  for (const char* source : {"data.source=toy_stories", "data.path=a.txt"}) {
    const ConfigFixture fixture;
    fixture.files.folder.write("a.txt", "text");
    const ResolvedConfig resolved = fixture.resolve(text, {source});
    const Experiment& e = resolved.experiment;
    REQUIRE(e.data.task.name == "");
    REQUIRE(e.data.task.variant == TaskVariant::paper);
    REQUIRE(e.data.task.grammar_seed == 0);
    REQUIRE(e.tokenizer.kind == "byte_level_bpe");
    REQUIRE(resolved.origins.at("data.task.name").set_by.derived_from == "data.source");
    REQUIRE_NOTHROW(require_no_obstacles(resolved));
  }
}

TEST_CASE("the vocabulary follows from the task and says so") {
  const ResolvedConfig resolved =
      task_accepted(task_text("name: copy, length: 5"), {"data.task.length=20"});
  REQUIRE(resolved.experiment.model.vocab_size == 22);
  REQUIRE(resolved.experiment.tokenizer.vocab_size == 22);
  REQUIRE(resolved.experiment.tokenizer.kind == "none");
  const auto set_by = [&](const char* key) { return resolved.origins.at(key).set_by; };
  REQUIRE(set_by("model.vocab_size").text == "22");
  REQUIRE(set_by("model.vocab_size").derived_from == "data.task.name");
  REQUIRE(set_by("model.vocab_size").layer == config_layer);
  REQUIRE(set_by("tokenizer.vocab_size").derived_from == "model.vocab_size");
  REQUIRE(set_by("tokenizer.kind").derived_from == "data.task.name");
  REQUIRE(set_by("tokenizer.kind").text == "none");
  REQUIRE_NOTHROW(require_no_obstacles(resolved));
}

TEST_CASE("a vocabulary that was given is kept where the task's ids fit it") {
  const std::string text = task_text("name: copy, length: 20") + "model.vocab_size: ";
  const Experiment larger = task_accepted(text + "64\n").experiment;
  REQUIRE(larger.model.vocab_size == 64);
  REQUIRE(larger.tokenizer.vocab_size == 64);
  REQUIRE(task_accepted(text + "22\n").experiment.model.vocab_size == 22);
  const std::string error = task_refusal(text + "21\n");
  REQUIRE(contains(error, "model.vocab_size 21 is less than the ids of the task copy, 22"));
  REQUIRE(contains(error, "leave model.vocab_size out: it follows from the task"));
  REQUIRE(contains(error, "c.yaml"));
}

TEST_CASE("tokenizer.kind none is of tasks with ids of their own alone") {
  const auto obstacle = [](const std::string& data) {
    const ResolvedConfig resolved = task_accepted(
        config_text(data, "model.vocab_size: 2000\ntokenizer.kind: none\ntrain: {max_steps: 1}\n"));
    return tests::error_of([&] { require_no_obstacles(resolved); });
  };
  REQUIRE(contains(obstacle("source: toy_stories"),
                   "tokenizer.kind is none, but data.source toy_stories is text"));
  REQUIRE(
      contains(obstacle("source: task, task: {name: capo, people: 9}"), "tokenizer.kind is none"));
  REQUIRE(obstacle("source: task, task: {name: copy, length: 9}") == "");
}

TEST_CASE("Capo is text and keeps its tokenizer") {
  const ResolvedConfig resolved =
      task_accepted(task_text("name: capo, people: 9",
                              "model.vocab_size: 500\ntokenizer.vocab_size: 500\n"
                              "train: {max_steps: 1, document_mask: true}\ndata.rows: padded\n"));
  const Experiment& e = resolved.experiment;
  REQUIRE(e.tokenizer.kind == "byte_level_bpe");
  REQUIRE(e.tokenizer.vocab_size == 500);
  REQUIRE(e.train.document_mask);
  REQUIRE(e.data.rows == RowKind::padded);
  REQUIRE_FALSE(e.data.has_own_ids());
  REQUIRE(contains(task_refusal(task_text("name: capo, people: 9",
                                          "model.vocab_size: 501\n"
                                          "tokenizer.vocab_size: 500\ntrain: {max_steps: 1}\n")),
                   "differs from tokenizer.vocab_size 500"));
  REQUIRE(contains(task_refusal(task_text("name: capo, people: 9")), "model.vocab_size"));
}

TEST_CASE("what belongs to text is refused for a task with ids of its own") {
  const ConfigFixture fixture;
  fixture.files.folder.write("projects/p/t.json", "{}");
  const auto error = [&](const std::string& line) {
    return fixture.error(task_text("name: copy, length: 9") + line + "\n");
  };
  REQUIRE(
      contains(error("data.rows: padded"), "data.rows padded has no meaning for the task copy"));
  const std::string mask = error("train.document_mask: true");
  REQUIRE(contains(mask, "train.document_mask true has no meaning for the task copy"));
  REQUIRE(contains(mask, "rows are read as a whole"));
  REQUIRE(contains(mask, "c.yaml:5"));
  REQUIRE(contains(error("tokenizer.path: t.json"),
                   "tokenizer.path t.json has no meaning for the task copy"));
  REQUIRE(contains(error("data.documents: line"), "has no meaning where data.source is task"));
}

TEST_CASE("a task on the command line takes back what the config said of its text") {
  const ConfigFixture fixture;
  fixture.files.folder.write("projects/p/a.txt", "text");
  fixture.files.folder.write("projects/p/t.json", "{}");
  const ResolvedConfig resolved = fixture.resolve(
      config_text("source: text, path: a.txt, documents: line, rows: padded",
                  "train: {max_steps: 10, document_mask: true}\n"
                  "tokenizer: {kind: sentencepiece, path: t.json, vocab_size: 300}\n"),
      {"data.source=task", "data.task.name=copy", "data.task.length=9"});
  const Experiment& e = resolved.experiment;
  REQUIRE(e.data.path == "");
  REQUIRE(e.data.documents == DocumentKind::file);
  REQUIRE(e.data.rows == RowKind::packed);
  REQUIRE_FALSE(e.train.document_mask);
  REQUIRE(e.tokenizer.path == "");
  REQUIRE(e.tokenizer.kind == "none");
  REQUIRE(e.tokenizer.vocab_size == 11);
  REQUIRE(resolved.origins.at("data.path").set_by.derived_from == "data.source");
  REQUIRE_NOTHROW(require_no_obstacles(resolved));
}

TEST_CASE("data.path does not go with a task in one layer") {
  const ConfigFixture fixture;
  fixture.files.folder.write("projects/p/a.txt", "text");
  const std::string error =
      fixture.error(config_text("source: task, path: a.txt, task: {name: copy, length: 9}"));
  INFO(error);
  REQUIRE(contains(error, "data.path is given, but data.source is task"));
}

TEST_CASE("a grammar's path is meant from its project and made absolute") {
  const ConfigFixture fixture;
  const fs::path grammar = fixture.files.folder.write("projects/p/lano/g.json", "{}");
  const ResolvedConfig there = fixture.resolve(task_text("name: lano, grammar: lano/g.json"));
  REQUIRE(there.experiment.data.task.grammar == grammar.string());
  REQUIRE(there.experiment.model.vocab_size == 4);
  REQUIRE_NOTHROW(require_no_obstacles(there));

  const ResolvedConfig missing = fixture.resolve(task_text("name: lano, grammar: lano/h.json"));
  const std::string error = tests::error_of([&] { require_no_obstacles(missing); });
  INFO(error);
  REQUIRE(contains(error, "no file"));
  REQUIRE(contains(error, "h.json"));
  REQUIRE(contains(error, "relative to its project's folder"));
  REQUIRE(contains(fixture.error(task_text("name: lano"), {"data.task.grammar=h.json"}),
                   "relative to the current folder"));
}

TEST_CASE("rows of lano are as long as they can be scored") {
  const ConfigFixture fixture;
  const std::string lano = task_text("name: lano, grammar_seed: 5");
  CHECK_NOTHROW(fixture.resolve(lano, {"train.seq_len=16384", "model.vocab_size=2000"}));
  const std::string error = fixture.error(lano, {"train.seq_len=16385"});
  CHECK(contains(error, "train.seq_len 16385 is more than 16,384, the longest rows"));
  CHECK(contains(error, "set train.seq_len to 16384 or less"));
}

TEST_CASE("a grammar is either read or drawn from a seed") {
  const ConfigFixture fixture;
  fixture.files.folder.write("projects/p/g.json", "{}");
  REQUIRE(
      fixture.resolve(task_text("name: lano, grammar_seed: 5")).experiment.data.task.grammar_seed ==
      5);
  const std::string error =
      fixture.error(task_text("name: lano, grammar: g.json, grammar_seed: 5"));
  INFO(error);
  REQUIRE(contains(error, "data.task.grammar_seed 5 has no meaning where data.task.grammar names"));
  REQUIRE(contains(error, "leave data.task.grammar out to have a grammar drawn"));
  fixture.files.folder.write("g.json", "{}");
  const ResolvedConfig read =
      fixture.resolve(task_text("name: lano, grammar_seed: 5"), {"data.task.grammar=g.json"});
  REQUIRE(read.experiment.data.task.grammar_seed == 0);
}

}  // namespace
}  // namespace forge::config

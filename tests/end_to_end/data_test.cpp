#include <algorithm>

#include "core/base/files.h"
#include "core/data/rows/token_file.h"
#include "core/data/stories/toy_stories.h"
#include "core/worker/messages.h"
#include "tests/end_to_end/program.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

using nlohmann::json;

std::string stories(int count, data::Split split) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    // Every fourth is shorter than a row of 16 tokens.
    text += i % 4 == 0 ? "A cat sat." : data::toy_story(7, split, static_cast<uint64_t>(i));
    text += "\n<|endoftext|>\n";
  }
  return text;
}

/// forge with a cache of its own.
struct Forge : Program {
  Forge() { environment["FORGE_CACHE_DIR"] = (folder() / "cache").string(); }

  void put_tiny_stories() const {
    const std::string corpus = "cache/corpora/tinystories/TinyStories-";
    folder().write(corpus + "train.txt", stories(400, data::Split::training));
    folder().write(corpus + "valid.txt", stories(40, data::Split::evaluation));
  }
  Outcome succeed(const std::vector<std::string>& arguments) const {
    Outcome outcome = call(arguments);
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return outcome;
  }
  json read(std::vector<std::string> arguments) const {
    arguments.push_back("--json");
    return json::parse(succeed(arguments).out);
  }
  worker::Request request_of(const fs::path& run) const {
    return worker::request_from_line(read_file(run / "request.json"));
  }
  json last_evaluation(const fs::path& run) const {
    json found;
    for (const json& event : events(run)) {
      if (event.at("event") == "evaluation") found = event;
    }
    return found;
  }
};

std::vector<std::string> on_tiny_stories(std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"run", "train_llama", "--text", "tiny_stories"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return tiny(arguments, 4);
}

TEST_CASE("TinyStories that were not got are asked for by name") {
  const Forge forge;
  const Outcome outcome = forge.call(on_tiny_stories());
  INFO(outcome.err);
  CHECK(outcome.exit_code == 2);
  CHECK(contains(outcome.err, "TinyStories-train.txt"));
  CHECK(contains(outcome.err, "'forge data get tinystories' gets it"));
}

TEST_CASE("TinyStories train one story a row, a tenth of them, and pads are not scored") {
  const Forge forge;
  forge.put_tiny_stories();
  forge.succeed(on_tiny_stories());
  const fs::path run = forge.only_run();
  const worker::Request request = forge.request_of(run);
  const worker::TokenSource train = request.train_tokens.at(0);
  CHECK(train.rows == 40);
  CHECK(train.pad_id == 1);
  CHECK(data::TokenFile(train.path).documents() == 40);
  const worker::TokenSource evaluation = request.evaluation_tokens.at(0);
  CHECK(evaluation.rows == 4);  // the first train.eval_rows of 40
  const data::TokenFile tokens(evaluation.path);
  CHECK(tokens.documents() == 40);
  int64_t scored = 0;
  for (int64_t story = 0; story < 4; ++story) {
    scored += std::min<int64_t>(16, tokens.document(story).count) - 1;
  }
  CHECK(tokens.document(0).count < 16);
  CHECK(forge.last_evaluation(run).at("tokens") == scored);
}

TEST_CASE("TinyStories train in packed windows where that is asked for") {
  const Forge forge;
  forge.put_tiny_stories();
  forge.succeed(on_tiny_stories({"--set", "data.rows=packed"}));
  const fs::path run = forge.only_run();
  const worker::Request request = forge.request_of(run);
  CHECK_FALSE(request.train_tokens.at(0).pad_id.has_value());
  const data::TokenFile tokens(request.train_tokens.at(0).path);
  CHECK(tokens.documents() == 40);
  CHECK(request.train_tokens.at(0).rows == (tokens.size() - 1) / 16);
  CHECK(forge.last_evaluation(run).at("tokens") == 4 * 16);
}

TEST_CASE("a mixture trains and is evaluated and listed") {
  const Forge forge;
  const std::string text = forge.folder().write("web.txt", stories(100, data::Split::training));
  const std::vector<std::string> sources = {"--set",
                                            "data.sources.web.path=" + text,
                                            "--set",
                                            "data.sources.web.weight=3",
                                            "--set",
                                            "data.sources.toys.source=toy_stories"};
  std::vector<std::string> arguments = {"run", "train_llama"};
  arguments.insert(arguments.end(), sources.begin(), sources.end());
  forge.succeed(tiny(arguments));
  const fs::path run = forge.only_run();
  const worker::Request request = forge.request_of(run);
  REQUIRE(request.train_tokens.size() == 2);
  CHECK(request.train_tokens[0].name == "toys");
  CHECK(request.train_tokens[0].rows == 6);  // a quarter of 12 steps of 2
  CHECK(request.train_tokens[1].weight == 3);
  CHECK(request.evaluation_tokens.at(0).rows + request.evaluation_tokens.at(1).rows == 4);

  // With the threads of the run: which library multiplies depends on their number.
  const json evaluated = forge.read({"eval", run.filename().string(), "--threads", "1"});
  CHECK(evaluated.at("loss") == forge.last_evaluation(run).at("loss"));
  CHECK(evaluated.at("rows") == 4);

  const json listed = forge.read({"data", "ls"});
  const auto mixture = std::find_if(listed.begin(), listed.end(), [](const json& folder) {
    return folder.at("source") == "mixture";
  });
  REQUIRE(mixture != listed.end());
  CHECK(mixture->at("parts").size() == 2);
  const std::string name = mixture->at("name").get<std::string>();
  CHECK(forge.read({"data", "stats", name}).at("parts").at(1).at("weight") == 3);
  CHECK(contains(forge.succeed({"data", "stats", name}).out, "75.00 %"));
  const std::string part = mixture->at("parts").at(1).at("name").get<std::string>();
  CHECK(forge.read({"data", "stats", part}).at("documents").get<int>() > 0);
  CHECK(contains(forge.call({"data", "show", name}).err, part));

  // A source of weight 0 is none: the run is known already.
  arguments.insert(
      arguments.end(),
      {"--set", "data.sources.off.path=" + text, "--set", "data.sources.off.weight=0"});
  forge.succeed(tiny(arguments));
  CHECK(forge.read({"runs"}).size() == 1);
  std::vector<std::string> prepare = {"data", "prepare", "train_llama"};
  prepare.insert(prepare.end(), sources.begin(), sources.end());
  std::vector<std::string> tiny_prepare = tiny(prepare);
  tiny_prepare.resize(tiny_prepare.size() - 2);  // without --threads 1
  const json prepared = forge.read(tiny_prepare);
  CHECK(prepared.at("train").at(1).at("source") == "web");
  CHECK(prepared.at("train").at(1).at("path") == request.train_tokens[1].path);
}

using nlohmann::json;

/// A run of a playground config at a size of some hundred weights.
std::vector<std::string> tiny_task(const std::string& config, std::vector<std::string> sets) {
  std::vector<std::string> arguments = {"run", config, "-p", "playground", "--threads", "1"};
  for (const char* set : {"model.hidden_size=16",
                          "model.mlp.intermediate_size=32",
                          "model.num_layers=1",
                          "model.attention.num_heads=1",
                          "train.batch_size=4",
                          "train.max_steps=6",
                          "train.eval_every=3",
                          "train.eval_rows=4",
                          "train.eval_prompts=3"}) {
    sets.emplace_back(set);
  }
  for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
  return arguments;
}

json call(const Program& forge, std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  const Outcome outcome = forge.call(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return json::parse(outcome.out);
}

TEST_CASE("a task's scores are stored with each evaluation and found again by eval") {
  const Program forge;
  const json trained =
      call(forge, tiny_task("copy/rope_canon_1l_16d", {"data.task.length=6", "train.seq_len=14"}));
  const std::string id = trained[0].at("id");
  const json shown = call(forge, {"runs", "show", id});
  REQUIRE(shown.at("evaluations").size() == 2);
  for (const json& evaluation : shown.at("evaluations")) {
    REQUIRE(evaluation.at("scores").at("token_accuracy").at("count") == 4 * 6);
    REQUIRE(evaluation.at("scores").at("sequence_accuracy").at("count") == 4);
  }
  const json evaluated = call(forge, {"eval", id});
  REQUIRE(evaluated.at("scores") == shown.at("scores"));
  REQUIRE(evaluated.at("loss") == shown.at("eval_loss"));
  REQUIRE(contains(forge.call({"eval", id}).out, "sequence_accuracy"));
  const Outcome table = forge.call({"compare", "-p", "playground", "--table", "copy"});
  REQUIRE(table.exit_code == 0);
  REQUIRE(contains(table.out, "Whole copies"));
}

TEST_CASE("every task trains and brings its figures") {
  const Program forge;
  const std::vector<std::tuple<std::string, std::vector<std::string>, std::string>> tasks = {
      {"depo1/rope_abcd", {"data.task.max_nodes=4", "train.seq_len=64"}, "answer_accuracy.hop_1"},
      {"depo2/nope", {"data.task.max_nodes=3", "train.seq_len=96"}, "token_accuracy"},
      {"brevo1/nope_abcd", {"data.task.max_nodes=5", "train.seq_len=64"}, "answer_accuracy"},
      {"brevo2/rope", {"data.task.max_nodes=4", "train.seq_len=96"}, "answer_accuracy"},
      {"mano/rope", {"data.task.variant=code", "train.seq_len=32"}, "value_accuracy"},
      {"lano/rope", {"train.seq_len=300"}, "kl_divergence"},
      {"capo/nope_abcd",
       {"data.task.people=20",
        "train.seq_len=256",
        "model.vocab_size=400",
        "tokenizer.vocab_size=400"},
       "bits_per_parameter"}};
  for (const auto& [config, sets, score] : tasks) {
    INFO(config);
    const json trained = call(forge, tiny_task(config, sets));
    REQUIRE(trained[0].at("status") == "completed");
    const json& scores = trained[0].at("scores");
    INFO(scores.dump());
    REQUIRE(scores.at(score).at("count") > 0);
    if (config == "lano/rope") REQUIRE(scores.at("sentence_validity").at("count") == 3);
  }
}

TEST_CASE("the task is part of what a run is") {
  const Program forge;
  const auto id = [&](const std::string& length) {
    return call(forge,
                tiny_task(
                    "copy/rope_1l_16d",
                    {"data.task.length=" + length, "train.seq_len=14", "model.vocab_size=8"}))[0]
        .at("id")
        .get<std::string>();
  };
  const std::string six = id("6");
  REQUIRE(id("5") != six);
  REQUIRE(id("6") == six);
}

}  // namespace
}  // namespace forge::tests

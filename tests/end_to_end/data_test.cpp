#include <algorithm>

#include "core/base/fs.h"
#include "core/data/token_file.h"
#include "core/data/toy_stories.h"
#include "core/protocol/messages.h"
#include "tests/end_to_end/program.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"

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
  protocol::Request request_of(const fs::path& run) const {
    return protocol::request_from_line(read_file(run / "request.json"));
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
  const protocol::Request request = forge.request_of(run);
  const protocol::TokenSource train = request.train_tokens.at(0);
  CHECK(train.rows == 40);
  CHECK(train.pad_id == 1);
  CHECK(data::TokenFile(train.path).documents() == 40);
  const protocol::TokenSource evaluation = request.evaluation_tokens.at(0);
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
  const protocol::Request request = forge.request_of(run);
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
  const protocol::Request request = forge.request_of(run);
  REQUIRE(request.train_tokens.size() == 2);
  CHECK(request.train_tokens[0].name == "toys");
  CHECK(request.train_tokens[0].rows == 6);  // a quarter of 12 steps of 2
  CHECK(request.train_tokens[1].weight == 3);
  CHECK(request.evaluation_tokens.at(0).rows + request.evaluation_tokens.at(1).rows == 4);

  const json evaluated = forge.read({"eval", run.filename().string()});
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

}  // namespace
}  // namespace forge::tests

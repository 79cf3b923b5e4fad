#include <cmath>

#include "core/base/fs.h"
#include "tests/end_to_end/trained.h"
#include "tests/support/contains.h"

namespace forge::tests {
namespace {

using nlohmann::json;

double number(const json& values, const char* key) { return values.at(key).get<double>(); }

TEST_CASE("forge eval gives what training reported, at any batch size") {
  const Trained trained("train_canon_ac");
  const json run = trained.call({"runs"}).at(0);
  const json own = trained.call({"eval", trained.run});
  CHECK(number(own, "loss") == number(run, "eval_loss"));
  CHECK(number(own, "perplexity") == Approx(std::exp(number(own, "loss"))));
  CHECK(own.at("step") == 4);
  CHECK(own.at("tokens") == own.at("rows").get<int64_t>() * own.at("seq_len").get<int64_t>());
  const double bits = number(own, "loss") * number(own, "tokens") / std::log(2.0);
  CHECK(number(own, "bits_per_byte") == Approx(bits / number(own, "bytes")));
  for (const char* size : {"1", "3", "64"}) {
    const json other = trained.call({"eval", trained.run, "--batch-size", size});
    CHECK(std::abs(number(other, "loss") - number(own, "loss")) < 1e-6);
    CHECK(other.at("tokens") == own.at("tokens"));
  }
  const json exact = trained.call({"eval", trained.run, "--precision", "float64"});
  CHECK(std::abs(number(exact, "loss") - number(own, "loss")) < 1e-4);
  CHECK(exact.at("precision") == "float64");
}

TEST_CASE("a run and its export are the same on text, on tokens and on a config's rows") {
  const Trained trained("train_llama");
  const TemporaryFolder& folder = trained.forge.folder();
  folder.write("text.txt", "Once there was a cat. " + std::string(500, 'z') + "é\n");
  trained.call({"export-hf", trained.run, trained.path("model")});
  const json text = trained.call({"eval", trained.run, "--data", trained.path("text.txt")});
  CHECK(text.at("bytes") == 22 + 500 + 2 + 1);
  const json exported = trained.call({"eval",
                                      trained.path("model"),
                                      "--data",
                                      trained.path("text.txt"),
                                      "--seq-len",
                                      std::to_string(text.at("seq_len").get<int>())});
  CHECK(std::abs(number(exported, "loss") - number(text, "loss")) < 1e-6);
  CHECK(exported.at("tokens") == text.at("tokens"));
  // Rows of other lengths see other contexts, but score every token once.
  const json shorter =
      trained.call({"eval", trained.run, "--data", trained.path("text.txt"), "--seq-len", "5"});
  CHECK(shorter.at("tokens") == text.at("tokens"));
  CHECK(shorter.at("bytes") == text.at("bytes"));
}

TEST_CASE("forge eval says what it cannot use") {
  const Trained trained("train_llama");
  const auto error = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "eval");
    const Outcome outcome = trained.forge.call(arguments);
    CHECK(outcome.exit_code != 0);
    CHECK(outcome.out.empty());
    return outcome.err;
  };
  trained.call({"export-hf", trained.run, trained.path("model")});
  CHECK(contains(error({trained.path("model")}), "--data FILE"));
  CHECK(contains(error({trained.path("model"), "--step", "4"}), "holds one model and no step 4"));
  CHECK(contains(error({trained.run, "--step", "3"}), "has no checkpoint of step 3"));
  CHECK(contains(error({trained.run, "--data", "no/such.txt"}), "there is no file or folder"));
  CHECK(contains(error({trained.run, "--data", "train_lama"}), "train_llama"));
  CHECK(contains(error({trained.run, "--data", "canon_ac"}), "has no data"));
  CHECK(contains(error({"nothing"}), "'forge runs' lists them"));
}

}  // namespace
}  // namespace forge::tests

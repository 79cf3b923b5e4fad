// forge model, and options of the architecture on their way from a config to the worker.
#include "tests/end_to_end/program.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

using nlohmann::json;

json summary(const Program& forge, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "model");
  arguments.push_back("--json");
  const Outcome outcome = forge.call(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return json::parse(outcome.out);
}

TEST_CASE("forge model counts a model that trains and one that does not") {
  const Program forge;
  const json trained = summary(forge, {"train_canon_ac", "--set", "profile=full"});
  const json model = summary(forge, {"canon_ac"});
  REQUIRE(trained.at("parameters").at("total") == 4'442'368);
  REQUIRE(trained.at("parameters") == model.at("parameters"));
  REQUIRE(trained.at("batch_size") == 32);
  const json longer = summary(forge, {"train_canon_ac", "--batch-size", "64", "--seq-len", "256"});
  REQUIRE(longer.at("bytes").at("activations") == trained.at("bytes").at("activations"));
  const Outcome table = forge.call({"model", "train_canon_ac", "--set", "model.canon.set="});
  REQUIRE(table.exit_code == 0);
  REQUIRE(table.out.find("  total      4,434,176  100.0 %") != std::string::npos);
  REQUIRE(table.out.find("  canon_a ") == std::string::npos);
}

TEST_CASE("forge model refuses sizes and options that make no sense") {
  const Program forge;
  const auto error = [&](const std::vector<std::string>& arguments) {
    const Outcome outcome = forge.call(arguments);
    REQUIRE(outcome.exit_code == 2);
    REQUIRE(outcome.out.empty());
    return outcome.err;
  };
  REQUIRE(error({"model", "4M", "--batch-size", "0"}).find("--batch-size") != std::string::npos);
  REQUIRE(error({"model", "4M", "--set", "model.canon.kernel=3"})
              .find("has no meaning where model.canon.set is empty") != std::string::npos);
  REQUIRE(error({"model", "nope_4M", "--set", "model.position.rope_dim=8"})
              .find("has no meaning where model.position.kind is nope") != std::string::npos);
}

double last_loss(const Program& forge, const std::vector<std::string>& overrides) {
  std::vector<std::string> arguments = tiny({"run", "train_canon_ac"}, 4);
  for (const std::string& each : overrides) arguments.insert(arguments.end(), {"--set", each});
  arguments.push_back("--json");
  const Outcome outcome = forge.call(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return json::parse(outcome.out).at(0).at("eval_loss").get<double>();
}

TEST_CASE("a document mask reaches the worker and changes what is learned") {
  const Program whole, divided;
  // Rows long enough for a story to end in them.
  const double loss = last_loss(whole, {"train.seq_len=512"});
  REQUIRE(loss > 0);
  const double masked = last_loss(divided, {"train.seq_len=512", "train.document_mask=true"});
  REQUIRE(masked > 0);
  REQUIRE(masked != loss);
}

TEST_CASE("every option of the architecture trains") {
  const Program forge;
  REQUIRE(last_loss(forge,
                    {"model.num_kv_heads=1",
                     "model.position.rope_dim=4",
                     "model.position.pairing=lingua",
                     "model.qk_norm=full",
                     "model.canon.set=ABCD",
                     "model.canon.kernel=3",
                     "model.canon.activation=silu",
                     "model.rms_norm_rounding=lingua",
                     "model.tie_embeddings=true",
                     "model.init=lingua",
                     "model.init_std_factor=current_depth",
                     "train.z_loss.kind=lingua_code",
                     "train.document_mask=true",
                     "schedule.type=wsd"}) > 0);
}

}  // namespace
}  // namespace forge::tests

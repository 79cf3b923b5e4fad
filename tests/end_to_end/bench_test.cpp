#include "core/base/fs.h"
#include "tests/end_to_end/program.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"

namespace forge::tests {
namespace {

using nlohmann::json;

std::vector<std::string> tiny_bench(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "bench");
  arguments.insert(arguments.end(), {"--windows", "2", "--steps", "2", "-p", "canon"});
  return tiny(arguments);
}

TEST_CASE("forge bench measures configs in turns, stores and lists what it found") {
  const Program forge;
  const Outcome measured = forge.call(tiny_bench({"train_llama", "train_baseline", "--json"}));
  INFO(measured.err);
  REQUIRE(measured.exit_code == 0);
  CHECK(contains(measured.err, "window 1 of 2, train_baseline"));
  const json records = json::parse(measured.out).at("benchmarks");
  REQUIRE(records.size() == 2);
  CHECK(records[0].at("config") == "train_llama");
  CHECK(records[1].at("config") == "train_baseline");
  for (const json& record : records) {
    CHECK(record.at("windows").size() == 2);
    CHECK(record.at("window_steps") == 2);
    CHECK(record.at("tokens_per_step") == 32);
    CHECK(record.at("project") == "projects/canon");
    CHECK(record.at("call") == records[0].at("call"));
    CHECK(record.at("call").at("configs") == json({"train_llama", "train_baseline"}));
    CHECK(contains(record.at("call").at("command"), "forge bench train_llama train_baseline"));
    CHECK(record.at("device").at("threads") == 1);
    CHECK(record.at("device").at("libraries").contains("torch"));
    CHECK(record.at("model").at("hidden_size") == 16);
    CHECK(record.at("mfu").get<double>() > 0);
    CHECK(record.at("mfu").get<double>() < 1);
    const auto id = record.at("id").get<std::string>();
    CHECK(json::parse(read_file(forge.runs_dir() / "benchmarks" / (id + ".json"))) == record);
  }
  CHECK(records[1].at("ratio").at("config") == "train_llama");

  const Outcome listed = forge.call({"bench", "list"});
  CHECK(listed.exit_code == 0);
  CHECK(contains(listed.out, "train_baseline"));
  CHECK(json::parse(forge.call({"bench", "list", "--json"}).out).at("benchmarks").size() == 2);
  // Measurements are no runs.
  CHECK(json::parse(forge.call({"runs", "--json"}).out).empty());
  CHECK(contains(forge.call({"store", "reindex"}).out, "2 benchmarks"));
}

TEST_CASE("forge bench prints a table and compares with the first config") {
  const Program forge;
  const Outcome measured = forge.call(tiny_bench({"train_llama", "train_canon_a"}));
  INFO(measured.err);
  REQUIRE(measured.exit_code == 0);
  CHECK(contains(measured.out, "Tok/s"));
  CHECK(contains(measured.out, "vs train_llama"));
  CHECK(contains(measured.out, "1 thread, float32, ceiling"));
  CHECK(contains(measured.out, "torch "));
}

TEST_CASE("a table takes its speeds from measurements of its configs as they are") {
  Program forge;
  const TemporaryFolder folder;
  const std::filesystem::path workspace = make_tiny_workspace(folder);
  forge.working_directory = workspace / "projects" / "canon";
  const std::filesystem::path table = forge.working_directory / "tables" / "positional.yaml";
  write_file_atomic(table, read_file(table) + "\ntokens_per_second: benchmark\n");
  const auto rows = [&] {
    const Outcome outcome = forge.call({"compare", "--table", "positional", "--json"});
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return json::parse(outcome.out).at("rows");
  };
  const auto measure = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "bench");
    arguments.insert(arguments.end(), {"--windows", "1", "--steps", "1", "--threads", "1"});
    const Outcome outcome = forge.call(arguments);
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
  };
  CHECK(rows()[0].at("benchmark").is_null());
  measure({"train_llama", "train_nope"});
  CHECK(rows()[0].at("tokens_per_second").get<double>() > 0);
  CHECK(rows()[2].at("benchmark").at("call") == rows()[0].at("benchmark").at("call"));
  CHECK(rows()[1].at("benchmark").is_null());
  CHECK_FALSE(rows()[2].at("throughput_change").is_null());
  // A model that is not the config's must not stand under its name.
  measure({"train_baseline", "--set", "model.hidden_size=8"});
  CHECK(rows()[1].at("benchmark").is_null());
  measure({"train_baseline"});
  CHECK(contains(rows()[1].at("benchmark").at("otherwise"), "measured in another call"));
  CHECK(contains(forge.call({"compare", "--table", "positional"}).out, "forge bench on 20"));
}

TEST_CASE("forge bench says what it cannot do") {
  const Program forge;
  const auto error = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "bench");
    const Outcome outcome = forge.call(arguments);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.out.empty());
    return outcome.err;
  };
  CHECK(contains(error({"train_lama", "-p", "canon"}), "train_llama"));
  CHECK(contains(error({"train_llama", "--windows", "0"}), "--windows"));
  CHECK(contains(error({"train_llama", "--steps", "-1"}), "--steps"));
  CHECK(contains(error({"train_llama", "list"}), "'train_llama' is in the way of 'list'"));
  CHECK(contains(error({"ops", "swiglo"}), "no operation 'swiglo'"));
  CHECK(contains(error({"ops", "--size", "huge"}), "no sizes 'huge'"));
  CHECK(contains(error({"ops", "--precision", "float7"}), "float32"));
  CHECK(contains(forge.call({"bench", "list"}).err, "no benchmarks in"));
  CHECK(contains(forge.call({"bench", "--help"}).out, "forge bench train_llama train_baseline"));
}

TEST_CASE("forge bench ops measures the worker's operations and stores them") {
  const Program forge;
  const Outcome measured =
      forge.call({"bench", "ops", "adamw", "--size", "4m", "--threads", "1", "--json"});
  INFO(measured.err);
  REQUIRE(measured.exit_code == 0);
  const json record = json::parse(measured.out).at("benchmarks").at(0);
  CHECK(record.at("kind") == "operations");
  CHECK(record.at("operations").at(0).at("operation") == "adamw");
  CHECK(record.at("ceilings").contains("memory"));
  CHECK(contains(forge.call({"bench", "list"}).out, "1 operations"));
}

}  // namespace
}  // namespace forge::tests

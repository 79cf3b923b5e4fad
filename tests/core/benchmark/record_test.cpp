#include "core/benchmark/record.h"

#include "core/base/error.h"
#include "core/model/arithmetic.h"
#include "tests/core/benchmark/maker.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/support.h"

namespace forge::benchmark {
namespace {

using namespace tests;
using nlohmann::json;

config::Experiment small_experiment() {
  config::Experiment experiment;
  experiment.model.vocab_size = 100;
  experiment.model.hidden_size = 32;
  experiment.model.intermediate_size = 64;
  experiment.model.num_layers = 2;
  experiment.model.num_heads = experiment.model.num_kv_heads = 2;
  experiment.model.head_dim = 16;
  experiment.train.batch_size = 4;
  experiment.train.seq_len = 16;
  return experiment;
}

Measurement measured(const std::vector<double>& seconds, double ceiling) {
  Measurement measurement;
  measurement.hello = {1, "libtorch", "0.1.0", 3};
  measurement.environment = {"cpu", "Test CPU", 2, 1 << 30, {"cpu"}, {{"torch", "1.13.1"}}};
  measurement.ready = {10, 64};
  for (const double time : seconds) measurement.windows.push_back({10, time});
  measurement.result = {
      {"parts", {{"data", 0.01}, {"forward", 0.02}, {"backward", 0.04}, {"optimizer", 0.03}}},
      {"peak_memory_bytes", 12345},
      {"peak_memory", "tensors"},
      {"peak_resident_bytes", 54321},
      {"ceiling", {{"flops", ceiling}, {"how", "a product"}}}};
  return measurement;
}

std::vector<Record> two_records() {
  const json experiment = config::to_json(small_experiment());
  Call call;
  call.id = "call";
  call.created = "2026-11-21T10:00:00.000Z";
  call.configs = {"a", "b"};
  return make_records(call,
                      {{"projects/p", "a", experiment}, {"projects/p", "b", experiment}},
                      {measured({1, 2, 4}, 1e9), measured({2, 4, 8}, 2e9)});
}

TEST_CASE("a record holds what follows from the windows", "[benchmark]") {
  const std::vector<Record> records = two_records();
  const Record& a = records[0];
  REQUIRE(a.windows == std::vector<double>{640, 320, 160});
  REQUIRE(a.tokens_per_second == 320);
  REQUIRE(a.step_seconds == Approx(0.2));
  REQUIRE(a.spread == Approx((480.0 - 240.0) / 2 / 320));
  REQUIRE(a.parts->backward == 0.04);
  REQUIRE(a.peak_memory_bytes == 12345);
  REQUIRE(a.device.numerics_version == 3);
  REQUIRE(a.train.at("seq_len") == 16);
  REQUIRE(a.train.at("optimizer") == "adamw");
  REQUIRE_FALSE(a.train.contains("max_steps"));
  REQUIRE(a.precision == "float32");
  REQUIRE_FALSE(a.ratio);
}

TEST_CASE("the utilisation is taken against the highest ceiling of the call", "[benchmark]") {
  const std::vector<Record> records = two_records();
  const double flops = model::flops_per_token(small_experiment().model, 16).total();
  REQUIRE(records[0].flops_per_token == flops);
  REQUIRE(records[0].ceiling->flops == 2e9);
  REQUIRE(*records[0].mfu == Approx(flops * 320 / 2e9));
  REQUIRE(*records[1].mfu == Approx(flops * 160 / 2e9));
}

TEST_CASE("speed is compared with the first config window by window", "[benchmark]") {
  const Record b = two_records()[1];
  REQUIRE(b.ratio);
  REQUIRE(b.ratio->config == "a");
  REQUIRE(b.ratio->median == 0.5);
  REQUIRE(b.ratio->spread == 0);  // though both slowed down by four
}

TEST_CASE("a worker's result without a number is refused", "[benchmark]") {
  const json experiment = config::to_json(small_experiment());
  Measurement lacking = measured({1}, 1e9);
  lacking.result["parts"].erase("forward");
  const std::string error = error_of([&] {
    make_records({}, {{"p", "a", experiment}}, {lacking});
  });
  REQUIRE(contains(error, "the worker's result"));
  REQUIRE(contains(error, "forward"));
  lacking = measured({1}, 1e9);
  lacking.result.erase("ceiling");
  lacking.result.erase("parts");
  const Record record = make_records({}, {{"p", "a", experiment}}, {lacking})[0];
  REQUIRE_FALSE(record.mfu);
  REQUIRE_FALSE(record.parts);
}

TEST_CASE("a record reads back from its JSON as it was written", "[benchmark]") {
  for (const Record& record : two_records()) {
    const json written = to_json(record);
    REQUIRE(to_json(record_from_json(written)) == written);
    REQUIRE(written.at("kind") == "training");
    REQUIRE_FALSE(written.contains("operations"));
  }
  Record operations;
  operations.kind = Kind::operations;
  operations.operations = {{{"operation", "swiglu"}, {"seconds", 0.5}}};
  const json written = to_json(operations);
  REQUIRE(to_json(record_from_json(written)) == written);
  REQUIRE_FALSE(written.contains("windows"));
}

TEST_CASE("JSON that is no record is refused with what is wrong", "[benchmark]") {
  json broken = to_json(made_record("a", 1, 1000));
  REQUIRE(contains(error_of([&] { record_from_json(json::array()); }), "a JSON object"));
  broken["windows"] = "fast";
  REQUIRE(contains(error_of([&] { record_from_json(broken); }), "'windows'"));
  broken["kind"] = "traning";
  REQUIRE(contains(error_of([&] { record_from_json(broken); }), "training"));
}

TEST_CASE("the keys that decide the speed are those of a step", "[benchmark]") {
  config::Experiment one = small_experiment();
  config::Experiment other = one;
  other.train.max_steps = 7;
  other.train.eval_every = 3;
  other.optimizer.lr = 0.5;
  REQUIRE(speed_keys(config::to_json(one)) == speed_keys(config::to_json(other)));
  other.train.batch_size = 5;
  REQUIRE(speed_keys(config::to_json(one)) != speed_keys(config::to_json(other)));
}

TEST_CASE("two calls of one moment have different names", "[benchmark]") {
  const std::string now = "2026-11-21T16:45:12.345Z";
  REQUIRE(new_call_id(now).substr(0, 17) == "20261121T164512Z-");
  REQUIRE(new_call_id(now) != new_call_id(now));
}

}  // namespace
}  // namespace forge::benchmark

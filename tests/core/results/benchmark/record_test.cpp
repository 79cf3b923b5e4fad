#include <cmath>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/model/cost.h"
#include "core/results/benchmark/benchmark.h"
#include "tests/core/results/benchmark/maker.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::benchmark {
namespace {

using namespace tests;
using nlohmann::json;

config::Experiment small_experiment() {
  config::Experiment experiment;
  experiment.model.vocab_size = 100;
  experiment.model.hidden_size = 32;
  experiment.model.mlp.intermediate_size = 64;
  experiment.model.num_layers = 2;
  experiment.model.attention.num_heads = experiment.model.attention.num_kv_heads = 2;
  experiment.model.attention.head_dim = 16;
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
      {"start_peak_memory_bytes", 12347},
      {"peak_memory", "tensors"},
      {"peak_resident_bytes", 54321},
      {"ceiling", {{"flops", ceiling}, {"how", "a product"}}}};
  return measurement;
}

std::vector<Record> two_records() {
  const json experiment = config::to_json(small_experiment());
  BenchInvocation call;
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
  REQUIRE(a.start_peak_memory_bytes == 12347);
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

TEST_CASE("of several processes a record holds what their exchange costs", "[benchmark]") {
  Measurement by_two = measured({1}, 1e9);
  by_two.processes = 2;
  by_two.result["exchange"] = {{"alone", 0.5}, {"visible", 0.125}};
  const json experiment = config::to_json(small_experiment());
  const MeasuredConfig config = {"p", "a", experiment};
  const std::vector<Record> records =
      make_records({}, {config, config}, {by_two, measured({1}, 3e9)});
  const Record& record = records[0];
  REQUIRE(record.processes == 2);
  REQUIRE(record.exchange->hidden() == 0.75);
  REQUIRE(*record.mfu == Approx(record.flops_per_token * 640 / 1e9));
  REQUIRE(*records[1].mfu == Approx(record.flops_per_token * 640 / 3e9));
  REQUIRE(to_json(record).at("processes") == 2);
  REQUIRE(record_from_json(to_json(record)).exchange->visible == 0.125);
  REQUIRE_FALSE(record_from_json(to_json(record)).exchange->waiting);  // older workers do not say
  by_two.result["exchange"]["waiting"] = 0.25;
  REQUIRE(*make_records({}, {config}, {by_two})[0].exchange->waiting == 0.25);
  StepExchange exchange;
  exchange.alone = 0.5;
  exchange.visible = 0.75;
  REQUIRE(exchange.hidden() == 0);  // it slows down the computation
  exchange.visible = -0.01;
  REQUIRE(exchange.hidden() == 1);  // within what windows differ by
}

TEST_CASE("a lower clock in steps with the exchange has its part of what they are longer by",
          "[benchmark]") {
  Measurement by_two = measured({1}, 1e9);
  by_two.processes = 2;
  by_two.result["exchange"] = {
      {"alone", 0.5}, {"visible", 0.125}, {"clock", 1.5e9}, {"clock_without", 2e9}};
  const json experiment = config::to_json(small_experiment());
  const Record record = make_records({}, {{"p", "a", experiment}}, {by_two})[0];
  StepExchange exchange = *record_from_json(to_json(record)).exchange;
  REQUIRE(exchange.of_lower_clock(2) == 0.5);
  exchange.clock = 2.5e9;
  REQUIRE(exchange.of_lower_clock(2) == 0);
  exchange.clock_without.reset();  // on a CPU
  REQUIRE(exchange.of_lower_clock(2) == 0);
}

TEST_CASE("a worker's result without a number is refused", "[benchmark]") {
  const json experiment = config::to_json(small_experiment());
  Measurement missing = measured({1}, 1e9);
  missing.result["parts"].erase("forward");
  const std::string error = error_of([&] {
    make_records({}, {{"p", "a", experiment}}, {missing});
  });
  REQUIRE(contains(error, "the worker's result"));
  REQUIRE(contains(error, "forward"));
  missing = measured({1}, 1e9);
  missing.result.erase("ceiling");
  missing.result.erase("parts");
  const Record record = make_records({}, {{"p", "a", experiment}}, {missing})[0];
  REQUIRE_FALSE(record.mfu);
  REQUIRE_FALSE(record.parts);
}

TEST_CASE("numbers of a worker's result that cannot be are refused", "[benchmark][plausible]") {
  const json experiment = config::to_json(small_experiment());
  const auto fault = [&](const char* place, const json& value) {
    Measurement wrong = measured({1}, 1e9);
    wrong.result["exchange"] = {
        {"alone", 0.5}, {"visible", -0.01}, {"clock", 1.5e9}, {"clock_without", 1.6e9}};
    wrong.result[json::json_pointer(place)] = value;
    return error_of([&] { make_records({}, {{"p", "a", experiment}}, {wrong}); });
  };
  CHECK(fault("/ceiling/flops", 1e9).empty());
  for (const char* part : {"data", "forward", "backward", "optimizer"}) {
    CAPTURE(part);
    const std::string name = std::string("parts.") + part;
    CHECK(contains(fault(("/parts/" + std::string(part)).c_str(), "nan"),
                   "'" + name + "' is no number of seconds: nan"));
  }
  CHECK(contains(fault("/parts/data", -1), "'parts.data' is negative"));
  CHECK(contains(fault("/exchange/alone", "inf"), "'exchange.alone' is no number of seconds"));
  CHECK(contains(fault("/exchange/visible", "nan"), "'exchange.visible' is no number of seconds"));
  CHECK(contains(fault("/exchange/waiting", "inf"), "'exchange.waiting' is no number of seconds"));
  CHECK(contains(fault("/exchange/clock", "inf"), "'exchange.clock' is no finite number: inf"));
  CHECK(contains(fault("/exchange/clock_without", 0), "'exchange.clock_without' is impossible: 0"));
  for (const json& flops : {json(0), json(1e-300), json(-1)})
    CHECK(contains(fault("/ceiling/flops", flops), "'ceiling.flops' is impossible"));
  CHECK(contains(fault("/ceiling/flops", "inf"), "'ceiling.flops' is no finite number: inf"));
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

TEST_CASE("other settings that may decide the speed are recorded, and where files are is not",
          "[benchmark]") {
  config::Experiment experiment = small_experiment();
  experiment.data.path = "/home/someone/texts";
  const json settings = speed_settings(config::to_json(experiment));
  REQUIRE(settings.at("optimizer").contains("weight_decay"));
  REQUIRE(settings.at("data").contains("rows"));
  REQUIRE_FALSE(settings.at("optimizer").contains("lr"));
  REQUIRE_FALSE(settings.contains("train"));
  REQUIRE_FALSE(contains(settings.dump(), "someone"));
  experiment.seed = 7;
  experiment.data.order_seed = 8;
  experiment.profile = "other";
  experiment.schedule.warmup_steps = 9;
  REQUIRE(speed_settings(config::to_json(experiment)) == settings);
}

TEST_CASE("two calls of one moment have different names", "[benchmark]") {
  const std::string now = "2026-11-21T16:45:12.345Z";
  REQUIRE(new_call_id(now).substr(0, 17) == "20261121T164512Z-");
  REQUIRE(new_call_id(now) != new_call_id(now));
}

using namespace tests;

TEST_CASE("a measurement is a file named by time and config and never replaced", "[benchmark]") {
  const TemporaryFolder folder;
  Record first = made_record("train_x", 21, 1000);
  Record second = first;
  REQUIRE(write_record(folder.path(), first).filename() == "20261121T100000Z-train_x.json");
  REQUIRE(write_record(folder.path(), second).filename() == "20261121T100000Z-train_x-2.json");
  REQUIRE(second.id == "20261121T100000Z-train_x-2");
  Record operations;
  operations.kind = Kind::operations;
  operations.call = first.call;
  write_record(folder.path(), operations);
  Record nested = made_record("small/train_x", 21, 1000);
  write_record(folder.path(), nested);
  std::vector<std::string> names;
  for (const auto& file : list_records(folder.path())) {
    names.push_back(file.stem().string());
    REQUIRE(read_record(file).id == names.back());
  }
  REQUIRE(names == std::vector<std::string>{"20261121T100000Z-ops",
                                            "20261121T100000Z-small-train_x",
                                            "20261121T100000Z-train_x",
                                            "20261121T100000Z-train_x-2"});
}

TEST_CASE("a measurement of a config with a long name is stored", "[benchmark]") {
  const TemporaryFolder folder;
  std::string name = "x";
  for (int i = 0; i < 120; ++i) name += "\u00e9";
  Record record = made_record(name, 21, 1000);
  const fs::path file = write_record(folder.path(), record);
  REQUIRE(record.id.size() < 250);
  REQUIRE(record.id.substr(record.id.size() - 2) == "\u00e9");
  REQUIRE(read_record(file).config == name);
}

TEST_CASE("a file that is no measurement is refused by name", "[benchmark]") {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& text) {
    const auto file = folder.write("benchmarks/x.json", text);
    return error_of([&] { read_record(file); });
  };
  REQUIRE(contains(error("{"), "x.json' is no benchmark"));
  REQUIRE(contains(error("{}"), "'id'"));
  REQUIRE(contains(error(to_json(made_record("a", 1, 1)).dump()), "calls itself '2026-11-01-a'"));
}

TEST_CASE("a measurement whose numbers are not those of its windows is refused", "[benchmark]") {
  const TemporaryFolder folder;
  Record record = made_record("train_x", 21, 1000);
  const fs::path file = write_record(folder.path(), record);
  const json written = json::parse(read_file(file));
  const auto error = [&](const char* key, const json& value) {
    json edited = written;
    edited[key] = value;
    write_file_atomic(file, edited.dump());
    return error_of([&] { read_record(file); });
  };
  CHECK(read_record(file).tokens_per_second == 1000);
  // What listings read of the settings is what it should be.
  const nlohmann::json train = nlohmann::json::parse(read_file(file)).at("train");
  for (const char* key : {"batch_size", "seq_len"}) {
    for (const nlohmann::json& wrong :
         {nlohmann::json("8"), nlohmann::json(), nlohmann::json(0), nlohmann::json::array()}) {
      nlohmann::json other = train;
      other[key] = wrong;
      CHECK(contains(error("train", other), std::string("train.") + key + " is no number"));
    }
  }
  CHECK(contains(error("train", 5), "is no benchmark"));
  const std::string fast = error("tokens_per_second", 9e9);
  CHECK(contains(fast, file.string() + "' is no benchmark"));
  CHECK(contains(fast, "tokens_per_second is 9000000000.0, and by its windows 1000.0"));
  CHECK(contains(error("windows", {2000, 1, 2}), "tokens_per_second is 1000"));
  CHECK(contains(error("windows", json::array()), "tokens_per_second is 1000"));
  CHECK(contains(error("spread", 0.001), "spread is 0.001, and by its windows 0.005"));
  CHECK(contains(error("step_seconds", 1), "step_seconds is 1.0, and by its windows 16.384"));
}

TEST_CASE("without measurements there are none to list", "[benchmark]") {
  const TemporaryFolder folder;
  REQUIRE(list_records(folder.path()).empty());
  REQUIRE(list_records(folder / "nothing").empty());
  folder.write("benchmarks/.json", "{}");
  folder.write("benchmarks/notes.txt", "");
  folder.write("benchmarks/.aside.json", "{}");
  REQUIRE(list_records(folder.path()).empty());
}

TEST_CASE("a median lies between the values in order", "[benchmark]") {
  const std::vector<double> values = {5, 1, 4, 2, 3};
  REQUIRE(median(values) == 3);
  REQUIRE(median({1, 2}) == 1.5);
  REQUIRE(median({7}) == 7);
  REQUIRE(std::isnan(median({})));
}

TEST_CASE("the spread is half the middle half of the windows", "[benchmark]") {
  REQUIRE(spread({98, 100, 99, 102, 101}) == Approx(1.0 / 100));
  // One slow window does not move it.
  REQUIRE(spread({10, 100, 99, 102, 101}) == Approx(1.0 / 100));
  REQUIRE(spread({100, 100, 100}) == 0);
  REQUIRE(spread({100}) == 0);
  REQUIRE(spread({}) == 0);
}

TEST_CASE("ratios are taken window by window", "[benchmark]") {
  // Both slow down by half, the ratio does not.
  REQUIRE(ratios({90, 45}, {100, 50}) == std::vector<double>{0.9, 0.9});
  REQUIRE(ratios({90, 45, 30}, {100}) == std::vector<double>{0.9});
  REQUIRE(ratios({}, {1}).empty());
}

}  // namespace
}  // namespace forge::benchmark

#include "tests/support/torch_catch.h"

#include "backends/libtorch/worker/jobs.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "backends/libtorch/worker/bench.h"
#include "backends/libtorch/worker/trainer.h"
#include "backends/libtorch/worker/weights.h"
#include "core/config/experiment.h"
#include "tests/backends/libtorch/small_models.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::tests {
namespace {

config::Experiment small_experiment() {
  config::Experiment experiment;
  experiment.model = small_model("ABCD", model::PositionKind::rope);
  experiment.train.batch_size = 3;
  experiment.train.seq_len = 300;
  experiment.train.max_steps = 5;
  return experiment;
}

/// The events that an action sends, but for signs of life.
template <class Action>
std::vector<worker::Event> events_of(Action&& action) {
  const TemporaryFolder folder;
  const std::string log = (folder / "lines").string();
  const int fd = ::open(log.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0666);
  action(libtorch::EventWriter(fd));
  ::close(fd);
  std::vector<worker::Event> events;
  std::ifstream file(log);
  for (std::string line; std::getline(file, line);) {
    worker::Event event = worker::event_from_line(line);
    if (!std::holds_alternative<worker::Progress>(event)) events.push_back(std::move(event));
  }
  return events;
}

std::vector<worker::Event> bench(const config::Experiment& experiment, const std::string& input) {
  worker::Request request;
  request.job = worker::Job::bench;
  request.experiment = config::to_json(experiment);
  request.window_steps = 2;
  std::istringstream lines(input);
  return events_of([&](const libtorch::EventWriter& events) {
    libtorch::bench(request, at::Device("cpu"), events, lines);
  });
}

TEST_CASE("a bench is ready, measures the windows asked for and ends with numbers",
          "[worker][bench]") {
  config::Experiment experiment = small_experiment();
  experiment.train.document_mask = true;
  const auto events = bench(experiment, "{\"window\":2}\n{\"window\":5}\n");
  REQUIRE(events.size() == 4);
  const auto ready = std::get<worker::Ready>(events[0]);
  REQUIRE(ready.window_steps == 2);
  REQUIRE(ready.tokens_per_step == 900);
  REQUIRE(std::get<worker::Window>(events[1]).steps == 2);
  REQUIRE(std::get<worker::Window>(events[1]).seconds > 0);
  REQUIRE(std::get<worker::Window>(events[2]).steps == 5);
  const nlohmann::json values = std::get<worker::Result>(events[3]).values;
  for (const char* part : {"data", "forward", "backward", "optimizer"}) {
    INFO(part);
    REQUIRE(values.at("parts").at(part).get<double>() > 0);
  }
  REQUIRE(values.at("peak_resident_bytes").get<int64_t>() > 0);
  REQUIRE(values.at("start_peak_memory_bytes").get<int64_t>() >=
          values.at("peak_memory_bytes").get<int64_t>());
  REQUIRE(values.at("ceiling").at("flops").get<double>() > 1e6);
  REQUIRE(values.at("ceiling").at("sizes").size() == 3);
}

TEST_CASE("a bench of slots measures the whole of a step", "[worker][bench]") {
  config::Experiment experiment = small_experiment();
  experiment.train.batch_size = 4;
  experiment.train.gradient_slots = 2;
  experiment.train.document_mask = true;
  const auto events = bench(experiment, "{\"window\":2}\n");
  REQUIRE(events.size() == 3);
  REQUIRE(std::get<worker::Ready>(events[0]).tokens_per_step == 1200);
  REQUIRE(std::get<worker::Window>(events[1]).seconds > 0);
  REQUIRE_FALSE(std::get<worker::Result>(events[2]).values.contains("parts"));
}

TEST_CASE("a bench refuses a line that asks for no window", "[worker][bench]") {
  REQUIRE(contains(error_of([] { bench(small_experiment(), "{\"window\":0}\n"); }), "no steps"));
  REQUIRE(contains(error_of([] { bench(small_experiment(), "stop\n"); }), "'stop'"));
}

TEST_CASE("random rows are ids of the model and differ from step to step", "[worker][bench]") {
  config::Experiment experiment = small_experiment();
  experiment.train.document_mask = true;
  const data::Dataset rows = libtorch::random_rows(experiment);
  REQUIRE(rows.rows() >= 4 * 3);
  REQUIRE(rows.divides_documents());
  std::vector<int32_t> first(300), second(300), targets(300), documents(300);
  rows.fill(0, 1, first.data(), targets.data());
  rows.number_documents(first.data(), 1, documents.data());
  REQUIRE(documents.back() >= 1);  // one begins every 256 tokens
  rows.fill(1, 1, second.data(), targets.data());
  REQUIRE(first != second);
  for (const int32_t id : first) {
    REQUIRE(id >= 0);
    REQUIRE(id < experiment.model.vocab_size);
  }
}

TEST_CASE("a step in parts is the step", "[worker][bench]") {
  config::Experiment experiment = small_experiment();
  experiment.train.grad_clip = 0.5;
  experiment.optimizer.lr = 0.1;
  const data::Dataset rows = libtorch::random_rows(experiment);
  libtorch::Trainer whole(experiment, at::Device("cpu"));
  libtorch::Trainer parts(experiment, at::Device("cpu"));
  for (libtorch::Trainer* trainer : {&whole, &parts}) libtorch::load_initial(trainer->model(), 42);
  for (int64_t step = 0; step < 3; ++step) {
    const libtorch::Batch batch = libtorch::load_batch(rows, step * 3, 3, at::Device("cpu"));
    whole.step(batch, step);
    const at::Tensor loss = parts.loss(batch);
    parts.backward(loss);
    parts.update(loss, step);
    const libtorch::StepTotals expected = take_totals(whole);
    const libtorch::StepTotals found = take_totals(parts);
    REQUIRE(found.loss == expected.loss);
    REQUIRE(found.gradient_norm == expected.gradient_norm);
  }
}

TEST_CASE("every operation to be measured runs, and its baseline", "[worker][bench]") {
  const libtorch::OperationSizes tiny{"tiny", 2, 5, 8, 12, 30, 2, 1, 4, false, false};
  for (const libtorch::OperationMaker& maker : libtorch::operation_makers()) {
    INFO(maker.name);
    const libtorch::OperationCase operation = maker.make(tiny, at::TensorOptions(at::kFloat));
    REQUIRE(operation.flops + operation.bytes > 0);
    REQUIRE_NOTHROW(operation.fused());
    REQUIRE_NOTHROW(operation.baseline());
    REQUIRE_NOTHROW(operation.fused());
  }
}

std::vector<worker::Event> bench_operations(const worker::OperationBench& wanted) {
  worker::Request request;
  request.job = worker::Job::bench_ops;
  request.operation_bench = wanted;
  return events_of([&](const libtorch::EventWriter& events) {
    libtorch::bench_operations(request, at::Device("cpu"), events);
  });
}

TEST_CASE("operations are measured one by one behind the device's ceilings", "[worker][bench]") {
  const auto events = bench_operations({{"adamw"}, {"4m"}, "float32"});
  REQUIRE(events.size() == 2);
  const nlohmann::json ceilings = std::get<worker::Result>(events[0]).values.at("ceilings");
  REQUIRE(ceilings.at("matrix_product").at("flops").get<double>() > 0);
  REQUIRE(ceilings.at("memory").at("bytes_per_second").get<double>() > 0);
  const nlohmann::json values = std::get<worker::Result>(events[1]).values;
  REQUIRE(values.at("operation") == "adamw");
  REQUIRE(values.at("size") == "4m");
  REQUIRE(values.at("windows").size() == 5);
  REQUIRE(values.at("bytes_per_second").get<double>() > 0);
  REQUIRE_FALSE(values.contains("flops_per_second"));
}

TEST_CASE("what is not there to be measured is told with what there is", "[worker][bench]") {
  const auto error = [](const worker::OperationBench& wanted) {
    return error_of([&] { bench_operations(wanted); });
  };
  REQUIRE(contains(error({{"swiglo"}, {}, "float32"}), "no operation 'swiglo'"));
  REQUIRE(contains(error({{"swiglo"}, {}, "float32"}), "swiglu_linear.canon"));
  REQUIRE(contains(error({{}, {"4b"}, "float32"}), "one of 4m,"));
  REQUIRE(contains(error({{}, {}, "float8"}), "no precision 'float8'"));
}

}  // namespace
}  // namespace forge::tests

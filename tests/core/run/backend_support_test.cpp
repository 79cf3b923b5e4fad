#include "core/run/backend_support.h"

#include "core/config/experiment.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::run {
namespace {

using namespace tests;

worker::BackendInfo backend_that(const std::string& supports) {
  worker::BackendInfo info;
  info.hello.backend = "fake";
  info.environment.device_type = "cpu";
  if (!supports.empty())
    info.supports = std::get<worker::Supports>(worker::event_from_line(supports));
  return info;
}

const nlohmann::json asked_experiment = {{"optimizer", {{"type", "sgd"}}},
                                         {"train", {{"z", nullptr}}}};

TEST_CASE("a value that a backend lacks is refused at the place of the key", "[backend]") {
  const auto source = std::make_shared<SourceText>(SourceText{"c.yaml", "", "type: sgd", 1});
  config::Origins origins;
  origins["optimizer.type"].set_by = {"config", "sgd", make_span(source, 1, 7), ""};
  const std::string message = error_of([&] {
    require_supported(asked_experiment,
                      origins,
                      backend_that(R"({"event":"supports","jobs":[],)"
                                   R"("config":{"optimizer.type":["adamw","lion"]}})"));
  });
  CHECK(contains(message, "backend fake cannot do optimizer.type: sgd on cpu"));
  CHECK(contains(message, "c.yaml:1:7"));
  CHECK(contains(message, "it can do adamw, lion"));
}

TEST_CASE("what a backend does not speak of is let through", "[backend]") {
  const auto accepts = [](const std::string& supports) {
    return error_of([&] { require_supported(asked_experiment, {}, backend_that(supports)); })
        .empty();
  };
  CHECK(accepts(""));
  CHECK(accepts(R"({"event":"supports","jobs":[]})"));
  CHECK(accepts(R"({"event":"supports","jobs":[],"config":{"optimizer.type":["sgd"]}})"));
  CHECK(accepts(R"({"event":"supports","jobs":[],"config":{"train.z":[null]}})"));
  CHECK(accepts(R"({"event":"supports","jobs":[],"config":{"no.such.key":["a"],"":[1]}})"));
  CHECK_FALSE(accepts(R"({"event":"supports","jobs":[],"config":{"train.z":[false]}})"));
}

TEST_CASE("a backend that does not speak of several processes gets a single one", "[backend]") {
  config::Experiment experiment;
  const auto source = std::make_shared<SourceText>(SourceText{"c.yaml", "", "processes: 2", 1});
  config::Origins origins;
  origins["parallel.processes"].set_by = {"config", "2", make_span(source, 1, 12), ""};
  const auto refusal = [&](const std::string& supports) {
    return error_of([&] { require_processes(experiment, origins, backend_that(supports)); });
  };
  const std::string plain = R"({"event":"supports","jobs":[],"config":{}})";
  const std::string able = R"({"event":"supports","jobs":[],"config":{"parallel":[true]}})";
  for (const std::string& supports : {std::string(), plain, able}) CHECK(refusal(supports).empty());
  experiment.parallel.processes.count = 2;
  for (const std::string& supports : {std::string(), plain}) {
    CHECK(contains(refusal(supports),
                   "backend fake trains by a single process on cpu, and parallel.processes is 2"));
    CHECK(contains(refusal(supports), "c.yaml:1:12"));
  }
  CHECK(refusal(able).empty());
  // It limits no value of the section of that name.
  const nlohmann::json asked = {{"parallel", {{"processes", 2}}}};
  CHECK(error_of([&] { require_supported(asked, {}, backend_that(able)); }).empty());
}

TEST_CASE("a device that the backend does not run on is refused before there is a run",
          "[backend][device]") {
  worker::BackendInfo backend = backend_that("");
  for (const char* device : {"", "auto", "cpu", "cpu:0"})
    CHECK(error_of([&] { require_device(device, backend); }).empty());
  for (const char* device : {"CPU", "cuda", "cuda:-1", "cpu:", "cpu:x", "GPU", "../x"}) {
    INFO(device);
    const std::string message = error_of([&] { require_device(device, backend); });
    CHECK(contains(message, "backend fake runs on cpu here, and not on '" + std::string(device)));
    CHECK(contains(message, "--device is auto, cpu, cuda or cuda:N"));
  }
  backend.environment.device_type = "cuda";
  CHECK(error_of([&] { require_device("cuda:1", backend); }).empty());
}

TEST_CASE("a job that a backend does not do is refused", "[backend]") {
  const worker::BackendInfo info =
      backend_that(R"({"event":"supports","jobs":["describe","train"]})");
  require_job(worker::Job::train, info);
  require_job(worker::Job::generate, backend_that(""));
  const std::string message = error_of([&] { require_job(worker::Job::generate, info); });
  CHECK(contains(message, "backend fake cannot do the job generate"));
  CHECK(contains(message, "it does describe, train"));
}

TEST_CASE("a job that reads a model asks nothing of how it was trained", "[backend]") {
  config::Experiment trained;
  trained.train.precision = model::Precision::float64;
  const auto fault = [&](const std::string& limits) {
    const worker::BackendInfo info =
        backend_that(R"({"event":"supports","jobs":["evaluate"],"config":)" + limits + "}");
    return error_of([&] { require_readable(worker::Job::evaluate, trained, info); });
  };
  CHECK(fault(R"({"optimizer.type":["none"],"data.order":["none"]})").empty());
  CHECK(contains(fault(R"({"model.layers":["mamba2"]})"), "cannot do model.layers: attention"));
  CHECK(contains(fault(R"({"train.precision":["float32"]})"), "it can do float32"));
  const worker::BackendInfo trainer = backend_that(R"({"event":"supports","jobs":["train"]})");
  CHECK(contains(error_of([&] { require_readable(worker::Job::evaluate, trained, trainer); }),
                 "cannot do the job evaluate"));
}

}  // namespace
}  // namespace forge::run

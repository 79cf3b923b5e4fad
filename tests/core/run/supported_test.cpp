#include "core/run/supported.h"

#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/support.h"

namespace forge::run {
namespace {

using namespace tests;

BackendInfo backend_that(const std::string& supports) {
  BackendInfo info;
  info.hello.backend = "fake";
  info.environment.device_type = "cpu";
  if (!supports.empty())
    info.supports = std::get<protocol::Supports>(protocol::event_from_line(supports));
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

TEST_CASE("a job that a backend does not do is refused", "[backend]") {
  const BackendInfo info = backend_that(R"({"event":"supports","jobs":["describe","train"]})");
  require_job(protocol::Job::train, info);
  require_job(protocol::Job::generate, backend_that(""));
  const std::string message = error_of([&] { require_job(protocol::Job::generate, info); });
  CHECK(contains(message, "backend fake cannot do the job generate"));
  CHECK(contains(message, "it does describe, train"));
}

TEST_CASE("a job that reads a model asks nothing of how it was trained", "[backend]") {
  config::Experiment trained;
  trained.train.precision = config::Precision::float64;
  const auto fault = [&](const std::string& limits) {
    const BackendInfo info =
        backend_that(R"({"event":"supports","jobs":["evaluate"],"config":)" + limits + "}");
    return error_of([&] { require_readable(protocol::Job::evaluate, trained, info); });
  };
  CHECK(fault(R"({"optimizer.type":["none"],"data.order":["none"]})").empty());
  CHECK(contains(fault(R"({"model.family":["mamba"]})"), "cannot do model.family: llama_canon"));
  CHECK(contains(fault(R"({"train.precision":["float32"]})"), "it can do float32"));
  const BackendInfo trainer = backend_that(R"({"event":"supports","jobs":["train"]})");
  CHECK(contains(error_of([&] { require_readable(protocol::Job::evaluate, trained, trainer); }),
                 "cannot do the job evaluate"));
}

}  // namespace
}  // namespace forge::run

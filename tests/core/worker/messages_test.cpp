#include <cmath>
#include <limits>
#include <random>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/worker/messages.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::worker {
namespace {

using nlohmann::json;
using tests::contains;
using tests::error_of;

std::string event_error(const std::string& line) {
  return error_of([&] { event_from_line(line); });
}

/// One of each kind, with values that no default has.
std::vector<Event> every_event() {
  Finished finished{
      true, 300, 2.5, 2.25, 4500.5, 70.5, 1 << 20, 1 << 21, 4434176, true, 12.5, 10.25};
  return {Hello{1, "libtorch", "0.1.0", 3},
          Environment{"cuda", "H200", 8, 1LL << 37, {"H200", "H200"}, {{"torch", "2.11.0"}}},
          Started{4434176, 100, 300, 1024, 8, 2, 4},
          Progress{7, "evaluate", 0.5},
          TrainMetrics{10, 10240, 6.5, 1e-3, 1.25, 4400.0, 2.5},
          Evaluation{100,
                     5.5,
                     8192,
                     0.75,
                     {{"token_accuracy.hop_8", {0.25, 640}}},
                     5.25,
                     {5.0, 6.0},
                     {512, 511}},
          CheckpointSaved{100, "checkpoints/000000100", 53210112, 0.031},
          finished,
          Failed{"disk full", "train.checkpoint_every", "free some space", true, 1, true, true},
          Tokens{{0, 2}, {411, 97}, {FinishReason::none, FinishReason::stop_text}},
          Answers{100, AnswerKind::loss, 3, {}, {0.5, 2.25}},
          Ready{12, 4096},
          Window{12, 1.0625},
          Result{{{"tokens_per_second", 4300.0}}},
          Supports{{"describe", "train"}, {{"optimizer.type", {"adamw"}}}},
          MicroBatch{100, "train", 8, 32, "out of memory"}};
}

TEST_CASE("every event reads back from its line as it was written", "[protocol]") {
  std::vector<std::string> names;
  for (const Event& event : every_event()) {
    const std::string line = to_line(event);
    INFO(line);
    REQUIRE(line.find('\n') == std::string::npos);
    const Event back = event_from_line(line);
    REQUIRE(back.index() == event.index());
    REQUIRE(to_line(back) == line);
    names.push_back(name_of(back));
  }
  REQUIRE(join(names, " ") ==
          "hello environment started progress train evaluation checkpoint finished failed tokens "
          "answers ready window result supports micro_batch");
}

TEST_CASE("an event's fields carry the names of the struct", "[protocol]") {
  const json train = to_json(Event(TrainMetrics{10, 10240, 6.5, 1e-3, 1.25, 4400.0, 2.5}));
  REQUIRE(train == json::parse(R"({"event":"train","step":10,"tokens":10240,"loss":6.5,
      "learning_rate":0.001,"gradient_norm":1.25,"tokens_per_second":4400.0,"elapsed_seconds":2.5})"));
}

TEST_CASE("a request reads back and its absent keys keep their defaults", "[protocol]") {
  Request request;
  request.job = Job::train;
  request.run_dir = "/runs/a-1";
  request.experiment = {{"seed", 42}};
  request.train_tokens = {{"/cache/train.tokens", 1000, 0},
                          {"/cache/other.tokens", 20, 0, false, {}, "other", 0.25}};
  request.evaluation_tokens = {{"/cache/evaluation.tokens", 64}};
  request.evaluation_tokens[0].task = {{"name", "copy"}, {"length", 500}};
  request.answers = {AnswerKind::likeliest, AnswerKind::continuation};
  request.answer_rows = 100;
  request.resume_from = "/runs/a-1/checkpoints/000000100";
  request.weights = {json{{"name", "a.weight"}, {"shape", {2, 3}}}};
  request.processes = {4, "file:/tmp/forge-1/meet", 60};
  request.device = "cuda:1";
  request.threads = 2;
  REQUIRE(to_line(request_from_line(to_line(request))) == to_line(request));

  Generation generation;
  generation.prompts = {{0, 5, 7}, {0}};
  generation.samples = 3;
  generation.seed = ~uint64_t{0};
  generation.stop = {"\n\n", "end"};
  generation.cache = false;
  request.generation = generation;
  const Request back = request_from_line(to_line(request));
  REQUIRE(to_line(back) == to_line(request));
  REQUIRE(back.generation->prompts == generation.prompts);

  const Request describe = request_from_line(R"({"job":"describe"})");
  REQUIRE_FALSE(describe.generation.has_value());
  REQUIRE_FALSE(describe.processes.has_value());
  REQUIRE(describe.device == "auto");
  REQUIRE(describe.resume_from.empty());
  REQUIRE(describe.train_tokens.empty());
}

TEST_CASE("a request says how each weight of the model is drawn", "[protocol]") {
  model::ModelConfig model;
  model.vocab_size = 29;
  model.hidden_size = 16;
  model.mlp.intermediate_size = 24;
  model.num_layers = 1;
  model.attention.num_heads = model.attention.num_kv_heads = 2;
  model.attention.head_dim = 8;
  model.canon.set = "A";
  const std::vector<json> weights = weights_json(model);
  const auto weight = [&](const std::string& name) {
    for (const json& each : weights) {
      if (each.at("name") == name) return each;
    }
    return json();
  };
  REQUIRE(weight("model.embed_tokens.weight") == json::parse(R"({"name":"model.embed_tokens.weight",
      "shape":[29,16],"init":{"kind":"normal","std":1.0}})"));
  REQUIRE(weight("lm_head.weight").at("init") ==
          json::parse(R"({"kind":"truncated_normal","std":0.25,"cut":0.75})"));
  REQUIRE(weight("model.norm.weight").at("init") ==
          json::parse(R"({"kind":"constant","value":1.0})"));
  REQUIRE(weight("model.layers.0.canonA.weight") ==
          json::parse(R"({"name":"model.layers.0.canonA.weight","shape":[16,1,4],
              "init":{"kind":"uniform","bound":0.5}})"));
  REQUIRE(weights.size() == 13);
}

TEST_CASE("a request to bench says what to measure", "[protocol]") {
  Request request;
  request.job = Job::bench;
  request.window_steps = 20;
  REQUIRE(request_from_line(to_line(request)).window_steps == 20);
  request.job = Job::bench_ops;
  request.operation_bench = OperationBench{{"swiglu"}, {"4m"}, "bfloat16"};
  const Request back = request_from_line(to_line(request));
  REQUIRE(to_line(back) == to_line(request));
  REQUIRE(back.operation_bench->operations == std::vector<std::string>{"swiglu"});
  REQUIRE_FALSE(request_from_line(R"({"job":"bench_ops"})").operation_bench.has_value());
}

TEST_CASE("a window is asked for in a line of its own", "[protocol]") {
  REQUIRE(to_line(WindowRequest{12}) == R"({"window":12})");
  REQUIRE(window_request_from_line(R"({"window":12,"new":1})").steps == 12);
  REQUIRE(contains(error_of([] { window_request_from_line("{}"); }), "'window'"));
  REQUIRE(contains(error_of([] { window_request_from_line(R"({"window":-1})"); }), "whole number"));
  REQUIRE(contains(error_of([] { window_request_from_line("12"); }), "'12'"));
}

TEST_CASE("numbers that JSON cannot write travel as words", "[protocol]") {
  TrainMetrics metrics;
  metrics.loss = std::nan("");
  metrics.gradient_norm = std::numeric_limits<double>::infinity();
  metrics.learning_rate = -std::numeric_limits<double>::infinity();
  const std::string line = to_line(Event(metrics));
  REQUIRE(contains(line, R"("loss":"nan")"));
  const auto back = std::get<TrainMetrics>(event_from_line(line));
  REQUIRE(std::isnan(back.loss));
  REQUIRE(back.gradient_norm == metrics.gradient_norm);
  REQUIRE(back.learning_rate == metrics.learning_rate);
}

TEST_CASE("nothing in a worker's words can steer a terminal", "[protocol]") {
  const auto message_of = [](const std::string& text) {
    const json line = {{"event", "failed"}, {"message", text}};
    return std::get<Failed>(event_from_line(line.dump())).message;
  };
  REQUIRE(message_of("a\x1b[2Jb\x07\x7f") == "a?[2Jb??");
  REQUIRE(message_of("a\xc2\x9b"
                     "2Jé\n\tß") == "a?2Jé\n\tß");
  REQUIRE(message_of(std::string("a\0b", 3)) == "a?b");
  const std::string cut = message_of(std::string(max_text_bytes - 1, 'x') + "éé");
  REQUIRE(cut == std::string(max_text_bytes - 1, 'x') + "…");
  const Event nested = event_from_line(R"({"event":"result","values":{"a":[{"b":"\u001b"}]}})");
  REQUIRE(std::get<Result>(nested).values == json::parse(R"({"a":[{"b":"?"}]})"));
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  REQUIRE(to_json(Event(Result{{{"loss", nan}, {"losses", {1.5, -infinity}}}})).at("values") ==
          json::parse(R"({"loss":"nan","losses":[1.5,"-inf"]})"));
}

TEST_CASE("numbers that no count or fraction can be are refused or brought into bounds",
          "[protocol]") {
  const auto progress = [](const std::string& step, const std::string& fraction) {
    return R"({"event":"progress","phase":"train","step":)" + step + R"(,"fraction":)" + fraction +
           "}";
  };
  const auto fraction_of = [&](const std::string& fraction) {
    return std::get<Progress>(event_from_line(progress("1", fraction))).fraction;
  };
  REQUIRE(fraction_of("0.25") == 0.25);
  REQUIRE(fraction_of("1e300") == 1);
  REQUIRE(fraction_of("-1") == 0);
  REQUIRE(fraction_of(R"("nan")") == 0);
  REQUIRE(event_error(progress("9007199254740992", "0")).empty());
  for (const char* step : {"9007199254740993", "18446744073709551615", "1e400", "-1", "1.5"})
    REQUIRE_FALSE(event_error(progress(step, "0")).empty());
}

TEST_CASE("a line of more levels, of other bytes or of something else is refused", "[protocol]") {
  const std::string deep = std::string(100000, '[');
  REQUIRE(contains(event_error(deep), "nested more than 32 deep"));
  REQUIRE(contains(event_error("{\"event\":\"failed\",\"message\":\"\xff\"}"), "not a line"));
  REQUIRE(contains(event_error(std::string(max_line_bytes + 1, 'x')), "a line of more than"));
  REQUIRE(contains(event_error("[1,2]"), "not a line"));
  REQUIRE(contains(event_error("{\"event\":\"helo\"}"), "unknown event 'helo'"));
}

TEST_CASE("an optional number may be null or absent", "[protocol]") {
  json finished = to_json(Event(Finished{}));
  REQUIRE(finished["eval_loss"].is_null());
  REQUIRE_FALSE(std::get<Finished>(event_from_json(finished)).eval_loss.has_value());
  finished.erase("eval_loss");
  REQUIRE_FALSE(std::get<Finished>(event_from_json(finished)).eval_loss.has_value());
}

TEST_CASE("a missing key is an error that names it and its event", "[protocol]") {
  for (const Event& event : every_event()) {
    const json whole = to_json(event);
    int required = 0;
    for (const auto& [key, value] : whole.items()) {
      json part = whole;
      part.erase(key);
      const std::string message = error_of([&] { event_from_json(part); });
      if (message.empty()) continue;
      ++required;
      REQUIRE(contains(message, "'" + key + "' is missing"));
      if (key != "event") REQUIRE(contains(message, "event '" + std::string(name_of(event)) + "'"));
    }
    REQUIRE(required >= 2);
  }
}

TEST_CASE("an ill-typed value is an error that names the key and the value", "[protocol]") {
  const std::string head = R"({"event":"evaluation","loss":1.5,"tokens":10,"seconds":0.5,"step":)";
  REQUIRE(event_error(head + "5}").empty());
  for (const std::string wrong :
       {"-1", "1.5", "\"5\"", "null", "true", "[5]", "18446744073709551615"}) {
    const std::string message = event_error(head + wrong + "}");
    REQUIRE(contains(message, "event 'evaluation': 'step' should be a whole number from 0 to "));
    REQUIRE(contains(message, wrong));
  }
  REQUIRE(contains(event_error(R"({"event":"progress","step":1,"phase":7})"), "'phase'"));
  REQUIRE(
      contains(event_error(R"({"event":"result","values":[1]})"), "'values' should be an object"));
  REQUIRE(contains(
      event_error(R"({"event":"evaluation","loss":"big","tokens":1,"seconds":1,"step":1})"),
      "'loss' should be a number, not \"big\""));
  const std::string tokens = R"({"event":"tokens","samples":[0],"ids":[5],"ended":)";
  REQUIRE(event_error(tokens + R"(["length"]})").empty());
  REQUIRE(contains(event_error(tokens + R"("length"})"), "'ended' should be a list"));
  REQUIRE(contains(event_error(tokens + R"(["long"]})"), "one of none, stop_text"));
  REQUIRE(contains(event_error(R"({"event":"tokens","samples":[-1],"ids":[],"ended":[]})"),
                   "'samples' should be a whole number from 0 to "));
  REQUIRE(contains(event_error(R"({"event":"hello","protocol":4294967296,"backend":"x",
      "backend_version":"1","numerics_version":0})"),
                   "'protocol'"));
}

TEST_CASE("an unknown event or job is refused with the nearest known one", "[protocol]") {
  REQUIRE(contains(event_error(R"({"event":"finish"})"), "did you mean 'finished'?"));
  const std::string job = error_of([] { request_from_line(R"({"job":"trein"})"); });
  REQUIRE(contains(job, "'job' should be one of describe, train"));
  REQUIRE(contains(job, "did you mean 'train'?"));
}

TEST_CASE("keys of a newer worker are ignored", "[protocol]") {
  const Event event =
      event_from_line(R"({"event":"progress","step":3,"phase":"train","lr":[1,{}]})");
  REQUIRE(std::get<Progress>(event).step == 3);
}

TEST_CASE("what is no JSON object is refused and quoted", "[protocol]") {
  for (const std::string line : {"Epoch 1/3", "", "[1]", "7", "{\"event\":", "{} {}", "nan"}) {
    REQUIRE(contains(event_error(line), "not a line of the protocol"));
    REQUIRE(contains(event_error(line), "'" + line + "'"));
  }
  REQUIRE(contains(event_error("\x1b[31mred\xff"), "'?[31mred"));
  REQUIRE(contains(event_error("{\"event\":\"\xff\xfe\"}"), "not a line of the protocol"));
  REQUIRE(contains(event_error(R"({"event":"evaluation","step":1,"loss":9.5,"loss":0.5})"),
                   "its JSON has the key 'loss' twice"));
  REQUIRE(contains(event_error(R"({"event":"progress","step":1e999,"phase":""})"), "not a line"));
  REQUIRE(contains(event_error("{}"), "'event' is missing"));
  REQUIRE(contains(event_error(R"({"event":5})"), "'event' should be a string"));
}

TEST_CASE("a line that is too long or too deep is refused", "[protocol]") {
  const std::string long_line = "{\"event\":\"" + std::string(max_line_bytes, 'x') + "\"}";
  REQUIRE(contains(event_error(long_line), "a line of more than 1.00 MiB"));
  REQUIRE(event_error(long_line).size() < 300);

  const auto nested = [](int depth) {
    return R"({"event":"result","values":{"a":)" + std::string(depth, '[') +
           std::string(depth, ']') + "}}";
  };
  REQUIRE(event_error(nested(max_depth - 3)).empty());
  REQUIRE(contains(event_error(nested(max_depth + 1)), "nested more than 32 deep"));
  REQUIRE(contains(event_error(nested(400'000)), "nested more than 32 deep"));
}

TEST_CASE("text that is no UTF-8 is still written as a line that reads back", "[protocol]") {
  const Event back = event_from_line(to_line(Event(Failed{"bad byte \xff here", "", ""})));
  REQUIRE(std::get<Failed>(back).message == "bad byte \xef\xbf\xbd here");
}

TEST_CASE("every line that the protocol's document shows is understood", "[protocol]") {
  const std::string text = read_file(tests::tests_dir().parent_path() / "docs" / "PROTOCOL.md");
  std::vector<bool> seen(std::variant_size_v<Event>);
  int requests = 0;
  for (const std::string& raw : split(text, '\n')) {
    const std::string line(trim(raw));
    if (!starts_with(line, "{\"")) continue;
    INFO(line);
    const json shown = json::parse(line);
    if (shown.contains("attempt")) continue;  // what forge itself writes to the run folder
    json read_back;
    if (shown.contains("window")) {
      read_back = json::parse(to_line(window_request_from_line(line)));
    } else if (shown.contains("job")) {
      ++requests;
      read_back = json::parse(to_line(request_from_line(line)));
    } else {
      const Event event = event_from_line(line);
      seen[event.index()] = true;
      read_back = to_json(event);
    }
    for (const auto& [key, value] : shown.items()) REQUIRE(read_back.at(key) == value);
  }
  REQUIRE(requests >= 2);
  REQUIRE(std::count(seen.begin(), seen.end(), false) == 0);
}

std::string stored_line(const TrainMetrics& metrics, double time, int attempt) {
  nlohmann::json json = to_json(Event(metrics));
  json["time"] = time;
  json["attempt"] = attempt;
  return to_line(json);
}

const std::string plain =
    R"({"attempt":3,"elapsed_seconds":0.25,"event":"train","gradient_norm":1.5,)"
    R"("learning_rate":1e-03,"loss":6.75,"step":7,"time":1795168800.125,"tokens":7168,)"
    R"("tokens_per_second":4250})";

std::string with(std::string from, const std::string& to) {
  std::string line = plain;
  return line.replace(line.find(from), from.size(), to);
}

TEST_CASE("a train event is read from its line", "[protocol][train_line]") {
  const auto line = train_from_line(plain);
  REQUIRE(line);
  REQUIRE(line->time == 1795168800.125);
  REQUIRE(line->attempt == 3);
  REQUIRE(line->metrics.step == 7);
  REQUIRE(line->metrics.tokens == 7168);
  REQUIRE(line->metrics.loss == 6.75);
  REQUIRE(line->metrics.learning_rate == 1e-3);
  REQUIRE(line->metrics.gradient_norm == 1.5);
  REQUIRE(line->metrics.tokens_per_second == 4250);
  REQUIRE(line->metrics.elapsed_seconds == 0.25);
}

TEST_CASE("a speed that was not measured is none", "[protocol][train_line]") {
  const std::string key = R"(,"tokens_per_second":4250)";
  for (const std::string unmeasured :
       {R"(,"tokens_per_second":0)", R"(,"tokens_per_second":null)", ""}) {
    INFO(unmeasured);
    const std::string line = with(key, unmeasured);
    CHECK_FALSE(train_from_line(line));
    const auto metrics = std::get<TrainMetrics>(event_from_line(line));
    CHECK_FALSE(metrics.tokens_per_second);
    CHECK(to_json(Event(metrics)).at("tokens_per_second").is_null());
    for (const auto& [name, value] : metrics_of(metrics)) CHECK(name != "tokens_per_second");
  }
}

TEST_CASE("every number is the one that the JSON library reads", "[protocol][train_line]") {
  const unsigned seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937_64 generator(seed);
  const auto any = [&] {
    const double value = std::ldexp(double(generator()) - 9e18, int(generator() % 200) - 160);
    return generator() % 10 == 0 ? std::floor(value) : value;
  };
  for (int i = 0; i < 2000; ++i) {
    TrainMetrics metrics;
    metrics.step = int64_t(generator() >> 11);
    metrics.tokens = int64_t(generator() >> (11 + generator() % 50));
    metrics.loss = any();
    metrics.learning_rate = any();
    metrics.gradient_norm = any();
    const double speed = any();
    metrics.tokens_per_second = speed == 0 ? 1 : speed;  // 0 is none
    metrics.elapsed_seconds = any();
    const std::string text = stored_line(metrics, std::fabs(any()), int(generator() % 1000));
    INFO(text);
    const auto line = train_from_line(text);
    REQUIRE(line);
    const auto slow = std::get<TrainMetrics>(event_from_line(text));
    REQUIRE(line->metrics.step == slow.step);
    REQUIRE(line->metrics.tokens == slow.tokens);
    REQUIRE(line->metrics.loss == slow.loss);
    REQUIRE(line->metrics.learning_rate == slow.learning_rate);
    REQUIRE(line->metrics.gradient_norm == slow.gradient_norm);
    REQUIRE(line->metrics.tokens_per_second == slow.tokens_per_second);
    REQUIRE(line->metrics.elapsed_seconds == slow.elapsed_seconds);
  }
}

TEST_CASE("what is no plain train event is left to the JSON library", "[protocol][train_line]") {
  const std::vector<std::string> others = {"",
                                           "{}",
                                           "[]",
                                           plain + " ",
                                           " " + plain,
                                           plain.substr(0, plain.size() - 1),
                                           with("\"train\"", "\"evaluation\""),
                                           with("\"step\":7", "\"step\":7,\"step\":8"),
                                           with("\"step\":7,", ""),
                                           with("\"step\":7", "\"step\":7.0"),
                                           with("\"step\":7", "\"step\":-7"),
                                           with("\"step\":7", "\"step\":9007199254740993"),
                                           with("\"step\":7", "\"step\":99999999999999999999"),
                                           with("\"step\":7", "\"step\":07"),
                                           with("\"attempt\":3", "\"attempt\":4294967299"),
                                           with("\"loss\":6.75", "\"loss\":\"nan\""),
                                           with("\"loss\":6.75", "\"loss\":null"),
                                           with("\"loss\":6.75", "\"loss\":6."),
                                           with("\"loss\":6.75", "\"loss\":.75"),
                                           with("\"loss\":6.75", "\"loss\":00.75"),
                                           with("\"loss\":6.75", "\"loss\":+6.75"),
                                           with("\"loss\":6.75", "\"loss\":1e999"),
                                           with("\"loss\":6.75", "\"loss\":6-75"),
                                           with("\"loss\":6.75", "\"loss\":inf"),
                                           with("\"loss\":6.75", "\"loss\":[6.75]"),
                                           with("\"loss\"", "\"lo\\u0073s\""),
                                           with("\"loss\":6.75", "\"loss\":6.75,\"more\":1"),
                                           with("\"loss\":6.75", "\"loss\" :6.75")};
  for (const std::string& line : others) {
    INFO(line);
    REQUIRE_FALSE(train_from_line(line));
  }
}

}  // namespace
}  // namespace forge::worker

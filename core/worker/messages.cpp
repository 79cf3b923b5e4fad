#include "core/worker/messages.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "core/base/json_file.h"
#include "core/base/text.h"
#include "core/model/parameters.h"
#include "core/worker/json_fields.h"

namespace forge::worker {

using Json = nlohmann::json;

const std::vector<std::string>& names_of(Job) {
  static const std::vector<std::string> names = {"describe",
                                                 "train",
                                                 "evaluate",
                                                 "generate",
                                                 "bench",
                                                 "logits",
                                                 "bench_ops",
                                                 "describe_blocks",
                                                 "bench_links"};
  return names;
}

const std::vector<std::string>& names_of(AnswerKind) {
  static const std::vector<std::string> names = {
      "likeliest", "loss", "log_probabilities", "continuation"};
  return names;
}

const std::vector<std::string>& names_of(FinishReason) {
  static const std::vector<std::string> names = {
      "none", "stop_text", "end_of_sequence", "length", "context"};
  return names;
}

TokenSource first_source(const std::vector<TokenSource>& sources) {
  return sources.empty() ? TokenSource() : sources[0];
}

template <class Visitor>
void fields(Visitor& visit, TokenSource& source) {
  visit.field("path", source.path);
  visit.field("rows", source.rows);
  visit.optional("document_start", source.document_start);
  visit.optional("short_last_row", source.short_last_row);
  visit.optional("pad_id", source.pad_id);
  visit.optional("name", source.name);
  visit.optional("weight", source.weight);
  visit.optional("task", source.task);
  visit.optional("first_row", source.first_row);
}

template <class Visitor>
void fields(Visitor& visit, Generation& generation) {
  visit.field("prompts", generation.prompts);
  visit.optional("samples", generation.samples);
  visit.field("max_tokens", generation.max_tokens);
  visit.field("context", generation.context);
  visit.optional("temperature", generation.temperature);
  visit.optional("top_k", generation.top_k);
  visit.optional("top_p", generation.top_p);
  visit.optional("seed", generation.seed);
  visit.optional("end_ids", generation.end_ids);
  visit.optional("stop", generation.stop);
  visit.optional("tokenizer", generation.tokenizer);
  visit.optional("cache", generation.cache);
  visit.optional("batch_size", generation.batch_size);
}

template <class Visitor>
void fields(Visitor& visit, OperationBench& bench) {
  visit.optional("operations", bench.operations);
  visit.optional("sizes", bench.sizes);
  visit.optional("precision", bench.precision);
}

template <class Visitor>
void fields(Visitor& visit, Processes& processes) {
  visit.field("count", processes.count);
  visit.field("rendezvous", processes.rendezvous);
  visit.optional("timeout_seconds", processes.timeout_seconds);
  visit.optional("devices", processes.devices);
  visit.optional("hosts", processes.hosts);
}

template <class Visitor>
void fields(Visitor& visit, WindowRequest& request) {
  visit.field("window", request.steps);
}

template <class Visitor>
void fields(Visitor& visit, Request& request) {
  visit.field("job", request.job);
  visit.optional("run_dir", request.run_dir);
  visit.optional("identity", request.identity);
  visit.optional("experiment", request.experiment);
  visit.optional("train_tokens", request.train_tokens);
  visit.optional("evaluation_tokens", request.evaluation_tokens);
  visit.optional("validation_tokens", request.validation_tokens);
  visit.optional("answers", request.answers);
  visit.optional("answer_rows", request.answer_rows);
  visit.optional("resume_from", request.resume_from);
  visit.optional("initial_weights", request.initial_weights);
  visit.optional("initial_weights_hash", request.initial_weights_hash);
  visit.optional("weights", request.weights);
  visit.optional("stop_after", request.stop_after);
  visit.optional("output", request.output);
  visit.optional("generation", request.generation);
  visit.optional("window_steps", request.window_steps);
  visit.optional("operation_bench", request.operation_bench);
  visit.optional("link_bytes", request.link_bytes);
  visit.optional("processes", request.processes);
  visit.optional("device", request.device);
  visit.optional("threads", request.threads);
}

template <class Visitor>
void fields(Visitor& visit, Hello& hello) {
  visit.field("protocol", hello.protocol);
  visit.field("backend", hello.backend);
  visit.field("backend_version", hello.backend_version);
  visit.field("numerics_version", hello.numerics_version);
  visit.optional("saves_on_request", hello.saves_on_request);
}

template <class Visitor>
void fields(Visitor& visit, Environment& environment) {
  visit.field("device_type", environment.device_type);
  visit.field("device_name", environment.device_name);
  visit.field("threads", environment.threads);
  visit.optional("memory_bytes", environment.memory_bytes);
  visit.optional("devices", environment.devices);
  visit.optional("libraries", environment.libraries);
}

template <class Visitor>
void fields(Visitor& visit, Supports& supports) {
  visit.field("jobs", supports.jobs);
  visit.optional("config", supports.config);
}

template <class Visitor>
void fields(Visitor& visit, Started& started) {
  visit.field("parameters", started.parameters);
  visit.field("first_step", started.first_step);
  visit.field("max_steps", started.max_steps);
  visit.field("tokens_per_step", started.tokens_per_step);
  visit.optional("micro_batch_size", started.micro_batch_size);
  visit.optional("processes", started.processes);
  visit.optional("gradient_slots", started.gradient_slots);
}

template <class Visitor>
void fields(Visitor& visit, MicroBatch& halved) {
  visit.field("step", halved.step);
  visit.field("phase", halved.phase);
  visit.field("rows", halved.rows);
  visit.field("of", halved.of);
  visit.optional("reason", halved.reason);
}

template <class Visitor>
void fields(Visitor& visit, Progress& progress) {
  visit.field("step", progress.step);
  visit.field("phase", progress.phase);
  visit.optional("fraction", progress.fraction);
}

template <class Visitor>
void fields(Visitor& visit, Evaluation& evaluation) {
  visit.field("step", evaluation.step);
  visit.field("loss", evaluation.loss);
  visit.field("tokens", evaluation.tokens);
  visit.field("seconds", evaluation.seconds);
  visit.optional("scores", evaluation.scores);
  visit.optional("validation_loss", evaluation.validation_loss);
  visit.optional("row_losses", evaluation.row_losses);
  visit.optional("row_tokens", evaluation.row_tokens);
}

template <class Visitor>
void fields(Visitor& visit, Score& score) {
  visit.field("value", score.value);
  visit.field("count", score.count);
}

template <class Visitor>
void fields(Visitor& visit, Answers& answers) {
  visit.field("step", answers.step);
  visit.field("kind", answers.kind);
  visit.field("row", answers.row);
  visit.optional("ids", answers.ids);
  visit.optional("values", answers.values);
}

template <class Visitor>
void fields(Visitor& visit, CheckpointSaved& checkpoint) {
  visit.field("step", checkpoint.step);
  visit.field("path", checkpoint.path);
  visit.field("bytes", checkpoint.bytes);
  visit.optional("pause_seconds", checkpoint.pause_seconds);
}

template <class Visitor>
void fields(Visitor& visit, Finished& finished) {
  visit.field("completed", finished.completed);
  visit.field("step", finished.step);
  visit.optional("eval_loss", finished.eval_loss);
  visit.optional("train_loss", finished.train_loss);
  visit.optional("tokens_per_second", finished.tokens_per_second);
  visit.field("wall_seconds", finished.wall_seconds);
  visit.field("peak_memory_bytes", finished.peak_memory_bytes);
  visit.field("peak_resident_bytes", finished.peak_resident_bytes);
  visit.field("parameters", finished.parameters);
  visit.optional("shared_device", finished.shared_device);
  visit.optional("first_step_seconds", finished.first_step_seconds);
  visit.optional("compile_seconds", finished.compile_seconds);
}

template <class Visitor>
void fields(Visitor& visit, Failed& failed) {
  visit.field("message", failed.message);
  visit.optional("field", failed.field);
  visit.optional("hint", failed.hint);
  visit.optional("retry", failed.retry);
  visit.optional("rank", failed.rank);
  visit.optional("lost", failed.lost);
  visit.optional("diverged", failed.diverged);
}

template <class Visitor>
void fields(Visitor& visit, Tokens& tokens) {
  visit.field("samples", tokens.samples);
  visit.field("ids", tokens.ids);
  visit.field("ended", tokens.ended);
}

template <class Visitor>
void fields(Visitor& visit, Ready& ready) {
  visit.field("window_steps", ready.window_steps);
  visit.field("tokens_per_step", ready.tokens_per_step);
}

template <class Visitor>
void fields(Visitor& visit, Window& window) {
  visit.field("steps", window.steps);
  visit.field("seconds", window.seconds);
}

template <class Visitor>
void fields(Visitor& visit, Result& result) {
  visit.field("values", result.values);
}

namespace {

/// In the order of the alternatives of Event.
constexpr std::array<const char*, std::variant_size_v<Event>> event_names = {"hello",
                                                                             "environment",
                                                                             "started",
                                                                             "progress",
                                                                             "train",
                                                                             "evaluation",
                                                                             "checkpoint",
                                                                             "finished",
                                                                             "failed",
                                                                             "tokens",
                                                                             "answers",
                                                                             "ready",
                                                                             "window",
                                                                             "result",
                                                                             "supports",
                                                                             "micro_batch"};

/// The line in quotes, cut and with control characters replaced: fit for a terminal.
std::string excerpt(std::string_view line) {
  constexpr size_t limit = 120;
  std::string text(line.substr(0, limit));
  for (char& letter : text) {
    if (static_cast<unsigned char>(letter) < ' ' || letter == 0x7f) letter = '?';
  }
  return "'" + text + (line.size() > limit ? "…'" : "'");
}

bool is_control(unsigned char byte) {
  return (byte < ' ' && byte != '\n' && byte != '\t') || byte == 0x7f;
}

/// A worker's words reach terminals and logs: nothing in them may steer one.
void tame(std::string& text) {
  if (text.size() > max_text_bytes) {
    size_t end = max_text_bytes;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    text.resize(end);
    text += "…";
  }
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F are control characters, too: in UTF-8 their second byte says so.
    const bool is_c1 =
        byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (is_c1) text.replace(i, 2, "?");
    if (is_control(byte)) text[i] = '?';
  }
}

/// Cheap, and nearly always true.
bool is_plain(const Json& json) {
  if (json.is_string()) {
    const auto& text = json.get_ref<const std::string&>();
    const auto is_suspect = [](unsigned char byte) { return is_control(byte) || byte == 0xc2; };
    return text.size() <= max_text_bytes && std::none_of(text.begin(), text.end(), is_suspect);
  }
  return !json.is_structured() || std::all_of(json.begin(), json.end(), is_plain);
}

void tame(Json& json) {
  if (json.is_string()) tame(json.get_ref<std::string&>());
  if (json.is_structured()) {
    for (Json& inner : json) tame(inner);
  }
}

template <size_t index = 0>
Event read_event(const std::string& kind, const Json& json) {
  if constexpr (index == event_names.size()) {
    const std::vector<std::string> known(event_names.begin(), event_names.end());
    throw Error("unknown event '" + kind.substr(0, 80) + "'", did_you_mean(kind, known));
  } else {
    using Alternative = std::variant_alternative_t<index, Event>;
    if (kind == event_names[index]) return read_fields<Alternative>(json, "event '" + kind + "'");
    return read_event<index + 1>(kind, json);
  }
}

}  // namespace

std::string to_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json object_from_line(const std::string& line, size_t max_bytes) {
  if (line.size() > max_bytes) {
    throw Error("a line of more than " + human_bytes(double(max_bytes)) + ": " + excerpt(line));
  }
  Json json = read_json_text(line, max_depth);
  if (json.is_object()) return json;
  throw Error("not a line of the protocol (one JSON object): " + excerpt(line));
}

std::vector<Json> weights_json(const model::ModelConfig& model) {
  using Kind = model::InitRule::Kind;
  const auto json_of = [](const model::InitRule& rule) -> Json {
    switch (rule.kind) {
      case Kind::constant: return {{"kind", "constant"}, {"value", rule.value}};
      case Kind::normal: return {{"kind", "normal"}, {"std", rule.std}};
      case Kind::truncated_normal:
        return {{"kind", "truncated_normal"}, {"std", rule.std}, {"cut", rule.cut}};
      case Kind::uniform: return {{"kind", "uniform"}, {"bound", rule.bound}};
      case Kind::log_uniform:
        return {{"kind", "log_uniform"}, {"low", rule.low}, {"high", rule.high}};
      case Kind::inverse_softplus:
        return {{"kind", "inverse_softplus"}, {"low", rule.low}, {"high", rule.high}};
      case Kind::module: return {{"kind", "module"}};
    }
    throw Error("a weight without an initial distribution");
  };
  std::vector<Json> list;
  for (const model::Parameter& weight : model::parameters(model))
    list.push_back(
        {{"name", weight.name}, {"shape", weight.shape}, {"init", json_of(weight.init)}});
  return list;
}

std::string to_line(const Request& request) { return to_line(write_fields(request)); }

std::string to_line(const WindowRequest& request) { return to_line(write_fields(request)); }

std::string to_line(const Event& event) { return to_line(to_json(event)); }

namespace {

/// Numbers that JSON does not have become the protocol's words for them.
void name_numbers(Json& json) {
  if (json.is_number_float() && !std::isfinite(json.get<double>()))
    json = shortest(json.get<double>());
  if (!json.is_structured()) return;
  for (Json& item : json) name_numbers(item);
}

}  // namespace

Json to_json(const Event& event) {
  Json json = std::visit([](const auto& alternative) { return write_fields(alternative); }, event);
  if (std::holds_alternative<Result>(event)) name_numbers(json);
  json["event"] = name_of(event);
  return json;
}

Request request_from_line(const std::string& line) {
  return read_fields<Request>(object_from_line(line, max_request_bytes), "request");
}

WindowRequest window_request_from_line(const std::string& line) {
  return read_fields<WindowRequest>(object_from_line(line), "window request");
}

Event event_from_line(const std::string& line) { return event_from_json(object_from_line(line)); }

Event event_from_json(const Json& json) {
  if (!json.is_object()) throw Error("an event is a JSON object");
  const auto kind = json.find("event");
  if (kind == json.end()) throw Error("'event' is missing: " + excerpt(to_line(json)));
  if (!kind->is_string()) throw Error("'event' should be a string: " + excerpt(to_line(json)));
  const auto read = [](const Json& plain) {
    return read_event(plain.at("event").get<std::string>(), plain);
  };
  Event event;
  if (is_plain(json)) {
    event = read(json);
  } else {
    Json tamed = json;
    tame(tamed);
    event = read(tamed);
  }
  if (auto* progress = std::get_if<Progress>(&event)) {
    const double fraction = progress->fraction;
    progress->fraction = fraction > 0 ? std::min(fraction, 1.0) : 0;  // not a number is 0, too
  }
  // Older workers say 0 where no step was timed.
  if (auto* train = std::get_if<TrainMetrics>(&event); train && train->tokens_per_second == 0.0)
    train->tokens_per_second.reset();
  return event;
}

namespace {

/// Collects the numbers of an event.
struct NumberCollector {
  std::vector<std::pair<std::string, double>> numbers = {};

  template <class T>
  void field(const char* key, const T& value) {
    if constexpr (std::is_same_v<T, double> || std::is_same_v<T, int64_t>)
      numbers.emplace_back(key, static_cast<double>(value));
  }
  void field(const char* key, const std::optional<double>& value) {
    if (value) numbers.emplace_back(key, *value);
  }
  template <class T>
  void optional(const char* key, const T& value) {
    field(key, value);
  }
};

template <class Struct>
std::vector<std::pair<std::string, double>> numbers_of(Struct event, const char* loss_name) {
  NumberCollector collector;
  fields(collector, event);
  for (auto& [name, value] : collector.numbers) {
    if (name == "loss") name = loss_name;
  }
  return std::move(collector.numbers);
}

}  // namespace

std::vector<std::pair<std::string, double>> metrics_of(const Event& event) {
  if (const auto* train = std::get_if<TrainMetrics>(&event))
    return numbers_of(*train, "train_loss");
  if (const auto* evaluation = std::get_if<Evaluation>(&event))
    return numbers_of(*evaluation, "eval_loss");
  if (const auto* finished = std::get_if<Finished>(&event)) return numbers_of(*finished, "");
  return {};
}

const char* name_of(const Event& event) { return event_names[event.index()]; }

}  // namespace forge::worker

#include "core/worker/conformance/check_backend.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include <nlohmann/json.hpp>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/random.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/data/rows/dataset.h"
#include "core/data/rows/token_file.h"
#include "core/model/weights/checkpoint.h"
#include "core/worker/conformance/transcript.h"
#include "core/worker/messages.h"

namespace forge::conformance {

namespace {

using Json = nlohmann::json;
using worker::Request;
using worker::TrainMetrics;

/// A training run of a few thousand weights, a hundred tokens a step and no tokenizer, for trying a
/// backend out.
struct TinyCase {
  Json experiment;  ///< complete, as in config.json
  worker::TokenSource train_tokens;
  worker::TokenSource evaluation_tokens;
};

constexpr int64_t tiny_steps = 8;
constexpr int64_t tiny_checkpoint_every = 4;
constexpr int vocabulary = 300;
constexpr int seq_len = 16;
constexpr int batch_size = 4;
constexpr int64_t train_tokens = 4000;
constexpr int64_t evaluation_tokens = 400;

config::Experiment tiny_experiment() {
  config::Experiment e;
  e.name = "backend test";
  e.profile = "full";
  e.model.vocab_size = e.tokenizer.vocab_size = vocabulary;
  e.model.hidden_size = 16;
  e.model.mlp.intermediate_size = 32;
  e.model.num_layers = 1;
  e.model.attention.num_heads = e.model.attention.num_kv_heads = 2;
  e.model.attention.head_dim = 8;
  e.data.source = "text";
  e.data.order = config::RowOrder::sequential;
  e.train.batch_size = batch_size;
  e.train.seq_len = seq_len;
  e.train.max_steps = tiny_steps;
  e.train.deterministic = true;
  e.train.log_every = 1;
  e.train.eval_every = 0;
  e.train.checkpoint_every = tiny_checkpoint_every;
  e.train.eval_rows = 8;
  e.train.eval_batch_size = 4;
  e.optimizer.lr = 1e-3;
  e.schedule.type = "constant";
  return e;
}

void use_supported_values(Json& experiment, const worker::Supports& supports) {
  for (const auto& [key, values] : supports.config.items()) {
    std::string pointer;
    for (const std::string& part : split(key, '.')) pointer += "/" + part;
    const Json::json_pointer place(pointer);
    if (!experiment.contains(place) || !values.is_array() || values.empty()) continue;
    const auto make_supported = [&values = values](Json& value) {
      if (std::find(values.begin(), values.end(), value) == values.end()) value = values.front();
    };
    Json& setting = experiment[place];
    // What a backend supports of a list, such as model.layers, it says of each element.
    if (setting.is_array()) {
      for (Json& element : setting) make_supported(element);
    } else {
      make_supported(setting);
    }
  }
}

/// Ids in which one foretells the next, now and then.
void write_tokens(const fs::path& path, int64_t count, uint64_t stream) {
  RandomStream random(1, stream);
  std::vector<int32_t> ids = {5};
  while (static_cast<int64_t>(ids.size()) < count) {
    const bool follows = random.below(4) != 0;
    ids.push_back(follows ? (ids.back() * 7 + 3) % vocabulary
                          : static_cast<int32_t>(random.below(vocabulary)));
  }
  data::TokenFileWriter writer(path, vocabulary, std::string(32, '0'));
  writer.append(ids.data(), ids.size(), {0});
  writer.finish();
}

worker::TokenSource source_of(const fs::path& path, int64_t tokens) {
  worker::TokenSource source;
  source.path = fs::absolute(path).string();
  source.rows = data::rows_of(tokens, seq_len, data::LastRow::whole);
  return source;
}

/// Writes its token files to `folder`. Where the backend said which values a key may have and the
/// case's is none of them, the first of them takes its place.
TinyCase make_tiny_case(const fs::path& folder, const std::optional<worker::Supports>& supports) {
  TinyCase tiny;
  tiny.experiment = config::to_json(tiny_experiment());
  if (supports) use_supported_values(tiny.experiment, *supports);
  write_tokens(folder / "train.tokens", train_tokens, 1);
  write_tokens(folder / "evaluation.tokens", evaluation_tokens, 2);
  tiny.train_tokens = source_of(folder / "train.tokens", train_tokens);
  tiny.evaluation_tokens = source_of(folder / "evaluation.tokens", evaluation_tokens);
  return tiny;
}

/// The request to train it for `steps` steps in `run_dir`.
Request training_request(const TinyCase& tiny, const fs::path& run_dir, int64_t steps) {
  Request request;
  request.job = worker::Job::train;
  request.run_dir = fs::absolute(run_dir).string();
  request.experiment = tiny.experiment;
  request.experiment["train"]["max_steps"] = steps;
  request.weights = worker::weights_json(config::experiment_from_json(request.experiment).model);
  request.train_tokens = {tiny.train_tokens};
  request.evaluation_tokens = {tiny.evaluation_tokens};
  request.device = "cpu";
  request.threads = 1;
  return request;
}

constexpr int64_t endless_steps = 1'000'000;
constexpr double max_silence = 10;  // seconds: a tenth of what ends a run

/// A check that cannot be made.
struct Skipped {
  std::string reason;
};

class Checker {
 public:
  Checker(worker::Launcher& launcher,
          const worker::WorkerCommand& command,
          const fs::path& folder,
          const CheckOptions& options)
      : launcher_(launcher), command_(command), folder_(folder), options_(options) {}

  std::vector<Finding> run() {
    check("describe", [&] { return describe(); });
    check("unknown keys", [&] { return ignore_unknown_keys(); });
    check("wrong job", [&] { return refuse(R"({"job":"no such job"})", "a job that is none"); });
    check("malformed request",
          [&] { return refuse("{\"job\":\"train\",", "a request that is no JSON"); });
    tiny_ = make_tiny_case(folder_, supports_);
    check("train", [&] { return train(); });
    check("repeat", [&] { return repeat(); });
    check("resume", [&] { return resume(); });
    check("stop", [&] { return stop(); });
    check("save", [&] { return save(); });
    check("evaluate", [&] { return evaluate(); });
    return std::move(findings_);
  }

 private:
  template <class Check>
  void check(const std::string& name, Check make) {
    if (options_.on_check) options_.on_check(name);
    Finding finding{name, Verdict::passed, "", ""};
    try {
      finding.text = make();
    } catch (const Skipped& skipped) {
      finding.verdict = Verdict::skipped;
      finding.text = skipped.reason;
    } catch (const Error& problem) {
      finding.verdict = Verdict::failed;
      finding.text = problem.message();
      finding.hint = problem.hint();
    }
    findings_.push_back(std::move(finding));
  }

  using Listener = std::function<void(const worker::Event&, worker::RunningWorker&)>;

  Transcript ask(const std::string& line, const Listener& on_event = {}) {
    const fs::path errors = folder_ / "stderr.log";
    return run_worker(launcher_,
                      {command_, line, folder_, errors},
                      options_.patience_seconds,
                      options_.longest_seconds,
                      on_event);
  }
  Transcript ask(const Request& request, const Listener& on_event = {}) {
    return ask(worker::to_line(request), on_event);
  }

  static Request describe_request() {
    Request request;
    request.device = "auto";
    return request;
  }

  std::string describe() {
    const Transcript said = ask(describe_request());
    require_opening(said);
    require_success(said);
    const auto* supports = said.last<worker::Supports>();
    const size_t wanted = supports ? 3 : 2;
    if (said.events.size() != wanted) {
      throw Error(
          "'" + std::string(worker::name_of(said.events.back())) + "' came after a describe",
          "it is answered with hello, environment and supports");
    }
    if (supports) {
      for (const auto& [key, values] : supports->config.items()) {
        if (!values.is_array()) throw Error("'" + key + "' of 'supports' is no list of values");
      }
      supports_ = *supports;
    }
    const auto* hello = said.last<worker::Hello>();
    const auto* environment = said.last<worker::Environment>();
    return hello->backend + " " + hello->backend_version + " on " + environment->device_name;
  }

  std::string ignore_unknown_keys() {
    Json request = Json::parse(worker::to_line(describe_request()));
    request["key_of_tomorrow"] = {{"inner", {1, 2, 3}}};
    const Transcript said = ask(worker::to_line(request));
    require_opening(said);
    if (said.last<worker::Failed>() || said.exit.code != worker::exit_done)
      throw Error("a request with a key that it does not know made it fail", "ignore such keys");
    return "";
  }

  std::string refuse(const std::string& line, const std::string& what) {
    require_refusal(ask(line), what);
    return "";
  }

  std::string train() {
    if (!can("train")) throw Skipped{"it does not say that it trains"};
    const Request request = training_request(tiny_, folder_ / "train", tiny_steps);
    straight_ = ask(request);
    require_training(straight_, request, 0);
    require_exit(straight_, worker::exit_done);
    if (!straight_.last<worker::Finished>()->completed)
      throw Error("'completed' is false though nobody asked it to stop");
    if (straight_.longest_silence > max_silence) {
      throw Error("it said nothing new for " + human_duration(straight_.longest_silence),
                  "send 'progress' at least every second; after two minutes forge ends a worker");
    }
    has_trained_ = true;
    return std::to_string(tiny_steps) + " steps, loss " +
           shortest(straight_.all<TrainMetrics>().front().loss) + " to " +
           shortest(straight_.last<TrainMetrics>()->loss) + ", evaluation " +
           shortest(straight_.last<worker::Evaluation>()->loss);
  }

  /// The losses after `first_step` must be those of the straight run.
  void require_same_losses(const Transcript& other, int64_t first_step) const {
    std::vector<TrainMetrics> wanted;
    for (const TrainMetrics& train : straight_.all<TrainMetrics>()) {
      if (train.step > first_step) wanted.push_back(train);
    }
    const std::vector<TrainMetrics> got = other.all<TrainMetrics>();
    if (got.size() != wanted.size())
      throw Error("it gave other 'train' events than the first time");
    for (size_t i = 0; i < got.size(); ++i) {
      if (got[i].loss == wanted[i].loss) continue;
      throw Error("the loss of step " + std::to_string(got[i].step) + " is " +
                      shortest(got[i].loss) + ", and was " + shortest(wanted[i].loss) +
                      " in the straight run",
                  "train.deterministic is true: the same bits each time, and after a resume");
    }
  }

  std::string repeat() {
    require_trained();
    const Request request = training_request(tiny_, folder_ / "repeat", tiny_steps);
    const Transcript said = ask(request);
    require_training(said, request, 0);
    require_same_losses(said, 0);
    return "the same losses to the bit";
  }

  std::string resume() {
    require_trained();
    Request request = training_request(tiny_, folder_ / "train", tiny_steps);
    const fs::path half =
        folder_ / "train" / "checkpoints" / weights::checkpoint_name(tiny_checkpoint_every);
    if (!fs::exists(half)) throw Error("the checkpoint before the last one is gone", "keep two");
    request.weights.clear();
    request.resume_from = fs::absolute(half).string();
    request.run_dir = fs::absolute(folder_ / "resume").string();
    const Transcript said = ask(request);
    require_training(said, request, tiny_checkpoint_every);
    require_exit(said, worker::exit_done);
    require_same_losses(said, tiny_checkpoint_every);
    return "from step " + std::to_string(tiny_checkpoint_every) + " on the same losses to the bit";
  }

  std::string stop() {
    require_trained();
    Request request = training_request(tiny_, folder_ / "stop", endless_steps);
    request.experiment["train"]["checkpoint_every"] = 0;
    std::optional<double> asked_at;
    bool goes_on = false;
    const Transcript said =
        ask(request, [&](const worker::Event& event, worker::RunningWorker& worker) {
          const auto* train = std::get_if<TrainMetrics>(&event);
          if (asked_at && !goes_on && steady_seconds() - *asked_at > options_.patience_seconds) {
            goes_on = true;
            worker.kill();
          } else if (train && train->step >= 3 && !asked_at) {
            asked_at = steady_seconds();
            worker.request_stop();
          }
        });
    if (goes_on || (said.was_killed && asked_at && said.wrong_line.empty()))
      throw Error("it went on after SIGTERM", "finish the step, save, say 'finished' and leave");
    if (said.exit.signal != 0)
      throw Error("SIGTERM ended it by " + said.exit.describe(),
                  "handle it: save and say 'finished'");
    require_training(said, request, 0);
    const auto* finished = said.last<worker::Finished>();
    if (finished->completed) throw Error("'completed' is true though it was stopped");
    require_exit(said, worker::exit_stopped);
    return "saved and left after step " + std::to_string(finished->step);
  }

  std::string save() {
    require_trained();
    const auto* hello = straight_.last<worker::Hello>();
    if (!hello || !hello->saves_on_request)
      throw Skipped{"its 'hello' does not say 'saves_on_request'"};
    Request request = training_request(tiny_, folder_ / "save", endless_steps);
    request.experiment["train"]["checkpoint_every"] = 0;
    std::optional<double> asked_at;
    std::optional<int64_t> saved;
    bool given_up = false;
    const Transcript said =
        ask(request, [&](const worker::Event& event, worker::RunningWorker& worker) {
          const auto* train = std::get_if<TrainMetrics>(&event);
          const auto* checkpoint = std::get_if<worker::CheckpointSaved>(&event);
          if (asked_at && steady_seconds() - *asked_at > options_.patience_seconds) {
            given_up = true;
            worker.kill();
          } else if (checkpoint && !saved) {
            saved = checkpoint->step;
            asked_at = steady_seconds();
            worker.request_stop();
          } else if (train && train->step >= 3 && !asked_at) {
            asked_at = steady_seconds();
            worker.request_checkpoint();
          }
        });
    if (!saved && said.exit.signal != 0 && !said.was_killed && !given_up)
      throw Error("SIGUSR1 ended it by " + said.exit.describe(), "handle it: save and go on");
    if (!saved) throw Error("SIGUSR1 brought no 'checkpoint'", "save after the step, and go on");
    require_training(said, request, 0);
    return "saved after step " + std::to_string(*saved) + " and went on";
  }

  std::string evaluate() {
    require_trained();
    if (!can("evaluate")) throw Skipped{"it does not say that it evaluates"};
    Request request = training_request(tiny_, folder_ / "evaluate", tiny_steps);
    request.job = worker::Job::evaluate;
    request.weights.clear();
    request.train_tokens.clear();
    request.initial_weights =
        fs::absolute(folder_ / "train" / "checkpoints" / weights::checkpoint_name(tiny_steps))
            .string();
    const Transcript said = ask(request);
    require_opening(said);
    require_success(said);
    const auto* result = said.last<worker::Result>();
    if (!result) throw Error("there was no 'result'");
    for (const char* key : {"loss", "tokens", "seconds"}) {
      const auto value = result->values.find(key);
      if (value == result->values.end() || !value->is_number())
        throw Error(std::string("'") + key + "' of the result's 'values' is no number");
    }
    const double loss = result->values.at("loss").get<double>();
    const double wanted = straight_.last<worker::Evaluation>()->loss;
    if (std::abs(loss - wanted) > 1e-5 * std::max(1.0, std::abs(wanted))) {
      throw Error("the last checkpoint's loss is " + shortest(loss) + ", and was " +
                  shortest(wanted) + " when training ended");
    }
    return "loss " + shortest(loss);
  }

  bool can(const std::string& job) const {
    if (!supports_) return true;
    const std::vector<std::string>& jobs = supports_->jobs;
    return std::find(jobs.begin(), jobs.end(), job) != jobs.end();
  }

  void require_trained() const {
    if (!has_trained_) throw Skipped{"it needs what 'train' would have left"};
  }

  worker::Launcher& launcher_;
  const worker::WorkerCommand& command_;
  const fs::path& folder_;
  const CheckOptions& options_;
  std::optional<worker::Supports> supports_;
  TinyCase tiny_;
  Transcript straight_;
  bool has_trained_ = false;
  std::vector<Finding> findings_;
};

}  // namespace

const std::string& name_of(Verdict verdict) {
  static const std::string names[] = {"passed", "failed", "skipped"};
  return names[static_cast<size_t>(verdict)];
}

std::vector<Finding> check_backend(worker::Launcher& launcher,
                                   const worker::WorkerCommand& command,
                                   const fs::path& folder,
                                   const CheckOptions& options) {
  for (const char* run : {"train", "repeat", "resume", "save", "stop", "evaluate"})
    make_directories(folder / run);
  return Checker(launcher, command, folder, options).run();
}

}  // namespace forge::conformance

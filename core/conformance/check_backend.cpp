#include "core/conformance/check_backend.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/conformance/rules.h"
#include "core/conformance/tiny_case.h"
#include "core/weights/checkpoint.h"

namespace forge::conformance {
namespace {

using protocol::Request;
using protocol::TrainMetrics;

constexpr int64_t endless_steps = 1'000'000;
constexpr double loudest_silence = 10;  // seconds: a tenth of what ends a run

/// A check that cannot be made.
struct Skipped {
  std::string reason;
};

std::string text_of(double value) { return shortest(value); }

class Checker {
 public:
  Checker(run::Launcher& launcher,
          const run::WorkerCommand& command,
          const fs::path& folder,
          const CheckOptions& options)
      : launcher_(launcher), command_(command), folder_(folder), options_(options) {}

  std::vector<Finding> run() {
    check("describe", [&] { return describe(); });
    check("unknown keys", [&] { return ignore_unknown_keys(); });
    check("wrong job", [&] { return refuse(R"({"job":"no such job"})", "a job that is none"); });
    check("rubbish", [&] { return refuse("{\"job\":\"train\",", "a request that is no JSON"); });
    make_case();
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

  using Listener = std::function<void(const protocol::Event&, run::RunningWorker&)>;

  Transcript ask(const std::string& line, const Listener& on_event = {}) {
    const fs::path errors = folder_ / "stderr.log";
    return listen(launcher_,
                  {command_, line, folder_, errors},
                  options_.patience_seconds,
                  options_.longest_seconds,
                  on_event);
  }
  Transcript ask(const Request& request, const Listener& on_event = {}) {
    return ask(protocol::to_line(request), on_event);
  }

  static Request describe_request() {
    Request request;
    request.device = "auto";
    return request;
  }

  std::string describe() {
    const Transcript said = ask(describe_request());
    require_opening(said);
    if (const auto* failed = said.last<protocol::Failed>())
      complain("it failed: " + failed->message, failed->hint);
    require_exit(said, protocol::exit_done);
    const auto* supports = said.last<protocol::Supports>();
    const size_t wanted = supports ? 3 : 2;
    if (said.events.size() != wanted) {
      complain("'" + std::string(protocol::name_of(said.events.back())) + "' came after a describe",
               "it is answered with hello, environment and supports");
    }
    if (supports) {
      for (const auto& [key, values] : supports->config.items()) {
        if (!values.is_array()) complain("'" + key + "' of 'supports' is no list of values");
      }
      supports_ = *supports;
    }
    const auto* hello = said.last<protocol::Hello>();
    const auto* environment = said.last<protocol::Environment>();
    return hello->backend + " " + hello->backend_version + " on " + environment->device_name;
  }

  std::string ignore_unknown_keys() {
    Json request = Json::parse(protocol::to_line(describe_request()));
    request["key_of_tomorrow"] = {{"inner", {1, 2, 3}}};
    const Transcript said = ask(protocol::to_line(request));
    require_opening(said);
    if (said.last<protocol::Failed>() || said.exit.code != protocol::exit_done)
      complain("a request with a key that it does not know made it fail", "ignore such keys");
    return "";
  }

  std::string refuse(const std::string& line, const std::string& what) {
    require_refusal(ask(line), what);
    return "";
  }

  void make_case() { tiny_ = make_tiny_case(folder_, supports_); }

  std::string train() {
    if (!can("train")) throw Skipped{"it does not say that it trains"};
    const Request request = training_request(tiny_, folder_ / "train", tiny_steps);
    straight_ = ask(request);
    require_training(straight_, request, 0);
    require_exit(straight_, protocol::exit_done);
    if (!straight_.last<protocol::Finished>()->completed)
      complain("'completed' is false though nobody asked it to stop");
    if (straight_.longest_silence > loudest_silence) {
      complain("it said nothing new for " + human_duration(straight_.longest_silence),
               "send 'progress' at least every second; after two minutes forge ends a worker");
    }
    has_trained_ = true;
    return std::to_string(tiny_steps) + " steps, loss " +
           text_of(straight_.all<TrainMetrics>().front().loss) + " to " +
           text_of(straight_.last<TrainMetrics>()->loss) + ", evaluation " +
           text_of(straight_.last<protocol::Evaluation>()->loss);
  }

  /// The losses after `first_step` must be those of the straight run.
  void require_same_losses(const Transcript& other, int64_t first_step) const {
    std::vector<TrainMetrics> wanted;
    for (const TrainMetrics& train : straight_.all<TrainMetrics>()) {
      if (train.step > first_step) wanted.push_back(train);
    }
    const std::vector<TrainMetrics> got = other.all<TrainMetrics>();
    if (got.size() != wanted.size()) complain("it gave other 'train' events than the first time");
    for (size_t i = 0; i < got.size(); ++i) {
      if (got[i].loss == wanted[i].loss) continue;
      complain("the loss of step " + std::to_string(got[i].step) + " is " + text_of(got[i].loss) +
                   ", and was " + text_of(wanted[i].loss) + " in the straight run",
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
    if (!fs::exists(half)) complain("the checkpoint before the last one is gone", "keep two");
    request.resume_from = fs::absolute(half).string();
    request.run_dir = fs::absolute(folder_ / "resume").string();
    const Transcript said = ask(request);
    require_training(said, request, tiny_checkpoint_every);
    require_exit(said, protocol::exit_done);
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
        ask(request, [&](const protocol::Event& event, run::RunningWorker& worker) {
          const auto* train = std::get_if<TrainMetrics>(&event);
          if (asked_at && !goes_on && steady_seconds() - *asked_at > options_.patience_seconds) {
            goes_on = true;
            worker.kill();
          } else if (train && train->step >= 3 && !asked_at) {
            asked_at = steady_seconds();
            worker.ask_to_stop();
          }
        });
    if (goes_on || (said.was_killed && asked_at && said.wrong_line.empty()))
      complain("it went on after SIGTERM", "finish the step, save, say 'finished' and leave");
    if (said.exit.signal != 0)
      complain("SIGTERM ended it by " + said.exit.describe(), "handle it: save and say 'finished'");
    require_training(said, request, 0);
    const auto* finished = said.last<protocol::Finished>();
    if (finished->completed) complain("'completed' is true though it was stopped");
    require_exit(said, protocol::exit_stopped);
    return "saved and left after step " + std::to_string(finished->step);
  }

  std::string save() {
    require_trained();
    const auto* hello = straight_.last<protocol::Hello>();
    if (!hello || !hello->saves_on_request)
      throw Skipped{"its 'hello' does not say 'saves_on_request'"};
    Request request = training_request(tiny_, folder_ / "save", endless_steps);
    request.experiment["train"]["checkpoint_every"] = 0;
    std::optional<double> asked_at;
    std::optional<int64_t> saved;
    bool given_up = false;
    const Transcript said =
        ask(request, [&](const protocol::Event& event, run::RunningWorker& worker) {
          const auto* train = std::get_if<TrainMetrics>(&event);
          const auto* checkpoint = std::get_if<protocol::CheckpointSaved>(&event);
          if (asked_at && steady_seconds() - *asked_at > options_.patience_seconds) {
            given_up = true;
            worker.kill();
          } else if (checkpoint && !saved) {
            saved = checkpoint->step;
            asked_at = steady_seconds();
            worker.ask_to_stop();
          } else if (train && train->step >= 3 && !asked_at) {
            asked_at = steady_seconds();
            worker.ask_to_save();
          }
        });
    if (!saved && said.exit.signal != 0 && !said.was_killed && !given_up)
      complain("SIGUSR1 ended it by " + said.exit.describe(), "handle it: save and go on");
    if (!saved) complain("SIGUSR1 brought no 'checkpoint'", "save after the step, and go on");
    require_training(said, request, 0);
    return "saved after step " + std::to_string(*saved) + " and went on";
  }

  std::string evaluate() {
    require_trained();
    if (!can("evaluate")) throw Skipped{"it does not say that it evaluates"};
    Request request = training_request(tiny_, folder_ / "evaluate", tiny_steps);
    request.job = protocol::Job::evaluate;
    request.train_tokens.clear();
    request.initial_weights =
        fs::absolute(folder_ / "train" / "checkpoints" / weights::checkpoint_name(tiny_steps))
            .string();
    const Transcript said = ask(request);
    require_opening(said);
    if (const auto* failed = said.last<protocol::Failed>())
      complain("it failed: " + failed->message, failed->hint);
    require_exit(said, protocol::exit_done);
    const auto* result = said.last<protocol::Result>();
    if (!result) complain("there was no 'result'");
    for (const char* key : {"loss", "tokens", "seconds"}) {
      const auto value = result->values.find(key);
      if (value == result->values.end() || !value->is_number())
        complain(std::string("'") + key + "' of the result's 'values' is no number");
    }
    const double loss = result->values.at("loss").get<double>();
    const double wanted = straight_.last<protocol::Evaluation>()->loss;
    if (std::abs(loss - wanted) > 1e-5 * std::max(1.0, std::abs(wanted))) {
      complain("the last checkpoint's loss is " + text_of(loss) + ", and was " + text_of(wanted) +
               " when training ended");
    }
    return "loss " + text_of(loss);
  }

  bool can(const std::string& job) const {
    if (!supports_) return true;
    const std::vector<std::string>& jobs = supports_->jobs;
    return std::find(jobs.begin(), jobs.end(), job) != jobs.end();
  }

  void require_trained() const {
    if (!has_trained_) throw Skipped{"it needs what 'train' would have left"};
  }

  using Json = nlohmann::json;

  run::Launcher& launcher_;
  const run::WorkerCommand& command_;
  const fs::path& folder_;
  const CheckOptions& options_;
  std::optional<protocol::Supports> supports_;
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

std::vector<Finding> check_backend(run::Launcher& launcher,
                                   const run::WorkerCommand& command,
                                   const fs::path& folder,
                                   const CheckOptions& options) {
  for (const char* run : {"train", "repeat", "resume", "save", "stop", "evaluate"})
    make_directories(folder / run);
  return Checker(launcher, command, folder, options).run();
}

}  // namespace forge::conformance

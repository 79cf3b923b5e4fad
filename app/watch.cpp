#include "app/watch.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <thread>

#include "app/progress_line.h"
#include "core/base/clock.h"
#include "core/base/text.h"
#include "core/report/display_text.h"
#include "core/report/scores.h"
#include "core/run/follow.h"

namespace forge::app {
namespace {

constexpr auto poll_interval = std::chrono::milliseconds(100);

/// What the live line shows, gathered from a run's events.
class View {
 public:
  void take(const protocol::Event& event) {
    if (const auto* started = std::get_if<protocol::Started>(&event)) {
      max_steps_ = started->max_steps;
      step_ = first_step_ = started->first_step;
      began_ = steady_seconds();
    } else if (const auto* progress = std::get_if<protocol::Progress>(&event)) {
      step_ = progress->step;
      phase_ = progress->phase;
    } else if (const auto* metrics = std::get_if<protocol::TrainMetrics>(&event)) {
      step_ = metrics->step;
      phase_ = "train";
      loss_ = metrics->loss;
      tokens_per_second_ = metrics->tokens_per_second;
    } else if (const auto* evaluation = std::get_if<protocol::Evaluation>(&event)) {
      eval_loss_ = evaluation->loss;
      const auto* score = report::headline(evaluation->scores);
      score_ = score ? report::printable(score->first) + " " + fixed(score->second.value) : "";
    }
  }

  bool started() const { return max_steps_ > 0; }
  double fraction() const { return double(step_) / double(max_steps_); }

  std::string text() const {
    std::string text = "step " + std::to_string(step_) + "/" + std::to_string(max_steps_);
    if (loss_) text += "  loss " + fixed(*loss_);
    if (eval_loss_) text += "  eval " + fixed(*eval_loss_);
    if (!score_.empty()) text += "  " + score_;
    if (tokens_per_second_ > 0)
      text += "  " + with_thousands(std::llround(tokens_per_second_)) + " tok/s";
    if (phase_ == "evaluate") return text + "  evaluating";
    if (phase_ == "save") return text + "  saving";
    const double per_step =
        (steady_seconds() - began_) / double(std::max<int64_t>(1, step_ - first_step_));
    if (step_ > first_step_)
      text += "  ETA " + human_duration(per_step * double(max_steps_ - step_));
    return text;
  }

 private:
  static std::string fixed(double number) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.4f", number);
    return digits;
  }

  int64_t step_ = 0, first_step_ = 0, max_steps_ = 0;
  std::string phase_;
  std::optional<double> loss_, eval_loss_;
  std::string score_;  ///< of the last evaluation, with its name
  double tokens_per_second_ = 0;
  double began_ = 0;
};

/// What is wrong with the checkpoints that an attempt did not go on from.
std::vector<std::string> skipped_by(const run::StoredEvent& stored) {
  if (stored.name != "attempt" || !stored.json.contains("damaged")) return {};
  return stored.json.at("damaged").get<std::vector<std::string>>();
}

}  // namespace

run::RunStatus watch(const run::RunFolder& folder,
                     const std::string& label,
                     const Interrupts& interrupts) {
  run::Follower follower(folder);
  ProgressLine line(label);
  View view;
  int answered = interrupts.count();
  while (true) {
    const run::Update update = follower.poll();
    for (const run::StoredEvent& stored : update.events) {
      if (stored.event) view.take(*stored.event);
      for (const std::string& problem : skipped_by(stored)) {
        line.say("warning: " + label + ": " + problem + "; going on from the one before it");
      }
    }
    if (update.progress) view.take(*update.progress);
    if (view.started()) line.show(view.fraction(), view.text());
    if (update.over) break;
    if (interrupts.count() > answered) {
      answered = interrupts.count();
      folder.request_stop(answered == 1 ? run::Stop::save : run::Stop::now);
      line.say(answered == 1
                   ? "stopping " + label + " after saving a checkpoint; Ctrl-C again stops it now"
                   : "stopping " + label + " now");
    }
    std::this_thread::sleep_for(poll_interval);
  }
  line.clear();
  return folder.status();
}

}  // namespace forge::app

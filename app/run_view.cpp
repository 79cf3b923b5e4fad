#include "app/run_view.h"

#include <cmath>
#include <cstdio>

#include "core/base/clock.h"
#include "core/base/text.h"
#include "core/report/display_text.h"
#include "core/report/scores.h"

namespace forge::app {
namespace {

std::string fixed(double number) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.4f", number);
  return digits;
}

}  // namespace

void RunView::take(const protocol::Event& event) {
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

double RunView::fraction() const { return max_steps_ > 0 ? double(step_) / double(max_steps_) : 0; }

std::string RunView::text() const {
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
  if (step_ > first_step_) text += "  ETA " + human_duration(per_step * double(max_steps_ - step_));
  return text;
}

std::string RunView::short_text() const {
  std::string text = std::to_string(std::lround(100 * fraction())) + " %";
  if (loss_) text += "  loss " + fixed(*loss_);
  return text;
}

}  // namespace forge::app

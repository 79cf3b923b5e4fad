#include "app/run_view.h"

#include <cmath>
#include <variant>

#include "core/base/clock.h"
#include "core/base/display_text.h"
#include "core/base/text.h"
#include "core/results/metrics.h"
#include "core/results/store/run_summary.h"

namespace forge::app {

void RunView::take(const worker::Event& event, double time) {
  if (const auto* started = std::get_if<worker::Started>(&event)) {
    // What was said of later steps is about weights that are gone.
    if (started->first_step < pace_.step()) *this = RunView();
  }
  pace_.take(event, time);
  if (const auto* progress = std::get_if<worker::Progress>(&event)) {
    phase_ = progress->phase;
  } else if (const auto* metrics = std::get_if<worker::TrainMetrics>(&event)) {
    phase_ = "train";
    loss_ = metrics->loss;
    if (metrics->tokens_per_second) tokens_per_second_ = metrics->tokens_per_second;
  } else if (const auto* evaluation = std::get_if<worker::Evaluation>(&event)) {
    eval_loss_ = evaluation->loss;
    const auto* score = store::headline(evaluation->scores);
    score_ =
        score ? tables::printable(score->first) + " " + results::fixed_text(score->second.value, 4)
              : "";
  }
}

std::string RunView::text() const {
  std::string text =
      "step " + std::to_string(pace_.step()) + "/" + std::to_string(pace_.max_steps());
  if (phase_ == "evaluate") {
    text += "  evaluating";
  } else if (phase_ == "save") {
    text += "  saving";
  } else if (phase_ == "room") {
    text += "  waiting for room on the disk";
  } else if (const auto seconds = pace_.seconds_left(unix_time())) {
    text += "  ETA " + human_duration(*seconds);
  }
  if (loss_) text += "  loss " + results::fixed_text(*loss_, 4);
  if (eval_loss_) text += "  eval " + results::fixed_text(*eval_loss_, 4);
  if (!score_.empty()) text += "  " + score_;
  if (tokens_per_second_)
    text += "  " + with_thousands(std::llround(*tokens_per_second_)) + " tok/s";
  return text;
}

std::string RunView::short_text() const {
  std::string text = std::to_string(std::lround(100 * fraction())) + " %";
  if (loss_) text += "  loss " + results::fixed_text(*loss_, 4);
  return text;
}

}  // namespace forge::app

#include "core/worker/plausible.h"

#include <algorithm>
#include <cmath>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"

namespace forge::worker {

void require_not_negative(const std::string& name, double value) {
  if (!(value < 0)) return;
  throw Error("'" + name + "' is negative: " + shortest(value), ExitCode::failed);
}

void require_finite(const std::string& name, double value) {
  if (std::isfinite(value)) return;
  throw Error("'" + name + "' is no finite number: " + shortest(value), ExitCode::failed);
}

void require_duration(const std::string& name, double seconds) {
  constexpr double longest = 1e10;  // three centuries
  require_not_negative(name, seconds);
  if (seconds <= longest) return;
  throw Error("'" + name + "' is no number of seconds: " + shortest(seconds), ExitCode::failed);
}

void require_speed(double tokens_per_second) {
  constexpr double fastest = 1e15;  // a token takes a millionth of a nanosecond
  require_not_negative("tokens_per_second", tokens_per_second);
  if (tokens_per_second <= fastest) return;
  throw Error("'tokens_per_second' is impossible: " + shortest(tokens_per_second),
              ExitCode::failed);
}

void require_pace(int64_t tokens, double seconds) {
  require_duration("seconds", seconds);
  if (tokens > 0) require_speed(static_cast<double>(tokens) / seconds);
}

namespace {

bool is_rounded(double said, double other, double rounding) {
  return std::abs(said - other) <= rounding * std::max(1.0, std::abs(said));
}

/// Tests of a table take the error of an evaluation from its rows: rows that are not those of its
/// loss would make a p-value of nothing.
void require_rows_of(const Evaluation& evaluation) {
  const std::vector<double>& losses = evaluation.row_losses;
  const std::vector<int64_t>& tokens = evaluation.row_tokens;
  if (losses.empty() && tokens.empty()) return;
  const std::string of_step = " of the evaluation of step " + std::to_string(evaluation.step);
  if (losses.size() != tokens.size())
    throw Error(counted(losses.size(), "number") + " of row_losses and " +
                    std::to_string(tokens.size()) + " of row_tokens" + of_step,
                "each row of evaluation_tokens has one of each",
                ExitCode::failed);
  double sum = 0;
  int64_t scored = 0;
  for (size_t row = 0; row < losses.size(); ++row) {
    require_not_negative("row_losses", losses[row]);
    sum += losses[row] * static_cast<double>(tokens[row]);
    scored += tokens[row];
  }
  if (scored != evaluation.tokens)
    throw Error("row_tokens" + of_step + " add up to " + with_thousands(scored) +
                    ", and its tokens are " + with_thousands(evaluation.tokens),
                "row_tokens are the scored targets of each row of evaluation_tokens",
                ExitCode::failed);
  constexpr double rounding = 1e-4;  // of sums in 32 bits
  const double mean = sum / static_cast<double>(std::max<int64_t>(1, scored));
  if (!std::isfinite(evaluation.loss) || is_rounded(evaluation.loss, mean, rounding)) return;
  throw Error("row_losses" + of_step + " have the mean " + shortest(mean) + ", and its loss is " +
                  shortest(evaluation.loss),
              "the loss is the mean of row_losses, each weighted by its row_tokens",
              ExitCode::failed);
}

struct NumberCheck {
  void operator()(const TrainMetrics& metrics) const {
    require_not_negative("loss", metrics.loss);
    require_not_negative("gradient_norm", metrics.gradient_norm);
    require_not_negative("learning_rate", metrics.learning_rate);
    require_finite("learning_rate", metrics.learning_rate);
    require_speed(metrics.tokens_per_second.value_or(0));
    require_duration("elapsed_seconds", metrics.elapsed_seconds);
  }
  void operator()(const Evaluation& evaluation) const {
    require_not_negative("loss", evaluation.loss);
    require_not_negative("validation_loss", evaluation.validation_loss.value_or(0));
    require_rows_of(evaluation);
    require_duration("seconds", evaluation.seconds);
  }
  void operator()(const Finished& finished) const {
    require_not_negative("eval_loss", finished.eval_loss.value_or(0));
    require_not_negative("train_loss", finished.train_loss.value_or(0));
    require_speed(finished.tokens_per_second.value_or(0));
    require_duration("wall_seconds", finished.wall_seconds);
    require_duration("first_step_seconds", finished.first_step_seconds.value_or(0));
    require_duration("compile_seconds", finished.compile_seconds.value_or(0));
  }
  void operator()(const CheckpointSaved& saved) const {
    require_duration("pause_seconds", saved.pause_seconds);
  }
  void operator()(const MicroBatch& reduced) const {
    if (reduced.rows >= 1 && reduced.rows <= reduced.of) return;
    throw Error("'micro_batch' says that " + std::to_string(reduced.rows) + " rows of " +
                    std::to_string(reduced.of) + " are computed at once",
                "'rows' are at least 1 and at most 'of'",
                ExitCode::failed);
  }
  void operator()(const Failed& failed) const {
    if (!failed.diverged || (!failed.retry && !failed.lost)) return;
    throw Error(std::string("'failed' says both 'diverged' and '") +
                    (failed.retry ? "retry" : "lost") + "': " + failed.message,
                "a run that diverged would do so again, in all of its processes",
                ExitCode::failed);
  }
  template <class Other>
  void operator()(const Other&) const {}
};

}  // namespace

void require_plausible(const Event& event) { std::visit(NumberCheck(), event); }

void require_same_loss(const Evaluation& evaluation, const Finished& finished) {
  constexpr double rounding = 1e-5;
  if (evaluation.step != finished.step || !finished.eval_loss) return;
  const double said = evaluation.loss, last = *finished.eval_loss;
  const bool is_none = !std::isfinite(said) && !std::isfinite(last);
  if (is_none || is_rounded(said, last, rounding)) return;
  throw Error("'finished' says that eval_loss is " + shortest(last) +
                  ", and the evaluation of step " + std::to_string(finished.step) + " said " +
                  shortest(said),
              "eval_loss is the loss of the evaluation after the last step",
              ExitCode::failed);
}

}  // namespace forge::worker

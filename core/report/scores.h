#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/store/run_summary.h"

/// The figures of synthetic tasks (docs/TASKS.md), as tables and claims treat them.
namespace forge::report {

using Scores = std::map<std::string, protocol::Score>;

/// Whether the score is the share of its cases in which something holds, as accuracies and
/// validities are: between 0 and 1, and shown as a percentage.
bool is_share(const std::string& name);

/// The score that says the most in one line: the first that is not of a part, as
/// "answer_accuracy.hop_8" is. Null where there is none.
const Scores::value_type* headline(const Scores& scores);

/// What a table file calls the evaluation loss where it could also name a score.
constexpr const char* eval_loss_name = "eval_loss";

constexpr const char* train_loss_name = "train_loss";
constexpr const char* selection_loss_name = "selection_loss";
constexpr const char* tokens_per_second_name = "tokens_per_second";
constexpr const char* peak_memory_name = "peak_memory_bytes";
constexpr const char* parameters_name = "parameters";
constexpr const char* wall_seconds_name = "wall_seconds";

/// Of a row, not of a run by itself (core/report/equal_budget.h):
constexpr const char* loss_at_equal_time_name = "eval_loss_at_equal_time";
constexpr const char* loss_at_equal_flops_name = "eval_loss_at_equal_flops";

/// The names of a run's own figures, the first ones.
const std::vector<std::string>& run_figures();

/// Whether more of the figure is better, as of speeds, accuracies and validities; of losses and
/// costs less is.
bool more_is_better(const std::string& name);

/// Whether the figure is the device's as much as the model's: a time or a cost, which says nothing
/// beside one from another device.
bool is_of_the_device(const std::string& name);

/// Whether it is a time or follows from one: what else the machine did meanwhile is in it.
bool is_a_time(const std::string& name);

/// The run's figure of that name, or the score of that name at its last evaluation; none: not
/// measured.
std::optional<double> figure_of(const store::RunSummary& run, const std::string& name);

/// A range that holds the true share with 95 % confidence.
struct Interval {
  double low = 0;
  double high = 1;
};

/// Wilson's score interval for a share of `count` independent cases, within [0, 1]; all of it where
/// there are no cases. E. B. Wilson, JASA 22 (1927) 209.
Interval wilson_interval(double share, int64_t count);

}  // namespace forge::report

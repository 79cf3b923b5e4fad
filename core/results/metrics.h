#pragma once

#include <functional>
#include <string>
#include <vector>

/// The registry of metrics. A metric has one name everywhere: events of workers
/// (worker::metrics_of), columns of the store, expressions, tables, claims, exports and the page.
/// To add one, let the worker report it and add a line to the list in metrics.cpp.
namespace forge::results {

/// Decides how a value is printed.
enum class Unit { nats_per_token, fraction, tokens_per_second, bytes, seconds, count, number };

enum class Direction { lower_is_better, higher_is_better };

/// Where a metric comes from.
enum class Source {
  run,      ///< events of a run; its last value is a column of the run
  model,    ///< the run's model, known when training starts
  derived,  ///< computed from a run's other values
  window,   ///< train events only: a curve without a final value
  task,     ///< scores of a task at each evaluation, each with the number of its cases
  table,    ///< computed over the rows of a table
};

struct Metric {
  std::string name;   ///< "eval_loss"
  std::string title;  ///< "Eval loss", at the beginning of a line
  Unit unit = Unit::number;
  Direction better = Direction::lower_is_better;
  Source source = Source::run;
  /// Comparable only between runs on one device with the same threads and micro-batch size.
  bool depends_on_device = false;
  bool is_timing = false;  ///< not comparable where other processes loaded the machine
  bool is_cost = false;    ///< what quality is paid with: an axis of the page's trade-off
  bool is_held_out_loss = false;

  /// The loss on the rows evaluated on, that but for a constant, or that earlier in the training.
  bool is_eval_loss() const;

  bool higher_is_better() const { return better == Direction::higher_is_better; }
  /// Says how good a model is: tables mark significant differences of it.
  bool is_quality() const { return is_held_out_loss || source == Source::task; }
  /// Whether tables test differences of it. The validation loss chooses between runs: nobody knows
  /// the losses of its rows, and so not what other rows would change.
  bool is_tested() const;
  bool is_exact() const { return source == Source::model; }    ///< the same for every seed
  bool is_fraction() const { return unit == Unit::fraction; }  ///< 0 to 1, shown as a percentage
};

// Names that code needs.
constexpr const char* eval_loss_name = "eval_loss";
/// eval_loss minus the entropy floor of the text: what a model may still learn.
constexpr const char* loss_above_floor_name = "eval_loss_above_floor";
constexpr const char* train_loss_name = "train_loss";
constexpr const char* validation_loss_name = "validation_loss";
constexpr const char* tokens_per_second_name = "tokens_per_second";
constexpr const char* wall_seconds_name = "wall_seconds";
constexpr const char* peak_memory_name = "peak_memory_bytes";
constexpr const char* peak_resident_name = "peak_resident_bytes";
constexpr const char* parameters_name = "parameters";
/// What a row of a batch keeps while text is generated, in numbers: for each of its tokens, and
/// whatever its length.
constexpr const char* state_per_token_name = "state_per_token";
constexpr const char* fixed_state_name = "fixed_state";
constexpr const char* loss_at_equal_time_name = "eval_loss_at_equal_time";
constexpr const char* loss_at_equal_flops_name = "eval_loss_at_equal_flops";

/// Every metric, in the order in which lists show them.
const std::vector<Metric>& metrics();

/// Null for a name that is not registered.
const Metric* find_metric(const std::string& name);

/// The metric of that name. Scores that are not registered are fractions if they end in "accuracy"
/// or "validity", else numbers of which lower is better. "answer_accuracy.hop_8" is a part of
/// answer_accuracy and has its properties.
Metric metric_named(const std::string& name);

/// The names of a run's own metrics: those of Source::run, Source::model and Source::derived.
const std::vector<std::string>& run_metric_names();
/// The same with the metrics of tables.
std::vector<std::string> run_and_table_metric_names();

/// A value as people read it, in its unit: "1.3011", "87.5 %", "43.1K", "1.50 GiB", "1 h 2 min",
/// "4,312". A value that is not finite is "nan", "inf" or "-inf".
std::string text(double value, const Metric& metric);

/// The fewest decimals, from `least` on, with which no value looks like a limit that it is not.
int decimals_beside(const std::vector<double>& limits,
                    const std::vector<double>& values,
                    int least);

/// Writes values as text() does or, where one of `values` would look like the limit though it is
/// not, in the metric's unit with more decimals: "2.57 s" beside 2.6, "3s" beside 60.
std::function<std::string(double)> text_beside(double limit,
                                               const std::vector<double>& values,
                                               const Metric& metric);

/// Half of a confidence interval around `mean`: of a speed as a percentage of it.
std::string half_width_text(double half_width, double mean, const Metric& metric);

/// Four decimals: "1.3011".
std::string loss_text(double loss);

/// With so many decimals and a minus sign instead of a hyphen.
std::string fixed_text(double number, int decimals);

/// "4,312", "43.1K", "291K", "3.31M".
std::string throughput_text(double tokens_per_second);

/// "p 0.031", "p 0.0004", "p < 0.0001".
std::string p_value_text(double p);

/// A fraction as a percentage with one decimal: "2.0 %".
std::string percent_text(double fraction);

/// A fraction as a signed percentage with one decimal: "−9.3 %", "+41.3 %".
std::string change_text(double change);

}  // namespace forge::results

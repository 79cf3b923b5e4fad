#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/results/tables/ablation.h"
#include "core/results/tables/comparability.h"
#include "core/results/tables/table_spec.h"

/// Rows that show the best over the values of one key, such as the learning rate.
namespace forge::tables {

/// The number that a config has of a key: its default where it does not name the key. NaN for what
/// is no number.
double number_of(const nlohmann::json& config, const std::string& key);

/// A value of best_of as one writes it: "2" and "0.004".
std::string value_text(double value);

/// A grid goes on by so many values at each end.
constexpr int most_extensions = 4;

/// The value that follows the last one (or goes before the first one) of a grid, at the distance,
/// as a ratio, of the two at that end; rounded to six digits, or to an integer where the key is
/// one. None where the grid does not go on: it has gone on `most_extensions` times, its values are
/// not all positive, or the key cannot have the next one.
std::optional<double> next_value(const BestOfSpec& best_of,
                                 const std::vector<double>& grid,
                                 bool upwards);

/// The values by which a grid goes on because one of those that rows have chosen is at its end. All
/// rows get them, so that all are tuned alike.
std::vector<double> values_beyond(const BestOfSpec& best_of,
                                  const std::vector<double>& grid,
                                  const std::vector<double>& chosen);

/// Whether runs with this mean of `by` are to be preferred to those with the other one. What is not
/// a number is preferred to nothing.
bool is_preferred(const BestOfSpec& best_of,
                  std::optional<double> own,
                  std::optional<double> other);

/// Whether runs of the seed are those that the value is chosen with, and are not shown.
bool is_tuning_seed(const BestOfSpec& best_of, int64_t seed);

/// Whether the value is chosen with runs of the seed.
bool decides(const BestOfSpec& best_of, int64_t seed);

/// Whether the run has one of the values that a row is the best of.
bool lists_value_of(const BestOfSpec& best_of, const store::ConfiguredRun& run);

/// Why best_of cannot choose the run; "" where it can.
std::string why_not_chosen(const BestOfSpec& best_of, const store::ConfiguredRun& run);

/// Why a completed run without the metric that decides cannot be chosen.
std::string no_metric_reason(const BestOfSpec& best_of);

/// Fills in the row's points from runs of its config, newest first, and shows the best of them by
/// the table's best_of.
/// With tuning seeds the points are of these seeds, and the row shows the best value's runs of all
/// other seeds.
void fill_best(const TableSpec& table,
               const std::vector<const store::ConfiguredRun*>& runs,
               const IsCurrent& is_current,
               AblationRow& row,
               std::vector<ExcludedRuns>& excluded);

/// How the rows were chosen, for the table's setup.
SetupEntry describe_choice(const TableSpec& table);

/// Marks the points that a row need not have: values beyond the declared ones that somebody ran,
/// though no row has its best value at that end of the grid, so that it does not go on to them.
void mark_wanted(const BestOfSpec& declared, std::vector<AblationRow>& rows);

/// The declared tuning seeds with which the value was neither completed nor begun. None where that
/// changes nothing: with one that diverged it is no best.
std::set<int64_t> missing_tuning_seeds(const SweepPoint& point, const BestOfSpec& best_of);

/// "diverged (3 of 3 seeds)"; "" if no seed of the value did.
std::string divergence_text(const SweepPoint& point);

/// The values that diverged: "diverged with optimizer.lr 0.32 (1 of 3 seeds), 0.64 (3 of 3 seeds)".
/// "" if none did.
std::string divergence_text(const AblationRow& row, const BestOfSpec& best_of);

/// Why the value that the row shows is not the best of all: "the best of 1 of 3 values is no best:
/// no run with optimizer.lr 0.001, 0.002 is completed". "" if it is: then the table's file and what
/// these runs found say which value it shows, and not who ran some of them.
std::string incomplete_choice(const AblationRow& row, const TableSpec& table);

}  // namespace forge::tables

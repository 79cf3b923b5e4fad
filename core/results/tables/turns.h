#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/results/tables/ablation.h"

/// In which order the runs of rows were made. What changes on a machine from hour to hour is no
/// noise between seeds: it lies between rows that were not trained in turn.
namespace forge::tables {

/// When some run of the project was trained, in order and without overlaps.
BusyTimes busy_times(const std::vector<store::ConfiguredRun>& runs, const AblationOptions& options);

/// Two rows were trained in turn if the runs of each seed, or else the first run of one and the
/// first of the other and so on, are neighbours, all but one pair: one was begun soon after the
/// other, or after others of the project that were begun soon after it, and no run of another pair
/// was begun between them.
enum class Turns {
  in_turn,
  one_row_first,      ///< in turn, but runs of one came first so often that it alone seems real
  one_row_begins,     ///< in turn, but runs of one came first so often after breaks
  hours_apart,        ///< in turn, but pairs whose order was not drawn lie `longest_apart` and more
  one_after_another,  ///< not all runs of two rows in turn
};

/// In seconds, from the begin of one run of a pair to that of the other, all pairs but one. What
/// goes up and down once a day, as the temperature does, cancels there and back for shorter ones;
/// for longer ones it may come in step with the turns. It does not where forge drew the order.
constexpr double longest_apart = 2 * 3600;

/// Whether what lies between the first and the second run of a pair would by itself be taken for a
/// difference of two rows: a t-test of `pairs` differences, of which `one_way` are 1, `other_way`
/// -1 and the others 0, has p <= 0.1.
bool would_seem_real(int64_t one_way, int64_t other_way, size_t pairs);

/// What is said of speeds, or of other quantities, of rows in such turns: "speeds measured hours
/// apart"; "" in turn.
std::string turns_text(const std::string& quantity, Turns turns);

/// The worst of any two rows of one group with two runs or more.
Turns turns_of(const std::vector<const AblationRow*>& rows, const BusyTimes& busy);

}  // namespace forge::tables

#pragma once

#include <string>
#include <vector>

#include "core/results/tables/ablation.h"
#include "core/results/tables/expression.h"

/// Whether the numbers of a metric can be compared. Columns, claims, best rows, fronts and exports
/// ask here and nowhere else, so they cannot disagree.
namespace forge::tables {

/// Why speed and memory of the runs have no mean, "trained on A and on B", "" if they have one: all
/// of them have the same backend, device, threads, number of processes, train.recompute and
/// micro-batch size, in all attempts.
std::string why_not_one_sample(const std::vector<store::RunSummary>& runs);

/// Why a metric of two rows was not measured alike, "v1 was trained with train.recompute mlp, base
/// with train.recompute none"; "" if it was, or if a row has no completed run. Speed and memory are
/// if the rows' runs were computed alike (why_not_one_sample), speeds of `forge bench` if one call
/// measured them; so are losses at equal time, which are computed from speeds. Of one row with
/// itself: why its runs are no sample.
std::string why_measured_otherwise(const AblationRow& row,
                                   const AblationRow& other,
                                   const std::string& metric,
                                   const TableSpec& table);

/// Why a metric of one row says nothing beside that of another: it was not measured alike, or a row
/// violates the table's conditions; "" if it does.
std::string why_not_comparable(const AblationRow& row,
                               const AblationRow& other,
                               const std::string& metric,
                               const TableSpec& table);

/// Why the metrics of an expression were not measured alike, and of losses at equal time not like
/// the baseline's, with whose speed they are computed; "" if they were. `row` is the one whose
/// metrics the names without a config are.
std::string why_measured_otherwise(const std::vector<Name>& names,
                                   const Ablation& ablation,
                                   const AblationRow& row);

/// Why nothing is concluded from timings of the rows' runs (is_timed_by_runs), though they may be
/// compared: other work loaded the machine, or the rows were trained one after another. "" if
/// something is.
std::string why_timings_not_tested(const std::vector<const AblationRow*>& rows);

/// Whether a run that is repeated has another value of the metric though all its losses are the
/// same: a speed, and a loss within a curve, which depends on when it was evaluated.
bool is_drawn_anew(const std::string& metric, const TableSpec& table);

/// Why nothing is concluded from such a metric of the rows: runs that they show repeat older ones,
/// under their own names or others, so that who made them could choose. "" if something is.
std::string why_repetitions_not_tested(const std::vector<const AblationRow*>& rows);

}  // namespace forge::tables

#pragma once

#include <string>
#include <vector>

#include "core/results/tables/ablation.h"
#include "core/results/tables/expression.h"

/// Whether the numbers of a metric can be compared. Columns, claims, best rows, fronts and exports
/// ask here and nowhere else, so they cannot disagree.
namespace forge::tables {

/// A metric of a row.
struct RowMetric {
  const AblationRow* row = nullptr;
  std::string metric;
};

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

/// The metrics that an expression names, of the rows that there are, and with losses at equal time
/// the baseline's, with whose speed they are computed. `row` is the one whose metrics the names
/// without a config are.
std::vector<RowMetric> metrics_behind(const std::vector<Name>& names,
                                      const Ablation& ablation,
                                      const AblationRow& row);

/// Why these were not measured alike; "" if they were.
std::string why_measured_otherwise(const std::vector<RowMetric>& metrics, const TableSpec& table);

/// Why nothing is concluded from metrics that may be compared: of those that the rows' runs timed
/// (is_timed_by_runs), other work loaded the machine, or the rows were trained one after another or
/// on other devices, a row alone than another of the table; of memory, they were; of speeds and
/// losses within a curve, see why_repetitions_not_tested; of memory, scores and the training loss,
/// that a run which repeats an older one has another; of losses, that nothing tells the rows apart
/// but a key that changes none. "" if something is. Losses at equal time of a row need the
/// baseline's beside them.
std::string why_not_tested(const std::vector<RowMetric>& metrics, const Ablation& ablation);

/// A device trained more runs of one of these rows than of another, by more than chance explains.
/// "" if none did, or devices are not known.
std::string why_places_not_tested(const std::vector<const AblationRow*>& rows);

/// A run that the rows show lost steps whose speed it had told, and trained them anew: who stops
/// slow runs chooses. "" if none did.
std::string why_lost_speeds_not_tested(const std::vector<const AblationRow*>& rows);

/// Runs that the rows show repeat older ones, under their own names or others: the losses are the
/// same, speeds and losses within a curve are drawn anew, so that who made them could choose. "" if
/// none does.
std::string why_repetitions_not_tested(const std::vector<const AblationRow*>& rows);

}  // namespace forge::tables

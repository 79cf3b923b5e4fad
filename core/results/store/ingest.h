#pragma once

#include <filesystem>

#include "core/results/store/database.h"
#include "core/results/store/result_store.h"

/// Private to the store: from the files of runs to their rows.
namespace forge::store {

/// Brings the rows of runs up to their folders. What has changed is read by all cores and written
/// in batches, one transaction each. `store` is the file of the database.
void sync_runs(SQLite::Database& database,
               const std::filesystem::path& store,
               const std::filesystem::path& runs_dir,
               SyncReport& report,
               const SyncWatch& watch);

/// The columns of `train_metrics` behind run_id, and their values in the same order.
constexpr const char* train_metrics_columns =
    "step, tokens, loss, learning_rate, gradient_norm, tokens_per_second, elapsed_seconds";
template <class Visitor, class Metrics>
void train_metrics_values(Visitor& visit, Metrics& metrics) {
  visit.value(metrics.step);
  visit.value(metrics.tokens);
  visit.value(metrics.loss);
  visit.value(metrics.learning_rate);
  visit.value(metrics.gradient_norm);
  visit.value(metrics.tokens_per_second);
  visit.value(metrics.elapsed_seconds);
}

}  // namespace forge::store

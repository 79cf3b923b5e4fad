#pragma once

#include <filesystem>

#include "core/results/store/database.h"
#include "core/results/store/result_store.h"

/// Private to the store: which runs have changed, and whose turn it is to write them.
namespace forge::store {

/// Brings the rows of runs up to their folders. What has changed is read by all cores and written
/// in batches, one transaction each. `store` is the file of the database.
void sync_runs(SQLite::Database& database,
               const std::filesystem::path& store,
               const std::filesystem::path& runs_dir,
               SyncReport& report,
               const SyncWatch& watch);

}  // namespace forge::store

#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <filesystem>

#include "core/store/result_store.h"

/// Private to core/store: from the files of measurements to their rows.
namespace forge::store {

/// Brings the table `benchmarks` up to the files of `runs_dir`. A file that cannot be read is told
/// in the report's warnings and left out.
void sync_benchmarks(SQLite::Database& database,
                     const std::filesystem::path& runs_dir,
                     SyncReport& report);

/// Newest first.
std::vector<benchmark::Record> select_benchmarks(SQLite::Database& database,
                                                 const BenchmarkFilter& filter);

}  // namespace forge::store

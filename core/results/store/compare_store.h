#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/results/store/result_store.h"

namespace forge::store {

/// Where the store says something else than the run folders.
struct StoreDifference {
  std::string run;            ///< its id, or that of a measurement
  std::string what;           ///< "eval_loss is 0.5 and by the folder 1.872"
  bool is_of_folder = false;  ///< the folder is wrong: to build the store anew does not mend it
};

struct StoreComparison {
  int64_t compared = 0;  ///< runs
  int64_t active = 0;    ///< runs that are active or wait: their rows change, and are not compared
  std::vector<StoreDifference> differences;  ///< by run, then by column or table
  std::vector<std::string> warnings;         ///< of runs that cannot be read and compared
};

/// Compares every row of the store at `path`, once it is brought up to date, with a store that is
/// built anew from the run folders beside it and removed again. Changes no row. Rows are believed
/// elsewhere: a file that has not changed is not read again. A run that differs is looked at again,
/// a few times: others may write to it meanwhile. `watch` gets the progress of reading, then of the
/// runs and the tables that are compared. Throws Error where either store cannot be read or made.
StoreComparison compare_store(const std::filesystem::path& path,
                              const std::filesystem::path& runs_dir,
                              const SyncWatch& watch = {});

}  // namespace forge::store

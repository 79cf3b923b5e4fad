#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "core/data/dataset.h"

namespace forge::data {

/// Which of the processes that train a model together this one is.
struct Shard {
  int rank = 0;
  int ranks = 1;
};

/// The rows of one step.
struct RowBatch {
  std::vector<int32_t> inputs;     ///< [batch_size, seq_len]
  std::vector<int32_t> targets;    ///< the same, unscored_target = not scored
  std::vector<int32_t> documents;  ///< the same, empty where rows are not divided
};

struct LoaderOptions {
  int batch_size = 1;       ///< rows of a step, of this shard
  int64_t first_batch = 0;  ///< steps already served: the whole state of a loader
  int threads = 1;
  int ahead = 4;  ///< batches that are kept ready
  Shard shard;
};

/// Batches of a dataset, one after another, filled by threads before they are asked for. Batch n of
/// rank r holds the rows at positions (n * ranks + r) * batch_size and on, so all ranks together
/// see what one process with as many rows a step would see. The bytes depend on the dataset and the
/// number of the batch alone, not on threads.
class BatchLoader {
 public:
  /// The dataset outlives the loader.
  BatchLoader(const Dataset& dataset, const LoaderOptions& options);
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  /// The next batch, there until the next call. Waits only where the threads are behind. What they
  /// throw is thrown here.
  const RowBatch& next();

 private:
  struct Slot {
    RowBatch batch;
    int64_t holds = -1;  ///< number of the batch that is ready in it
  };

  void work();
  void fill(int64_t number, RowBatch& batch) const;
  Slot& slot_of(int64_t number) { return slots_[static_cast<size_t>(number) % slots_.size()]; }

  const Dataset& dataset_;
  const LoaderOptions options_;
  std::vector<Slot> slots_;
  std::mutex mutex_;  ///< of what follows, and of Slot::holds
  std::condition_variable changed_;
  int64_t asked_for_ = 0;  ///< number of the batch that next() gives next
  int64_t next_to_fill_ = 0;
  bool stopped_ = false;
  std::exception_ptr failure_;
  std::vector<std::thread> threads_;
};

}  // namespace forge::data

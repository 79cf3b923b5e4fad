#include "core/data/batch_loader.h"

#include <algorithm>

#include "core/base/error.h"

namespace forge::data {

BatchLoader::BatchLoader(const Dataset& dataset, const LoaderOptions& options)
    : dataset_(dataset),
      options_(options),
      // One more than is kept ready: that which was given out.
      slots_(static_cast<size_t>(std::max(1, options.ahead)) + 1),
      asked_for_(options.first_batch),
      next_to_fill_(options.first_batch) {
  const Shard shard = options.shard;
  if (shard.ranks < 1 || shard.rank < 0 || shard.rank >= shard.ranks) {
    throw Error("there is no rank " + std::to_string(shard.rank) + " among " +
                std::to_string(shard.ranks));
  }
  if (options.batch_size < 1 || options.first_batch < 0) {
    throw Error("a loader needs rows to load, from batch 0 on at the earliest");
  }
  for (int i = 0; i < std::max(1, options.threads); ++i) threads_.emplace_back([this] { work(); });
}

BatchLoader::~BatchLoader() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void BatchLoader::fill(int64_t number, RowBatch& batch) const {
  const auto size = static_cast<size_t>(options_.batch_size) * size_t(dataset_.seq_len());
  batch.inputs.resize(size);
  batch.targets.resize(size);
  const Shard shard = options_.shard;
  const int64_t position = (number * shard.ranks + shard.rank) * options_.batch_size;
  dataset_.fill(position, options_.batch_size, batch.inputs.data(), batch.targets.data());
  if (!dataset_.divides_documents()) return;
  batch.documents.resize(size);
  dataset_.number_documents(batch.inputs.data(), options_.batch_size, batch.documents.data());
}

void BatchLoader::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    // The slot behind the last one that may be ready is that of the batch given out last.
    const auto has_room = [&] {
      return next_to_fill_ < asked_for_ + static_cast<int64_t>(slots_.size()) - 1;
    };
    changed_.wait(lock, [&] { return stopped_ || has_room(); });
    if (stopped_) return;
    const int64_t number = next_to_fill_++;
    Slot& slot = slot_of(number);
    lock.unlock();
    try {
      fill(number, slot.batch);
      lock.lock();
      slot.holds = number;
    } catch (...) {
      if (!lock.owns_lock()) lock.lock();
      failure_ = std::current_exception();
      stopped_ = true;
    }
    changed_.notify_all();
  }
}

const RowBatch& BatchLoader::next() {
  std::unique_lock lock(mutex_);
  Slot& slot = slot_of(asked_for_);
  changed_.wait(lock, [&] { return failure_ || slot.holds == asked_for_; });
  if (slot.holds != asked_for_) std::rethrow_exception(failure_);
  ++asked_for_;
  lock.unlock();
  changed_.notify_all();
  return slot.batch;
}

}  // namespace forge::data

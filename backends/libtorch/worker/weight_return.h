#pragma once

#include <optional>
#include <vector>

#include "backends/libtorch/worker/flat_weights.h"
#include "backends/libtorch/worker/gradient_exchange.h"

namespace forge::libtorch {

/// Gets to each process the weights that the others have updated, bucket by bucket, while it
/// computes already with those that are there.
class WeightReturn {
 public:
  /// All outlive it. `sends_rounded`: matrices with a rounded copy travel as that copy, which the
  /// update has written; otherwise as they are stored, and are rounded here.
  WeightReturn(const FlatWeights& flat, GradientExchange& exchange, bool sends_rounded);

  /// Collective, as are the others: all buckets are on their way.
  void begin();
  /// The first `count` stored tensors are there; on a GPU for the current stream.
  void finish(size_t count);
  /// All are.
  void finish() { finish(flat_.stored().size()); }
  /// What travelled as rounded copies is there as it is stored, too.
  void complete_stored();

 private:
  /// What the processes give each other of a bucket.
  const at::Tensor& row(size_t bucket) const;

  const FlatWeights& flat_;
  GradientExchange& exchange_;
  const bool sends_rounded_;
  std::vector<std::optional<Transfer>> under_way_;  ///< of each bucket
  size_t first_ = 0;                                ///< buckets before it are there
};

}  // namespace forge::libtorch

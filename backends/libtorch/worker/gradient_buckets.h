#pragma once

#include <memory>
#include <vector>

#include "backends/libtorch/worker/flat_weights.h"
#include "backends/libtorch/worker/gradient_exchange.h"
#include "backends/libtorch/worker/gradient_tree.h"

namespace forge::libtorch {

/// Takes the gradients of a slot away as the backward pass finds them, each into the row of its
/// bucket. A bucket that is full is exchanged with the other processes while the pass goes on, and
/// the sums of slots are added in a balanced tree.
class GradientBuckets {
 public:
  /// Both outlive it. From here on backward passes leave no gradient in the weights' grad() while a
  /// slot is open.
  GradientBuckets(const FlatWeights& flat, GradientExchange& exchange);
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  /// Opens a slot whose gradient so many backward passes find together. All processes do it alike.
  void open_slot(int64_t passes);
  /// Closes it. What no pass has found is zero, so a process whose pass broke off still does what
  /// the others wait for; its sums are worth nothing then.
  void close_slot();
  /// Of each bucket this process's part of the sum over all slots, float32 at least. Waits for what
  /// is on its way, and begins anew.
  std::vector<at::Tensor> take();
  /// Begins anew without the slots since take().
  void forget();

  /// Collective, for measurements: sends a bucket's weights, and adds nothing.
  void exchange_alone(ProcessGroup& group, size_t bucket);

  /// A slot whose gradients are thrown away as they come, to see whether memory suffices.
  void open_rehearsal();
  void close_rehearsal();

 private:
  struct State;
  class Receiver;
  std::shared_ptr<State> state_;
};

}  // namespace forge::libtorch

#include "backends/libtorch/worker/weight_return.h"

namespace forge::libtorch {

WeightReturn::WeightReturn(const FlatWeights& flat, GradientExchange& exchange, bool sends_rounded)
    : flat_(flat),
      exchange_(exchange),
      sends_rounded_(sends_rounded),
      under_way_(flat.buckets().size()),
      first_(under_way_.size()) {
  for (size_t bucket = 0; bucket < under_way_.size(); ++bucket) exchange_.share(row(bucket));
}

const at::Tensor& WeightReturn::row(size_t bucket) const {
  const FlatWeights::Bucket& of = flat_.buckets()[bucket];
  return sends_rounded_ && of.rounded.defined() ? of.rounded : of.row;
}

void WeightReturn::begin() {
  for (size_t bucket = 0; bucket < under_way_.size(); ++bucket)
    under_way_[bucket] = exchange_.begin_gather(row(bucket));
  first_ = 0;
}

void WeightReturn::finish(size_t count) {
  const at::NoGradGuard no_grad;
  // Buckets are in the order of their first tensors.
  for (; first_ < under_way_.size(); ++first_) {
    const FlatWeights::Bucket& of = flat_.buckets()[first_];
    if (of.tensors[0] >= count) return;
    exchange_.finish_gather(*under_way_[first_], row(first_));
    under_way_[first_].reset();
    if (!sends_rounded_ && of.rounded.defined()) at::Tensor(of.rounded).copy_(of.row);
  }
}

void WeightReturn::complete_stored() {
  for (size_t bucket = 0; bucket < under_way_.size(); ++bucket) {
    const at::Tensor& stored = flat_.buckets()[bucket].row;
    if (row(bucket).is_same(stored)) continue;
    Transfer transfer = exchange_.begin_gather(stored);
    exchange_.finish_gather(transfer, stored);
  }
}

}  // namespace forge::libtorch

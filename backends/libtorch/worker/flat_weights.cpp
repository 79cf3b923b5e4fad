#include "backends/libtorch/worker/flat_weights.h"

#include <algorithm>

namespace forge::libtorch {
namespace {

/// Tensors begin at multiples of so many numbers, so that vectors of them never straddle two
/// processes' parts.
constexpr int64_t numbers_apart = 64;

int64_t rounded_up(int64_t number, int64_t multiple) {
  return (number + multiple - 1) / multiple * multiple;
}

}  // namespace

FlatWeights::FlatWeights(std::vector<at::Tensor> stored, const Place& place, int parts)
    : stored_(std::move(stored)), place_(place), locations_(stored_.size()) {
  TORCH_CHECK(parts % place.count == 0, parts, " parts for ", place.count, " processes");
  place_tensors(parts);
  move_tensors();
}

/// A type has one open bucket at a time.
void FlatWeights::place_tensors(int parts) {
  std::vector<int64_t> sizes;
  const auto open_bucket = [&](at::ScalarType type) {
    for (size_t i = buckets_.size(); i-- > 0;) {
      if (stored_[buckets_[i].tensors[0]].scalar_type() != type) continue;
      if (sizes[i] < numbers_of_bucket) return i;
      break;
    }
    buckets_.emplace_back();
    sizes.push_back(0);
    return buckets_.size() - 1;
  };
  for (size_t i = 0; i < stored_.size(); ++i) {
    const size_t bucket = open_bucket(stored_[i].scalar_type());
    buckets_[bucket].tensors.push_back(i);
    locations_[i] = {bucket, sizes[bucket], 0};
    sizes[bucket] += rounded_up(stored_[i].numel(), numbers_apart);
  }
  int64_t first = 0;
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    const int64_t size = rounded_up(sizes[bucket], block * parts);
    const at::Tensor& like = stored_[buckets_[bucket].tensors[0]];
    buckets_[bucket].row = at::zeros({size}, like.options().requires_grad(false));
    buckets_[bucket].first_block = first / block;
    for (const size_t i : buckets_[bucket].tensors)
      locations_[i].first = first + locations_[i].begin;
    first += size;
  }
}

void FlatWeights::move_tensors() {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < stored_.size(); ++i) {
    at::Tensor tensor = stored_[i];
    const at::Tensor view = buckets_[locations_[i].bucket]
                                .row.narrow(0, locations_[i].begin, tensor.numel())
                                .view(tensor.sizes());
    view.copy_(tensor);
    tensor.set_data(view);
  }
}

Range FlatWeights::range_of(size_t bucket, int rank) const {
  const int64_t size = buckets_.at(bucket).row.numel() / place_.count;
  return {rank * size, (rank + 1) * size};
}

at::Tensor FlatWeights::own_row(size_t bucket) const {
  const Range own = own_range(bucket);
  return buckets_[bucket].row.narrow(0, own.begin, own.size());
}

Range FlatWeights::own_of(size_t stored) const {
  const Location& at = location(stored);
  const Range own = own_range(at.bucket);
  const int64_t numbers = stored_[stored].numel();
  const int64_t begin = std::clamp<int64_t>(own.begin - at.begin, 0, numbers);
  return {begin, std::clamp<int64_t>(own.end - at.begin, begin, numbers)};
}

}  // namespace forge::libtorch

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

FlatWeights::FlatWeights(std::vector<at::Tensor> stored,
                         const std::vector<at::Tensor>& rounded,
                         const Place& place,
                         int parts)
    : stored_(std::move(stored)), place_(place), locations_(stored_.size()) {
  TORCH_CHECK(parts % place.count == 0, parts, " parts for ", place.count, " processes");
  TORCH_CHECK(rounded.size() == stored_.size(), rounded.size(), " rounded copies");
  place_tensors(rounded, parts);
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < stored_.size(); ++i) {
    const Bucket& bucket = buckets_[locations_[i].bucket];
    move(stored_[i], i, bucket.row);
    if (rounded[i].defined()) move(rounded[i], i, bucket.rounded);
  }
}

/// Tensors of one type, all with rounded copies or all without, have one open bucket at a time.
void FlatWeights::place_tensors(const std::vector<at::Tensor>& rounded, int parts) {
  std::vector<int64_t> sizes;
  const auto open_bucket = [&](size_t tensor) {
    for (size_t i = buckets_.size(); i-- > 0;) {
      const size_t first = buckets_[i].tensors[0];
      if (stored_[first].scalar_type() != stored_[tensor].scalar_type() ||
          rounded[first].defined() != rounded[tensor].defined())
        continue;
      if (sizes[i] < numbers_of_bucket) return i;
      break;
    }
    buckets_.emplace_back();
    sizes.push_back(0);
    return buckets_.size() - 1;
  };
  for (size_t i = 0; i < stored_.size(); ++i) {
    const size_t bucket = open_bucket(i);
    buckets_[bucket].tensors.push_back(i);
    locations_[i] = {bucket, sizes[bucket], 0};
    sizes[bucket] += rounded_up(stored_[i].numel(), numbers_apart);
  }
  int64_t first = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    Bucket& bucket = buckets_[i];
    const int64_t size = rounded_up(sizes[i], block * parts);
    const auto row_like = [&](const at::Tensor& tensor) {
      return at::zeros({size}, tensor.options().requires_grad(false));
    };
    const size_t like = bucket.tensors[0];
    bucket.row = row_like(stored_[like]);
    if (rounded[like].defined()) bucket.rounded = row_like(rounded[like]);
    for (const size_t tensor : bucket.tensors)
      locations_[tensor].first = first + locations_[tensor].begin;
    first += size;
  }
}

void FlatWeights::move(at::Tensor tensor, size_t stored, const at::Tensor& row) const {
  const at::Tensor view =
      row.narrow(0, locations_[stored].begin, tensor.numel()).view(tensor.sizes());
  view.copy_(tensor);
  tensor.set_data(view);
}

Range FlatWeights::own_range(size_t bucket) const {
  const int64_t size = buckets_.at(bucket).row.numel() / place_.count;
  return {place_.rank * size, (place_.rank + 1) * size};
}

Range FlatWeights::own_of(size_t stored) const {
  const Location& at = location(stored);
  const Range own = own_range(at.bucket);
  const int64_t numbers = stored_[stored].numel();
  const int64_t begin = std::clamp<int64_t>(own.begin - at.begin, 0, numbers);
  return {begin, std::clamp<int64_t>(own.end - at.begin, begin, numbers)};
}

}  // namespace forge::libtorch

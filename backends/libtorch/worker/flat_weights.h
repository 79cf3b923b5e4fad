#pragma once

#include <string>
#include <vector>

#include "backends/libtorch/torch_precompiled.h"

namespace forge::libtorch {

/// Which of the processes that train a run together this one is.
struct Place {
  int rank = 0;
  int count = 1;
};

/// The numbers of a tensor that a process writes into a checkpoint, and reads from one.
struct NamedPart {
  std::string name;
  std::vector<int64_t> shape;  ///< of the whole tensor
  int64_t begin = 0;           ///< the first of them, in row-major order
  at::Tensor numbers;          ///< a view of them in any shape, of no number where there are none
};
using NamedParts = std::vector<NamedPart>;

/// Numbers of a row, in their order.
struct Range {
  int64_t begin = 0, end = 0;

  int64_t size() const { return end - begin; }
};

/// A model's stored tensors in buckets: rows of numbers in which tensors of one type stand end to
/// end. Of each bucket every process owns an equal part: what it updates, and what it keeps moments
/// of (ZeRO stage 1, Rajbhandari et al. 2020). So a bucket whose gradients are there can be
/// exchanged by all processes at once, while those of the others are still computed.
class FlatWeights {
 public:
  /// Sums of squares are taken of so many numbers at a time, whoever owns them.
  static constexpr int64_t block = 8192;
  /// A bucket is closed when it has so many numbers. It has more where a single tensor has.
  static constexpr int64_t numbers_of_bucket = int64_t{25'000'000} / 2;

  /// Where a stored tensor is.
  struct Location {
    size_t bucket = 0;
    int64_t begin = 0;  ///< in the bucket
    int64_t first = 0;  ///< in all buckets
  };
  struct Bucket {
    at::Tensor row;               ///< its numbers, zeros behind the last tensor's; tensors view it
    at::Tensor rounded;           ///< the same of their rounded copies, or undefined
    std::vector<size_t> tensors;  ///< which stored ones, in their order
  };

  /// Moves the memory of the tensors and of their rounded copies, undefined where a tensor has
  /// none, into rows: they are views of them from here on. `parts` is a multiple of every number of
  /// processes that may train the run: buckets are so many equal parts of whole blocks, so that
  /// they are the same for any number.
  FlatWeights(std::vector<at::Tensor> stored,
              const std::vector<at::Tensor>& rounded,
              const Place& place,
              int parts);

  const Place& place() const { return place_; }
  const std::vector<at::Tensor>& stored() const { return stored_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }
  const Location& location(size_t stored) const { return locations_.at(stored); }

  /// The numbers of a bucket that this process owns.
  Range own_range(size_t bucket) const;
  /// The numbers of a stored tensor that this process owns.
  Range own_of(size_t stored) const;

 private:
  void place_tensors(const std::vector<at::Tensor>& rounded, int parts);
  /// Copies a tensor's numbers into a bucket's row, and makes it a view of that.
  void move(at::Tensor tensor, size_t stored, const at::Tensor& row) const;

  const std::vector<at::Tensor> stored_;
  const Place place_;
  std::vector<Location> locations_;
  std::vector<Bucket> buckets_;
};

}  // namespace forge::libtorch

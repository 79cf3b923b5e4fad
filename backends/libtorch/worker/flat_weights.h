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

/// A model's stored tensors end to end in one row of numbers, of which each process owns an equal
/// part: what it updates, and what it keeps moments of (ZeRO stage 1, Rajbhandari et al. 2020).
/// Parts are whole blocks, and zeros behind the last weight fill the last ones.
class FlatWeights {
 public:
  /// Sums of squares are taken of so many numbers at a time, whoever owns them.
  static constexpr int64_t block = 8192;

  /// Moves the tensors' memory into one row: they are views of it from here on.
  FlatWeights(std::vector<at::Tensor> stored, const Place& place);

  const Place& place() const { return place_; }
  /// All numbers, [count * own]: what a process has updated, others get from here.
  const at::Tensor& all() const { return all_; }
  /// The numbers that this process owns, a view.
  at::Tensor own() const { return all_.narrow(0, own_begin(), own_size()); }
  int64_t own_size() const { return all_.numel() / place_.count; }
  int64_t own_begin() const { return place_.rank * own_size(); }
  /// Where a stored tensor begins in the row.
  int64_t begin_of(size_t stored) const { return begins_.at(stored); }
  /// Copies the tensors' gradients into a row `to` of the same size.
  void copy_gradients(const at::Tensor& to) const;

 private:
  const std::vector<at::Tensor> stored_;
  const Place place_;
  std::vector<int64_t> begins_;
  at::Tensor all_;
};

}  // namespace forge::libtorch

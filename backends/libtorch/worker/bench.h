#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "backends/libtorch/torch_precompiled.h"
#include "core/config/experiment.h"
#include "core/data/rows/dataset.h"

namespace forge::libtorch {

/// Of an even number of values the upper median. There must be a value.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The type of activations in a precision.
at::ScalarType scalar_type(model::Precision precision);

/// The highest speed that products of two large square matrices in a precision reach on the
/// device: the best of several sizes, in about a second. {"flops": a second, "how": in words,
/// "sizes": {"2048": flops, …}}
nlohmann::json peak_matrix_product(model::Precision precision, const at::Device& device);

/// The highest speed of a copy of memory larger than any cache, as read plus written bytes.
/// {"bytes_per_second": …, "how": in words}
nlohmann::json peak_memory_copy(const at::Device& device);

/// Rows of random token ids for an experiment, enough for several steps, in a token file that lives
/// as long as the dataset: benchmarks read data as training does. With train.document_mask a
/// document begins every 256 tokens, as in stories.
data::Dataset random_rows(const config::Experiment& experiment);

/// Shapes of a model and of a step, on which operations are measured.
struct OperationSizes {
  std::string name;
  int64_t batch, length, hidden, intermediate, vocabulary, heads, kv_heads, head_dim;
  bool on_cpu, on_gpu;  ///< measured there by default

  int64_t tokens() const { return batch * length; }
  std::string describe() const;  ///< "8 x 512 tokens, hidden 256, …"
};
const std::vector<OperationSizes>& operation_sizes();

/// An operation to measure, forward and backward, beside what a user of plain Torch would write.
/// Each call does the whole work once.
struct OperationCase {
  std::function<void()> fused, baseline;
  double flops;  ///< of matrix products, forward and backward; 0: it has none
  double bytes;  ///< that an operation without intermediate tensors moves; 0: not reported
  std::string baseline_name = "plain Torch";
};

/// Makes a case when its turn has come, so that only one holds memory.
struct OperationMaker {
  std::string name;  ///< "canon_conv.a"
  std::function<OperationCase(const OperationSizes&, const at::TensorOptions&)> make;
};
const std::vector<OperationMaker>& operation_makers();

}  // namespace forge::libtorch

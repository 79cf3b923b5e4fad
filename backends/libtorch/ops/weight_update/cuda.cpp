#include "backends/libtorch/ops/weight_update/cuda.h"

#include <algorithm>

#include "backends/libtorch/ops/common/cuda_tensors.h"
#include "backends/libtorch/ops/weight_update/weight_update.h"

namespace forge::ops {
namespace {

/// Whether four elements are read at once: of a part of a stored matrix they may not lie so.
bool is_aligned(const at::Tensor& x) {
  return !x.defined() || reinterpret_cast<uintptr_t>(x.data_ptr()) % (4 * x.element_size()) == 0;
}

/// What the kernels are told of a weight.
cuda::UpdatedTensor described(const UpdatedWeight& w, int64_t first_element) {
  const bool aligned = is_aligned(w.weight) && is_aligned(w.gradient) &&
                       is_aligned(w.first_moment) && is_aligned(w.second_moment) &&
                       is_aligned(w.rounded);
  return {w.weight.data_ptr(),
          w.gradient.data_ptr(),
          cuda::write<float>(w.first_moment),
          cuda::write<float>(w.second_moment),
          cuda::write<cuda::bfloat16>(w.rounded),
          w.weight.numel(),
          first_element,
          static_cast<float>(w.update_factor),
          static_cast<int16_t>(w.group),
          static_cast<int16_t>(aligned)};
}

/// Weights in tables that fit a kernel's arguments.
class Tables {
 public:
  /// `first_element` numbers the elements of the first weight for stochastic rounding.
  explicit Tables(int64_t first_element = 0) : element_(first_element) {}

  void add(const UpdatedWeight& weight) {
    if (tables_.empty() || tables_.back().count == cuda::UpdatedTensors::most) {
      tables_.emplace_back();
      tables_.back().count = tables_.back().blocks = 0;
    }
    cuda::UpdatedTensors& table = tables_.back();
    const auto blocks = static_cast<int32_t>((weight.weight.numel() + cuda::elements_of_block - 1) /
                                             cuda::elements_of_block);
    if (weight.first_element >= 0) element_ = weight.first_element;
    table.tensors[table.count] = described(weight, element_);
    table.first_block[table.count++] = table.blocks;
    table.blocks += blocks;
    blocks_ += blocks;
    element_ += weight.weight.numel();
  }

  const std::vector<cuda::UpdatedTensors>& tables() const { return tables_; }
  int64_t blocks() const { return blocks_; }

 private:
  std::vector<cuda::UpdatedTensors> tables_;
  int64_t blocks_ = 0;
  int64_t element_;
};

/// Weights of one rule, one type of gradients and one of storage.
struct Kind {
  UpdateRule rule;
  bool wide_gradients, wide_weights;
  std::vector<UpdatedWeight> weights;
  Tables tables;

  cuda::Storage storage() const {
    return wide_weights ? cuda::Storage::float32 : cuda::Storage::bfloat16_stochastic;
  }
};

std::vector<Kind> kinds_of(const WeightUpdate& update, const std::vector<UpdateGroup>& groups) {
  std::vector<Kind> kinds;
  for (const UpdateRule rule :
       {UpdateRule::adamw, UpdateRule::lion, UpdateRule::sgd, UpdateRule::muon}) {
    for (const bool wide_gradients : {true, false}) {
      for (const bool wide_weights : {true, false}) {
        Kind kind{rule, wide_gradients, wide_weights, {}, Tables()};
        for (const UpdatedWeight& weight : update) {
          if (groups[weight.group].rule == rule &&
              (weight.gradient.scalar_type() == at::kFloat) == wide_gradients &&
              (weight.weight.scalar_type() == at::kFloat) == wide_weights) {
            kind.weights.push_back(weight);
            kind.tables.add(weight);
          }
        }
        if (kind.tables.blocks() > 0) kinds.push_back(std::move(kind));
      }
    }
  }
  return kinds;
}

/// The sums of the squares of all gradients' blocks, float.
at::Tensor square_sums(const std::vector<Kind>& kinds, const at::Device& device) {
  int64_t blocks = 0;
  for (const Kind& kind : kinds) blocks += kind.tables.blocks();
  at::Tensor partial = at::empty({blocks}, at::TensorOptions(device).dtype(at::kFloat));
  float* next = cuda::write<float>(partial);
  for (const Kind& kind : kinds) {
    for (const cuda::UpdatedTensors& table : kind.tables.tables()) {
      kind.wide_gradients ? cuda::square_sums<float>(table, next, cuda::current_stream())
                          : cuda::square_sums<cuda::bfloat16>(table, next, cuda::current_stream());
      next += table.blocks;
    }
  }
  return partial;
}

cuda::StepBeginning beginning_of(const at::Tensor& partial,
                                 const UpdateOptions& options,
                                 const at::Tensor& loss,
                                 UpdateState& state) {
  cuda::StepBeginning in{};
  in.clip = options.grad_clip;
  in.beta1 = options.beta1;
  in.beta2 = options.beta2;
  in.eps = options.eps;
  in.momentum = options.momentum;
  in.nesterov = options.nesterov;
  for (const UpdateGroup& group : options.groups)
    in.groups[in.group_count++] = {
        group.lr_factor, group.weight_decay, group.rule == UpdateRule::adamw};
  in.learning_rates = cuda::read<double>(state.learning_rates);
  in.learning_rate_count = state.learning_rates.size(0);
  in.partial = cuda::read<float>(partial);
  in.partial_count = partial.numel();
  in.loss = cuda::read<float>(loss);
  in.steps = cuda::write<int64_t>(state.step);
  in.totals = cuda::write<double>(state.totals);
  in.constants = static_cast<cuda::StepConstants*>(state.constants.data_ptr());
  return in;
}

/// Matrices of one shape that are made orthogonal together.
struct Batch {
  int64_t rows, columns;
  std::vector<UpdatedWeight> weights;
};

constexpr int64_t most_batch_elements = int64_t{1} << 25;  ///< 64 MiB a copy

std::vector<Batch> batches_of(const std::vector<UpdatedWeight>& weights, bool one_at_once) {
  std::vector<Batch> batches;
  for (const UpdatedWeight& weight : weights) {
    const int64_t rows = weight.weight.size(0), columns = weight.weight.size(1);
    const auto open = std::find_if(batches.rbegin(), batches.rend(), [&](const Batch& batch) {
      const auto count = static_cast<int64_t>(batch.weights.size());
      return !one_at_once && batch.rows == rows && batch.columns == columns &&
             (count + 1) * rows * columns <= most_batch_elements;
    });
    if (open == batches.rend()) {
      batches.push_back({rows, columns, {weight}});
    } else {
      open->weights.push_back(weight);
    }
  }
  return batches;
}

/// Muon on matrices. `first_element` numbers their elements behind those of other rules.
void update_matrices(const Kind& kind,
                     const UpdateOptions& options,
                     const cuda::StepConstants* constants,
                     int64_t first_element,
                     cudaStream_t stream) {
  for (const Batch& batch : batches_of(kind.weights, options.one_matrix_at_once)) {
    const auto count = static_cast<int64_t>(batch.weights.size());
    const at::Tensor directions =
        at::empty({count, batch.rows, batch.columns},
                  kind.weights[0].first_moment.options().dtype(at::kBFloat16));
    Tables momenta;
    for (int64_t i = 0; i < count; ++i) {
      UpdatedWeight weight = batch.weights[static_cast<size_t>(i)];
      weight.rounded = directions[i];
      momenta.add(weight);
    }
    for (const cuda::UpdatedTensors& table : momenta.tables()) {
      kind.wide_gradients ? cuda::update_momentum<float>(table, constants, stream)
                          : cuda::update_momentum<cuda::bfloat16>(table, constants, stream);
    }
    const at::Tensor orthogonal = orthogonalised(directions, options.newton_schulz).contiguous();
    Tables updates(first_element);
    for (int64_t i = 0; i < count; ++i) {
      UpdatedWeight weight = batch.weights[static_cast<size_t>(i)];
      weight.gradient = orthogonal[i];
      updates.add(weight);
    }
    for (const cuda::UpdatedTensors& table : updates.tables())
      cuda::update_weights<cuda::bfloat16>(
          table, cuda::Rule::direction, kind.storage(), constants, options.seed, stream);
    first_element += count * batch.rows * batch.columns;
  }
}

cuda::Rule rule_of(UpdateRule rule, const UpdateOptions& options) {
  if (rule == UpdateRule::adamw) return cuda::Rule::adamw;
  if (rule == UpdateRule::lion) return cuda::Rule::lion;
  return options.momentum > 0 ? cuda::Rule::sgd : cuda::Rule::sgd_without_momentum;
}

}  // namespace

UpdateState make_update_state(const std::vector<double>& learning_rates, const at::Device& device) {
  const at::TensorOptions on(device);
  UpdateState state;
  state.learning_rates = at::tensor(learning_rates, at::kDouble).to(device);
  state.step = at::zeros({1}, on.dtype(at::kLong));
  state.totals = at::zeros({2}, on.dtype(at::kDouble));
  state.constants = at::zeros({sizeof(cuda::StepConstants)}, on.dtype(at::kByte));
  return state;
}

void update_weights_cuda(const WeightUpdate& update,
                         const UpdateOptions& options,
                         const at::Tensor& loss,
                         UpdateState& state) {
  const at::Tensor squares = square_sums(kinds_of(update, options.groups), loss.device());
  begin_update_cuda(squares, options, loss, state);
  apply_update_cuda(update, options, state);
}

at::Tensor square_sums_cuda(const at::Tensor& gradients) {
  TORCH_CHECK(gradients.numel() % cuda::elements_of_block == 0,
              gradients.numel(),
              " gradients are no whole blocks");
  UpdatedWeight row;
  row.weight = row.gradient = gradients;
  return square_sums(kinds_of({row}, {UpdateGroup{UpdateRule::sgd}}), gradients.device());
}

void begin_update_cuda(const at::Tensor& squares,
                       const UpdateOptions& options,
                       const at::Tensor& loss,
                       UpdateState& state) {
  TORCH_CHECK(options.groups.size() <= cuda::most_groups, "more than 8 groups of weights");
  cuda::begin_step(beginning_of(squares, options, loss, state), cuda::current_stream());
}

void apply_update_cuda(const WeightUpdate& update,
                       const UpdateOptions& options,
                       const UpdateState& state) {
  const cudaStream_t stream = cuda::current_stream();
  const auto* constants = static_cast<const cuda::StepConstants*>(state.constants.data_ptr());
  int64_t elements = 0;
  for (const UpdatedWeight& weight : update) elements += weight.weight.numel();
  for (const Kind& kind : kinds_of(update, options.groups)) {
    if (kind.rule == UpdateRule::muon) {
      update_matrices(kind, options, constants, elements, stream);
      continue;
    }
    const cuda::Rule rule = rule_of(kind.rule, options);
    for (const cuda::UpdatedTensors& table : kind.tables.tables()) {
      kind.wide_gradients ? cuda::update_weights<float>(
                                table, rule, kind.storage(), constants, options.seed, stream)
                          : cuda::update_weights<cuda::bfloat16>(
                                table, rule, kind.storage(), constants, options.seed, stream);
    }
  }
}

}  // namespace forge::ops

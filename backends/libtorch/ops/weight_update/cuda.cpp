#include "backends/libtorch/ops/adamw/cuda.h"

#include "backends/libtorch/ops/adamw/adamw.h"
#include "backends/libtorch/ops/common/cuda_tensors.h"

namespace forge::ops {
namespace {

/// Tensors of one kind of gradient and of weights, in tables that fit a kernel's arguments.
struct Group {
  bool wide_gradients, wide_weights;
  std::vector<cuda::UpdatedTensors> tables;
  int64_t blocks = 0;
};

void add(Group& group, const WeightUpdate& update, size_t i, int64_t first_element) {
  const at::Tensor& weight = update.weights[i];
  if (group.tables.empty() || group.tables.back().count == cuda::UpdatedTensors::most) {
    group.tables.emplace_back();
    group.tables.back().count = group.tables.back().blocks = 0;
    group.tables.back().first_element = first_element;
  }
  cuda::UpdatedTensors& table = group.tables.back();
  const auto blocks = static_cast<int32_t>((weight.numel() + cuda::elements_of_block - 1) /
                                           cuda::elements_of_block);
  table.tensors[table.count] = {weight.data_ptr(),
                                update.gradients[i].data_ptr(),
                                cuda::write<float>(update.first_moments[i]),
                                cuda::write<float>(update.second_moments[i]),
                                cuda::write<cuda::bfloat16>(update.rounded[i]),
                                weight.numel()};
  table.first_block[table.count++] = table.blocks;
  table.blocks += blocks;
  group.blocks += blocks;
}

std::vector<Group> groups_of(const WeightUpdate& update) {
  std::vector<Group> groups;
  for (const bool wide_gradients : {true, false}) {
    for (const bool wide_weights : {true, false}) {
      Group group{wide_gradients, wide_weights, {}, 0};
      int64_t element = 0;
      for (size_t i = 0; i < update.weights.size(); ++i) {
        if ((update.gradients[i].scalar_type() == at::kFloat) == wide_gradients &&
            (update.weights[i].scalar_type() == at::kFloat) == wide_weights) {
          add(group, update, i, element);
          element += update.weights[i].numel();
        }
      }
      if (group.blocks > 0) groups.push_back(std::move(group));
    }
  }
  return groups;
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

void adamw_step_cuda(const WeightUpdate& update,
                     const UpdateOptions& options,
                     const at::Tensor& loss,
                     UpdateState& state) {
  const cudaStream_t stream = cuda::current_stream();
  const std::vector<Group> groups = groups_of(update);
  int64_t blocks = 0;
  for (const Group& group : groups) blocks += group.blocks;
  const at::Tensor partial = at::empty({blocks}, loss.options().dtype(at::kFloat));
  float* next = cuda::write<float>(partial);
  for (const Group& group : groups) {
    for (const cuda::UpdatedTensors& table : group.tables) {
      group.wide_gradients ? cuda::square_sums<float>(table, next, stream)
                           : cuda::square_sums<cuda::bfloat16>(table, next, stream);
      next += table.blocks;
    }
  }
  auto* constants = static_cast<cuda::StepConstants*>(state.constants.data_ptr());
  cuda::begin_step({options.grad_clip,
                    options.beta1,
                    options.beta2,
                    options.eps,
                    options.weight_decay,
                    cuda::read<double>(state.learning_rates),
                    state.learning_rates.size(0),
                    cuda::read<float>(partial),
                    blocks,
                    cuda::read<float>(loss),
                    cuda::write<int64_t>(state.step),
                    cuda::write<double>(state.totals),
                    constants},
                   stream);
  for (const Group& group : groups) {
    const auto storage =
        group.wide_weights ? cuda::Storage::float32 : cuda::Storage::bfloat16_stochastic;
    for (const cuda::UpdatedTensors& table : group.tables) {
      group.wide_gradients
          ? cuda::adamw_update<float>(table, storage, constants, options.seed, stream)
          : cuda::adamw_update<cuda::bfloat16>(table, storage, constants, options.seed, stream);
    }
  }
}

}  // namespace forge::ops

#include "backends/libtorch/blocks/in_double.h"

#include "backends/libtorch/ops/common/autograd.h"
#include "core/model/kinds.h"

namespace forge::libtorch {
namespace {

/// Weights of float64 and a block that reads them.
struct DoubleBlock {
  WeightStore weights;
  std::unique_ptr<Block> block;

  DoubleBlock(const BlockArguments& arguments, BlockMaker maker)
      : weights({at::kDouble, at::kDouble, std::nullopt}, arguments.weights.device()),
        block(maker({arguments.config,
                     arguments.prefix,
                     weights,
                     std::make_shared<RotaryTables>(
                         at::TensorOptions(arguments.weights.device()).dtype(at::kDouble))})) {}

  void set(at::TensorList values) {
    const at::NoGradGuard no_grad;
    const std::vector<at::Tensor> own = weights.stored();
    for (size_t i = 0; i < own.size(); ++i) {
      at::Tensor(own[i]).copy_(values[i]);
      at::Tensor(own[i]).mutable_grad() = at::Tensor();
    }
  }
};

struct InDoubleFunction : public torch::autograd::Function<InDoubleFunction> {
  static at::Tensor forward(ops::AutogradContext* context,
                            const at::Tensor& x,
                            at::TensorList weights,
                            const std::shared_ptr<DoubleBlock>& inner) {
    ops::variable_list saved = weights.vec();
    saved.push_back(x);
    context->save_for_backward(saved);
    ops::keep_arguments(context, inner);
    inner->set(weights);
    return inner->block->forward(x.to(at::kDouble), {}).to(x.scalar_type());
  }

  static ops::variable_list backward(ops::AutogradContext* context,
                                     ops::variable_list grad_outputs) {
    ops::variable_list saved = context->get_saved_variables();
    const auto inner = ops::kept_arguments<std::shared_ptr<DoubleBlock>>(context);
    const at::Tensor x = saved.back().detach().to(at::kDouble).requires_grad_(true);
    saved.pop_back();
    inner->set(saved);
    {
      const at::AutoGradMode with_grad(true);
      inner->block->forward(x, {}).backward(grad_outputs[0].to(at::kDouble));
    }
    ops::variable_list grads = {x.grad().to(grad_outputs[0].scalar_type())};
    for (const at::Tensor& weight : inner->weights.stored())
      grads.push_back(weight.grad().to(grad_outputs[0].scalar_type()));
    inner->set(saved);  // drops the gradients
    grads.emplace_back();
    return grads;
  }
};

class BlockInDouble final : public Block {
 public:
  BlockInDouble(const BlockArguments& arguments, BlockMaker maker) {
    const size_t before = arguments.weights.stored().size();
    maker(arguments);  // names the weights; the block itself is not needed
    const std::vector<at::Tensor> all = arguments.weights.stored();
    weights_.assign(all.begin() + static_cast<std::ptrdiff_t>(before), all.end());
    inner_ = std::make_shared<DoubleBlock>(arguments, maker);
  }

  at::Tensor forward(const at::Tensor& x, const ops::Documents& documents) const override {
    TORCH_CHECK(!documents.defined(), "linear mixers do not keep documents of a row apart");
    return InDoubleFunction::apply(x, at::TensorList(weights_), inner_);
  }

  std::unique_ptr<BlockState> new_state(int64_t rows,
                                        const at::TensorOptions& options) const override {
    return inner_->block->new_state(rows, options.dtype(at::kDouble));
  }

  at::Tensor step(const at::Tensor& x,
                  const GenerationStep& step,
                  BlockState& state) const override {
    inner_->set(weights_);
    return inner_->block->step(x.to(at::kDouble), step, state).to(x.scalar_type());
  }

 private:
  std::vector<at::Tensor> weights_;  ///< stored, in the block's order
  std::shared_ptr<DoubleBlock> inner_;
};

}  // namespace

bool computes_in_double(const BlockArguments& arguments) {
  const WeightTypes& types = arguments.weights.types();
  const bool is_float = types.matrices == at::kFloat && types.vectors == at::kFloat;
  if (arguments.config.hidden_size > narrow_channels || !arguments.weights.device().is_cpu() ||
      !is_float || types.products)
    return false;
  const std::vector<const model::BlockKind*> kinds = model::kinds_in(arguments.config);
  return std::any_of(kinds.begin(), kinds.end(), [](const model::BlockKind* kind) {
    // A short convolution of their own have the linear mixers.
    return std::string(kind->canon_positions).find('b') != std::string::npos;
  });
}

std::unique_ptr<Block> make_in_double(const BlockArguments& arguments, BlockMaker maker) {
  return std::make_unique<BlockInDouble>(arguments, maker);
}

}  // namespace forge::libtorch

#include "backends/libtorch/model/inference.h"

#include <algorithm>

#include "backends/libtorch/model/model.h"

namespace forge::libtorch {
namespace {

/// States grow by multiples of this number of tokens.
constexpr int64_t token_granularity = 64;

at::Tensor to_device(const std::vector<int64_t>& numbers, const at::Device& device) {
  return at::tensor(numbers, at::kLong).to(device);
}

}  // namespace

GenerationStep::GenerationStep(const std::vector<int64_t>& lengths,
                               const std::vector<int64_t>& counts,
                               int64_t width,
                               int64_t capacity,
                               const at::Device& device)
    : counts_(counts), width_(width), capacity_(capacity) {
  const auto [shortest, longest] = std::minmax_element(lengths.begin(), lengths.end());
  end_ = *longest + width;
  const at::TensorOptions int64s = at::TensorOptions(device).dtype(at::kLong);
  positions_ = to_device(lengths, device).unsqueeze(1) + at::arange(width, int64s);
  if (!is_first() && (width > 1 || *shortest != *longest)) {
    later_tokens_ = at::arange(end_, int64s).gt(positions_.unsqueeze(2));
    later_tokens_ = later_tokens_.view({rows(), 1, 1, width, end_});
  }
  if (*std::min_element(counts.begin(), counts.end()) < width)
    missing_ = at::arange(width, int64s).ge(to_device(counts, device).unsqueeze(1));
}

void GenerationStep::write(at::Tensor& cache, const at::Tensor& x) const {
  const int64_t heads = cache.size(1), head_dim = cache.size(3);
  at::Tensor& index = cache_rows_[heads];
  if (!index.defined()) {
    const at::Tensor first =
        at::arange(rows() * heads, positions_.options()).view({-1, heads, 1}) * capacity_;
    index = (first + positions_.unsqueeze(1)).flatten();
  }
  cache.view({-1, head_dim}).index_copy_(0, index, x.transpose(1, 2).reshape({-1, head_dim}));
}

at::Tensor GenerationStep::last_tokens(const at::Tensor& x, int64_t count) const {
  const bool same_counts =
      std::all_of(counts_.begin(), counts_.end(), [&](int64_t tokens) { return tokens == width_; });
  if (same_counts) return x.narrow(1, width_, count).contiguous();
  at::Tensor& index = last_tokens_[count];
  if (!index.defined()) {
    const at::TensorOptions int64s = positions_.options();
    const at::Tensor row_begin = at::arange(rows(), int64s) * (count + width_);
    const at::Tensor first = row_begin + to_device(counts_, positions_.device());
    index = (first.unsqueeze(1) + at::arange(count, int64s)).flatten();
  }
  return x.flatten(0, 1).index_select(0, index).view({rows(), count, x.size(2)});
}

InferenceState::InferenceState(const Model& model, int64_t rows, int64_t most_tokens)
    : device_(model.options().device()),
      most_tokens_(most_tokens),
      lengths_(static_cast<size_t>(rows), 0) {
  for (const auto& block : model.blocks())
    blocks_.push_back(block->new_state(rows, model.options()));
}

void InferenceState::select(const std::vector<int64_t>& rows) {
  std::vector<int64_t> lengths;
  for (const int64_t row : rows) lengths.push_back(lengths_.at(static_cast<size_t>(row)));
  lengths_ = std::move(lengths);
  const at::Tensor index = to_device(rows, device_);
  for (const auto& block : blocks_) block->select(index);
}

void InferenceState::reserve(int64_t tokens) {
  if (tokens <= capacity_) return;
  // Doubled, so that the copies cost a constant a token; never more than will be needed.
  const int64_t grown = std::max(tokens, std::min(2 * capacity_, most_tokens_));
  capacity_ = (grown + token_granularity - 1) / token_granularity * token_granularity;
  for (const auto& block : blocks_) block->reserve(capacity_);
}

GenerationStep InferenceState::begin_step(const std::vector<int64_t>& counts, int64_t width) {
  TORCH_CHECK(counts.size() == lengths_.size(),
              "the state has ",
              lengths_.size(),
              " rows, the step ",
              counts.size());
  reserve(*std::max_element(lengths_.begin(), lengths_.end()) + width);
  return GenerationStep(lengths_, counts, width, capacity_, device_);
}

void InferenceState::end_step(const std::vector<int64_t>& counts) {
  for (size_t row = 0; row < lengths_.size(); ++row) lengths_[row] += counts[row];
}

Decoder::Decoder(const Model& model, bool cache, int64_t most_tokens)
    : model_(model), cache_(cache), most_tokens_(most_tokens) {}

at::Tensor Decoder::begin(std::vector<TokenIds> rows) {
  if (cache_) {
    state_.emplace(model_, static_cast<int64_t>(rows.size()), most_tokens_);
    return read(rows);
  }
  rows_ = std::move(rows);
  return read(rows_);
}

at::Tensor Decoder::next(const TokenIds& tokens) {
  if (cache_) {
    std::vector<TokenIds> one_each;
    for (const int32_t token : tokens) one_each.push_back({token});
    return read(one_each);
  }
  for (size_t row = 0; row < tokens.size(); ++row) rows_.at(row).push_back(tokens[row]);
  return read(rows_);
}

void Decoder::select(const std::vector<int64_t>& rows) {
  if (cache_) return state_->select(rows);
  std::vector<TokenIds> selected;
  for (const int64_t row : rows) selected.push_back(rows_.at(static_cast<size_t>(row)));
  rows_ = std::move(selected);
}

/// Padded at the right: no token looks ahead, so none of a row sees what stands behind its end.
at::Tensor Decoder::read(const std::vector<TokenIds>& rows) {
  std::vector<int64_t> lengths;
  for (const TokenIds& row : rows) lengths.push_back(static_cast<int64_t>(row.size()));
  const int64_t width = *std::max_element(lengths.begin(), lengths.end());
  at::Tensor ids = at::zeros({static_cast<int64_t>(rows.size()), width}, at::kInt);
  for (size_t row = 0; row < rows.size(); ++row) {
    std::copy(rows[row].begin(),
              rows[row].end(),
              ids.data_ptr<int32_t>() + static_cast<int64_t>(row) * width);
  }
  return model_.next_logits(
      ids.to(model_.options().device()), lengths, cache_ ? &*state_ : nullptr);
}

}  // namespace forge::libtorch

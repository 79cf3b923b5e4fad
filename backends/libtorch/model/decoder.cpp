#include "backends/libtorch/model/decoder.h"

#include <algorithm>

namespace forge::worker {

Decoder::Decoder(const LlamaCanon& model, bool cache, int64_t most_tokens)
    : model_(model), cache_(cache), most_tokens_(most_tokens) {}

at::Tensor Decoder::begin(std::vector<TokenIds> rows) {
  if (cache_) {
    state_.emplace(
        model_.config(), static_cast<int64_t>(rows.size()), most_tokens_, model_.options());
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

}  // namespace forge::worker

#include "backends/libtorch/ops/causal_attention/documents.h"

#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

// From here on the deterministic backward pass of flash attention has a block for each sequence on
// every GPU, so that its sums do not depend on how many empty ones there are.
constexpr int64_t fewest_sequences = 256;

/// Calls begins(row, t) for the first token of every document. Returns whether the numbers rise in
/// every row.
template <class Begins>
bool for_each_document(const int32_t* ids, int64_t rows, int64_t length, const Begins& begins) {
  for (int64_t row = 0; row < rows; ++row, ids += length) {
    for (int64_t t = 0; t < length; ++t) {
      if (t > 0 && ids[t] < ids[t - 1]) return false;
      if (t == 0 || ids[t] != ids[t - 1]) begins(row, t);
    }
  }
  return true;
}

/// For each token the first one of its document; undefined where a row's numbers do not rise.
at::Tensor first_tokens(const at::Tensor& ids) {
  const int64_t rows = ids.size(0), length = ids.size(1);
  at::Tensor first = at::zeros_like(ids);
  int32_t* out = first.data_ptr<int32_t>();
  const bool rises =
      for_each_document(ids.data_ptr<int32_t>(), rows, length, [&](int64_t row, int64_t t) {
        out[row * length + t] = static_cast<int32_t>(t);
      });
  if (!rises) return {};
  for (int64_t row = 0; row < rows; ++row, out += length) {
    for (int64_t t = 1; t < length; ++t) out[t] = std::max(out[t], out[t - 1]);
  }
  return first;
}

}  // namespace

std::vector<int32_t> document_starts(const int32_t* doc_ids,
                                     int64_t rows,
                                     int64_t length,
                                     int64_t sequences) {
  std::vector<int32_t> starts;
  const bool rises = for_each_document(doc_ids, rows, length, [&](int64_t row, int64_t t) {
    starts.push_back(static_cast<int32_t>(row * length + t));
  });
  if (!rises) return {};
  const int64_t needed = std::max(static_cast<int64_t>(starts.size()), sequences);
  int64_t count = fewest_sequences;
  while (count < needed) count *= 2;
  starts.resize(static_cast<size_t>(count + 1), static_cast<int32_t>(rows * length));
  return starts;
}

Documents divide_documents(const at::Tensor& doc_ids) {
  if (!doc_ids.defined()) return {};
  TORCH_CHECK(doc_ids.dim() == 2 && doc_ids.scalar_type() == at::kInt,
              "doc_ids must be int32 [batch, length], are ",
              doc_ids.scalar_type(),
              " ",
              doc_ids.sizes());
  const at::Tensor ids = doc_ids.contiguous();
  if (ids.is_cpu()) return {ids, first_tokens(ids), {}};
  const at::Tensor on_host = ids.cpu();
  const std::vector<int32_t> starts =
      document_starts(on_host.data_ptr<int32_t>(), ids.size(0), ids.size(1));
  if (starts.empty()) return {ids, {}, {}};
  return {ids, {}, at::tensor(starts, at::kInt).to(ids.device())};
}

}  // namespace forge::ops

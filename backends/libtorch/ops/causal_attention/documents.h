#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace forge::ops {

/// How the rows of a batch [B, T] are divided into documents: found once, read by every layer.
/// `first` and `starts` are what attention's kernels read. They are undefined where a row's numbers
/// do not rise, so that a document need not lie in one piece.
struct Documents {
  at::Tensor ids;     ///< int32 [B, T]; undefined: each row is one document
  at::Tensor first;   ///< on a CPU int32 [B, T], for each token the first one of its document
  at::Tensor starts;  ///< on a GPU int32 [N + 1], see document_starts()

  bool defined() const { return ids.defined(); }
};

/// The division of doc_ids, undefined or int32 [B, T]. Waits for the GPU where they lie there.
/// Throws c10::Error where they are something else.
Documents divide_documents(const at::Tensor& doc_ids);

/// The tokens of a batch at which documents begin, and behind the last one's so many times
/// rows * length that there are N + 1 numbers: N is a power of two, at least 256, and not below
/// `sequences`. Empty where a row's numbers do not rise.
///
/// A recorded step keeps N, while batches differ, so N is more than there are documents. What
/// stands behind them are empty sequences to flash attention's kernels. Each takes the start of a
/// few blocks of threads that end at once (heads * T / 64 or so, well below a microsecond
/// together), and memory for 128 tokens' queries in float32 in the backward pass; one for every
/// token would cost more than attention itself.
std::vector<int32_t> document_starts(const int32_t* doc_ids,
                                     int64_t rows,
                                     int64_t length,
                                     int64_t sequences = 0);

}  // namespace forge::ops

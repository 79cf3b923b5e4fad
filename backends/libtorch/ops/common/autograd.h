#pragma once

#include <utility>

#include "backends/libtorch/torch_precompiled.h"

/// What the operations' autograd functions share.
namespace forge::ops {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// An autograd function takes no undefined tensor: an empty one stands for it.
inline at::Tensor or_empty(const at::Tensor& x) {
  return x.defined() ? x.contiguous() : at::empty({0}, at::kInt);
}
inline at::Tensor or_undefined(const at::Tensor& x) {
  return x.dim() == 1 && x.numel() == 0 ? at::Tensor() : x;
}

/// x contiguous, or undefined as it is.
inline at::Tensor contiguous(const at::Tensor& x) { return x.defined() ? x.contiguous() : x; }

/// x contiguous, and on a GPU at an address that is a multiple of 16, so that vectors of 16 bytes
/// can be read. A view of a single token counts as contiguous at any address.
inline at::Tensor whole_vectors(const at::Tensor& x) {
  const at::Tensor whole = x.contiguous();
  const bool is_aligned = reinterpret_cast<uintptr_t>(whole.data_ptr()) % 16 == 0;
  return whole.is_cuda() && !is_aligned ? whole.clone() : whole;
}

/// Whether the tokens of x [B, T, C] lie equally far apart, each in one piece: x may be a part of
/// wider rows.
inline bool has_equal_tokens(const at::Tensor& x) {
  return (x.stride(2) == 1 || x.size(2) == 1) &&
         (x.size(0) == 1 || x.size(1) == 1 || x.stride(0) == x.size(1) * x.stride(1));
}

/// Elements from one of these tokens to the next. The stride of a dimension of size 1 says nothing.
inline int64_t token_stride(const at::Tensor& x) {
  if (x.size(1) > 1) return x.stride(1);
  return x.size(0) > 1 ? x.stride(0) : (x.size(2) + 7) / 8 * 8;
}

/// The same of rows [N, C] in one piece each.
inline int64_t row_stride(const at::Tensor& rows) {
  return rows.size(0) > 1 ? rows.stride(0) : (rows.size(1) + 7) / 8 * 8;
}

/// [B, T, C] like x, contiguous; on a GPU each token begins where a vector of 16 bytes can.
inline at::Tensor empty_token_rows(const at::Tensor& x) {
  const int64_t channels = x.size(2), apart = (channels + 7) / 8 * 8;
  if (!x.is_cuda() || apart == channels) return at::empty(x.sizes(), x.options());
  return at::empty({x.size(0), x.size(1), apart}, x.options()).narrow(2, 0, channels);
}

/// x [..., C] as rows [N, C], each in one piece; copied only where it must be.
inline at::Tensor rows_in_one_piece(const at::Tensor& x) {
  const at::Tensor rows = x.reshape({-1, x.size(-1)});
  return rows.stride(1) == 1 ? rows : rows.contiguous();
}

/// [B, T, C] as rows of C.
inline at::Tensor token_rows(const at::Tensor& x) {
  return x.view({x.size(0) * x.size(1), x.size(2)});
}

template <class T>
struct KeptArguments : torch::CustomClassHolder {
  explicit KeptArguments(T arguments) : value(std::move(arguments)) {}
  T value;
};

/// Keeps an argument that is no tensor from an autograd function's forward to its backward pass.
/// It lives as long as the graph: activations belong into save_for_backward, which is freed
/// earlier.
template <class T>
void keep_arguments(AutogradContext* context, T arguments) {
  context->saved_data["arguments"] =
      c10::IValue::make_capsule(c10::make_intrusive<KeptArguments<T>>(std::move(arguments)));
}
template <class T>
T kept_arguments(AutogradContext* context) {
  const auto capsule = context->saved_data["arguments"].toCapsule();
  return static_cast<const KeptArguments<T>&>(*capsule).value;
}

}  // namespace forge::ops

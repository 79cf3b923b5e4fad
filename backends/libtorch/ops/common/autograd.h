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

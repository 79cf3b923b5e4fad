#include "backends/libtorch/ops/canon_conv/canon_conv.h"

#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

at::Tensor canon_conv_reference(const at::Tensor& x,
                                const at::Tensor& w,
                                const CanonConvOptions& options,
                                const at::Tensor& doc_ids) {
  const int64_t length = x.size(1);
  const at::ScalarType type = at::promote_types(x.scalar_type(), w.scalar_type());
  const int64_t kernel = w.size(2);
  at::Tensor convolved = at::zeros_like(x, x.options().dtype(type));
  for (int64_t tap = 0; tap < std::min(kernel, length); ++tap) {
    const int64_t kept = length - tap;
    at::Tensor past = x.narrow(1, 0, kept).to(type);  // token t - tap, for t = tap …
    if (doc_ids.defined()) {
      const at::Tensor same = doc_ids.narrow(1, 0, kept).eq(doc_ids.narrow(1, tap, kept));
      past = past * same.unsqueeze(-1).to(type);
    }
    const at::Tensor weight = w.select(2, kernel - 1 - tap).squeeze(1);
    convolved = convolved + at::constant_pad_nd(past * weight, {0, 0, tap, 0});
  }
  if (options.silu) convolved = at::silu(convolved);
  return (options.residual ? x + convolved : convolved).to(x.scalar_type());
}

at::Tensor canon_layer_reference(const at::Tensor& x, const CanonLayer& layer) {
  if (!layer.weight.defined()) return x;
  return canon_conv_reference(x, layer.weight, layer.options, layer.doc_ids);
}

}  // namespace forge::ops

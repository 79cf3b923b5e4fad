#pragma once

#include <memory>

#include "backends/libtorch/ops/common/dispatch.h"
#include "backends/libtorch/worker/process_group.h"

namespace forge::libtorch {

/// Transfers between GPUs that reach each other's memory, as copies from one to the other. The
/// GPUs' copy engines make them. A library's exchange is a kernel, which takes multiprocessors from
/// what is computed meanwhile: a product of matrices whose tiles fill all of them then needs twice
/// as long.
///
/// A process says that its memory may be overwritten by a flag in the memory of each other process,
/// and a flag of its own says that everything has come. The streams wait for the flags
/// (cuStreamBatchMemOp), so all of it can be recorded in a CUDA graph.
class PeerCopies {
 public:
  /// Collective. Nothing where a process does not reach another one's memory.
  FORGE_CUDA_ONLY static std::shared_ptr<PeerCopies> connect(ProcessGroup& group,
                                                             const at::Device& device);

  /// ProcessGroup::share. Where a process does not reach this memory of another one, none uses it.
  FORGE_CUDA_ONLY void share(ProcessGroup& group, const at::Tensor& memory);
  /// Whether transfers into this memory can be made here.
  FORGE_CUDA_ONLY bool reaches(const at::Tensor& into) const;

  /// ProcessGroup::begin_exchange and begin_gather into shared memory.
  FORGE_CUDA_ONLY Transfer begin_exchange(const at::Tensor& sent, const at::Tensor& into);
  FORGE_CUDA_ONLY Transfer begin_gather(const at::Tensor& own, const at::Tensor& into);

 private:
  struct State;
  explicit PeerCopies(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

}  // namespace forge::libtorch

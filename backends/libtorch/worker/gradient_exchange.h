#pragma once

#include <memory>

#include "backends/libtorch/worker/process_group.h"

namespace forge::libtorch {

/// Adds up and hands out what the processes of a run have, in the order of a balanced binary tree
/// over their ranks. On several hosts of as many processes each, with consecutive ranks, it goes in
/// two stages: a host adds up its own part of the tree first, so that between hosts each process
/// sends what its host has added, and not what each process of it has. The tree, and with it every
/// bit, is the same on any hosts.
class GradientExchange {
 public:
  /// Collective. The group outlives it. Throws Error where the hosts do not divide the processes.
  GradientExchange(ProcessGroup& group, int hosts = 1);

  /// Of `all` [count * n] the sum over processes of piece r, at process r: [n].
  at::Tensor sum(const at::Tensor& all);
  /// Every process's `own` [n], in their order: [count * n].
  at::Tensor gather(const at::Tensor& own);

 private:
  ProcessGroup& group_;
  const int hosts_;
  std::unique_ptr<ProcessGroup> host_;   ///< the processes of this host
  std::unique_ptr<ProcessGroup> peers_;  ///< of each host the process with this one's place in it
};

}  // namespace forge::libtorch

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

  /// ProcessGroup::share.
  void share(const at::Tensor& memory);

  /// Begins to send `all` [count * n]: process r is to get the sum over processes of its r-th
  /// piece. What comes may be put into `landing`, as large as `all`.
  Transfer begin(const at::Tensor& all, const at::Tensor& landing = {});
  /// That sum at this process, [n], float32 where numbers are narrower. `all` may be overwritten.
  at::Tensor finish(Transfer& begun);
  /// Begins to give every process's own piece of `all` [count * n] to the others.
  Transfer begin_gather(const at::Tensor& all);
  /// `all` is whole then.
  void finish_gather(Transfer& begun, const at::Tensor& all);

 private:
  ProcessGroup& group_;
  const int hosts_;
  std::unique_ptr<ProcessGroup> host_;   ///< the processes of this host
  std::unique_ptr<ProcessGroup> peers_;  ///< of each host the process with this one's place in it
};

}  // namespace forge::libtorch

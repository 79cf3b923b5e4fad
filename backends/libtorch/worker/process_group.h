#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/libtorch/torch_precompiled.h"
#include "core/base/error.h"
#include "core/worker/messages.h"

namespace forge::libtorch {

/// Another process of the run is gone, or does not answer. What happened to it, it says itself.
class LostProcess : public Error {
 public:
  using Error::Error;
};

/// What processes have begun to send each other. On a GPU it goes on beside the work of the current
/// stream.
struct Transfer {
  at::Tensor received;         ///< right after finish()
  at::Tensor sent;             ///< kept until then
  std::function<void()> wait;  ///< for what is received; on a GPU the current stream does

  /// What was received. Throws LostProcess.
  at::Tensor finish() {
    if (wait) wait();
    wait = nullptr;
    sent = at::Tensor();
    return received;
  }
};

/// The processes that train one run together. What they do by it is collective: all call the same
/// operations in the same order, with tensors of the same sizes. Nothing here adds numbers, so no
/// library's order of summation is in any result.
class ProcessGroup {
 public:
  ProcessGroup(int rank, int count) : rank_(rank), count_(count) {}
  virtual ~ProcessGroup() = default;
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int rank() const { return rank_; }
  int count() const { return count_; }
  bool is_first() const { return rank_ == 0; }

  /// Sends piece r of `sent` [count * n] to process r, and receives [count, n]: what each process
  /// has sent here, in their order. `sent` must not change before that. Where `all` [count * n] is
  /// given, what is received is there; this process's own piece is then in `sent` alone. Throws
  /// LostProcess.
  virtual Transfer begin_exchange(const at::Tensor& sent, const at::Tensor& all = {}) = 0;
  /// Receives every process's `own` [n], in their order: [count, n]. Where `all` [count * n] is
  /// given, it is there; `own` may be its own piece of it. Throws LostProcess.
  virtual Transfer begin_gather(const at::Tensor& own, const at::Tensor& all = {}) = 0;

  /// Memory of this size, contiguous, into which processes receive again and again, for as long as
  /// the group is there. Where GPUs reach each other's memory, transfers into it are copies that
  /// leave all of a GPU to what is computed meanwhile. Throws LostProcess.
  virtual void share(const at::Tensor&) {}

  at::Tensor exchange(const at::Tensor& sent) { return begin_exchange(sent).finish(); }
  at::Tensor gather(const at::Tensor& own) { return begin_gather(own).finish(); }

  /// A group of some of these processes: of those that ask for the same name, each with a rank of
  /// its own in it. Collective among them. Throws LostProcess.
  virtual std::unique_ptr<ProcessGroup> part(const std::string& name, int rank, int count) = 0;

  /// The numbers of all processes, in their order.
  std::vector<double> gather(const std::vector<double>& own);
  /// The largest of all processes' numbers.
  double largest(double own);
  /// The number of the first process.
  double of_first(double own);

 private:
  const int rank_, count_;
};

/// The group that a request names; a process alone where it names none. Waits for the others as
/// long as the request allows. Throws Error where LibTorch has no communication for the device,
/// LostProcess where the others do not come.
std::unique_ptr<ProcessGroup> make_process_group(const worker::Request& request,
                                                 const at::Device& device);

/// For measurements: the processes of a group, which outlives it, of which each hears at once what
/// it says itself in place of what the others say. With `tells`, gathers without memory for them
/// are real, so a step's message is: then processes wait for the slowest of them as in training,
/// and a step takes as long as one in which gradients and weights travel in no time.
std::unique_ptr<ProcessGroup> make_mute_group(ProcessGroup& group, bool tells);

/// This process's rank among those of its run, by FORGE_RANK; 0 where it is not set. Throws Error
/// where that is no rank among FORGE_RANKS.
int rank_by_environment();

}  // namespace forge::libtorch

#include "backends/libtorch/worker/process_group_nccl.h"

#include <cstdlib>

#if defined(FORGE_WITH_CUDA) && __has_include(<nccl.h>)
#define FORGE_WITH_NCCL
#define USE_C10D_NCCL 1
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <chrono>

#include "backends/libtorch/worker/peer_copies.h"
#include "backends/libtorch/worker/process_meeting.h"
#endif

namespace forge::libtorch {

#ifdef FORGE_WITH_NCCL

namespace {

/// LibTorch's own watch would abort a process that waits for one which answers questions or writes,
/// and sees nothing of recorded work. The supervisor notices that nothing moves any more.
constexpr std::chrono::hours patience{24 * 365};

/// Of variables that the user has not set. NCCL talks to processes of this host alone.
void prepare_environment() {
  constexpr int keep = 0;
  ::setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0", keep);
  ::setenv("TORCH_NCCL_ENABLE_MONITORING", "0", keep);
  ::setenv("NCCL_SOCKET_IFNAME", "lo", keep);
}

class Nccl : public ProcessGroup {
 public:
  Nccl(const worker::Processes& processes, const at::Device& device)
      : Nccl(meet_processes(processes), device, processes.rank, processes.count) {
    copies_ = PeerCopies::connect(*this, device);
  }

  ~Nccl() override {
    copies_.reset();
    try {
      group_->shutdown();
    } catch (const std::exception&) {
      // The run has ended, one way or another.
    }
  }

  Transfer begin_exchange(const at::Tensor& sent, const at::Tensor& into) override {
    if (!sent.is_cuda()) return {exchange(sent.to(device_)).cpu(), {}, {}};
    if (is_copied(into)) return copies_->begin_exchange(sent, into);
    return begin_all_to_all(*group_, count(), sent, into);
  }

  Transfer begin_gather(const at::Tensor& own, const at::Tensor& into) override {
    if (!own.is_cuda()) return {gather(own.to(device_)).cpu(), {}, {}};
    if (is_copied(into)) return copies_->begin_gather(own, into);
    at::Tensor in = bytes_of(own.contiguous());
    at::Tensor all = into.defined() ? bytes_of(into).view({count(), -1})
                                    : at::empty({count(), in.numel()}, in.options());
    return transfer(
        all.view(own.scalar_type()), in, [&] { return group_->_allgather_base(all, in); });
  }

  void share(const at::Tensor& memory) override {
    if (copies_) copies_->share(*this, memory);
  }

  std::unique_ptr<ProcessGroup> part(const std::string& name, int rank, int count) override {
    const MeetingPlace place = c10::make_intrusive<c10d::PrefixStore>(name, place_);
    return std::unique_ptr<ProcessGroup>(new Nccl(place, device_, rank, count));
  }

 private:
  using Group = c10::intrusive_ptr<c10d::ProcessGroupNCCL>;

  Nccl(const MeetingPlace& place, const at::Device& device, int rank, int count)
      : ProcessGroup(rank, count),
        place_(place),
        device_(device),
        group_(connect(place, rank, count)) {
    // NCCL connects processes at their first operation of a kind, and allocates then: not while a
    // graph is recorded.
    const at::Tensor nothing = at::zeros({count}, at::TensorOptions(device).dtype(at::kDouble));
    exchange(nothing);
    gather(nothing);
  }

  static Group connect(const MeetingPlace& place, int rank, int count) {
    prepare_environment();
    try {
      // Its stream goes before the others: what it moves is waited for.
      auto options = c10d::ProcessGroupNCCL::Options::create(/*is_high_priority_stream=*/true);
      options->timeout = patience;
      return c10::make_intrusive<c10d::ProcessGroupNCCL>(place, rank, count, options);
    } catch (const std::exception& problem) {
      throw lost_process("did not find the others", problem);
    }
  }

  bool is_copied(const at::Tensor& into) const {
    return copies_ && into.defined() && copies_->reaches(into);
  }

  const MeetingPlace place_;
  const at::Device device_;
  const Group group_;
  std::shared_ptr<PeerCopies> copies_;  ///< where GPUs reach each other's memory
};

}  // namespace

bool has_nccl() { return true; }

std::unique_ptr<ProcessGroup> make_nccl_group(const worker::Processes& processes,
                                              const at::Device& device) {
  return std::make_unique<Nccl>(processes, device);
}

#else

bool has_nccl() { return false; }

std::unique_ptr<ProcessGroup> make_nccl_group(const worker::Processes&, const at::Device&) {
  throw Error("this worker was built without NCCL: it cannot train a run on several GPUs",
              "parallel.processes: 1, or build it where nccl.h is, as docs/PARALLEL.md says");
}

#endif

}  // namespace forge::libtorch

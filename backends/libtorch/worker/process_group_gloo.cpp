#include "backends/libtorch/worker/process_group_gloo.h"

#include <torch/version.h>

#include <chrono>

#include "backends/libtorch/worker/process_meeting.h"
#include "core/base/threads.h"

// Gloo's headers must be those that LibTorch was built with. Debian has both, and its LibTorch is
// older than 2; a later one brings a Gloo of its own without headers.
#if TORCH_VERSION_MAJOR < 2 && __has_include(<gloo/transport/device.h>)
#define FORGE_WITH_GLOO
#define USE_C10D_GLOO 1
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#endif

namespace forge::libtorch {

#ifdef FORGE_WITH_GLOO

namespace {

/// Processes wait for each other as long as it takes: one of them may answer questions or write
/// while the others wait. That nothing moves any more is noticed by the supervisor.
constexpr std::chrono::hours patience{24 * 365};

class Gloo : public ProcessGroup {
 public:
  explicit Gloo(const worker::Processes& processes)
      : Gloo(meet_processes(processes), processes.rank, processes.count) {}

  Transfer begin_exchange(const at::Tensor& sent, const at::Tensor& into) override {
    return begin_all_to_all(*group_, count(), sent, into);
  }

  Transfer begin_gather(const at::Tensor& own, const at::Tensor& into) override {
    std::vector<at::Tensor> in = {bytes_of(own.contiguous())};
    at::Tensor all = into.defined() ? bytes_of(into).view({count(), -1})
                                    : at::empty({count(), in[0].numel()}, in[0].options());
    std::vector<std::vector<at::Tensor>> out = {all.unbind(0)};
    return transfer(all.view(own.scalar_type()), in[0], [&] { return group_->allgather(out, in); });
  }

  std::unique_ptr<ProcessGroup> part(const std::string& name, int rank, int count) override {
    const Store store = c10::make_intrusive<c10d::PrefixStore>(name, store_);
    return std::unique_ptr<ProcessGroup>(new Gloo(store, rank, count));
  }

 private:
  using Store = MeetingPlace;
  using Group = c10::intrusive_ptr<c10d::ProcessGroupGloo>;

  Gloo(const Store& store, int rank, int count)
      : ProcessGroup(rank, count), store_(store), group_(connect(store, rank, count)) {}

  static Group connect(const Store& store, int rank, int count) {
    require_threads(4);  // the device's, two that work, and one that waits: it ends without them
    try {
      auto options = c10d::ProcessGroupGloo::Options::create(patience);
      // Nobody outside this machine can reach the processes.
      options->devices = {c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")};
      return c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, count, options);
    } catch (const std::exception& problem) {
      throw lost_process("did not find the others", problem);
    }
  }

  const Store store_;
  const Group group_;
};

}  // namespace

bool has_gloo() { return true; }

std::unique_ptr<ProcessGroup> make_gloo_group(const worker::Processes& processes) {
  return std::make_unique<Gloo>(processes);
}

#else

bool has_gloo() { return false; }

std::unique_ptr<ProcessGroup> make_gloo_group(const worker::Processes&) {
  throw Error("this worker was built without Gloo: it cannot train a run by several processes",
              "parallel.processes: 1, or build it with LibTorch 1.13 of Debian and libgloo-dev");
}

#endif

}  // namespace forge::libtorch

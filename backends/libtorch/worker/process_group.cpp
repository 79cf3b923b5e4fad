#include "backends/libtorch/worker/process_group.h"

#include <algorithm>
#include <cstdlib>

#include "backends/libtorch/worker/process_group_gloo.h"
#include "backends/libtorch/worker/process_group_nccl.h"

namespace forge::libtorch {
namespace {

class Alone : public ProcessGroup {
 public:
  Alone() : ProcessGroup(0, 1) {}
  Transfer begin_exchange(const at::Tensor& sent, const at::Tensor&) override {
    return {sent.unsqueeze(0), sent, {}};
  }
  Transfer begin_gather(const at::Tensor& own, const at::Tensor&) override {
    return {own.unsqueeze(0), {}, {}};
  }
  std::unique_ptr<ProcessGroup> part(const std::string&, int, int) override {
    return std::make_unique<Alone>();
  }
};

class Mute : public ProcessGroup {
 public:
  Mute(ProcessGroup& group, bool tells)
      : ProcessGroup(group.rank(), group.count()), group_(group), tells_(tells) {}
  Transfer begin_exchange(const at::Tensor& sent, const at::Tensor&) override {
    return {sent.view({count(), -1}).narrow(0, rank(), 1).expand({count(), -1}), sent, {}};
  }
  Transfer begin_gather(const at::Tensor& own, const at::Tensor& all) override {
    if (all.defined()) return {all.view({count(), -1}), {}, {}};
    if (tells_) return group_.begin_gather(own);
    return {own.unsqueeze(0).repeat({count(), 1}), {}, {}};
  }
  std::unique_ptr<ProcessGroup> part(const std::string&, int, int) override {
    throw Error("a group that exchanges nothing has no parts");
  }

 private:
  ProcessGroup& group_;
  const bool tells_;
};

/// A whole number of the environment; `otherwise` where it is not set.
int64_t number_of_environment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  if (!text) return otherwise;
  char* end = nullptr;
  const long number = std::strtol(text, &end, 10);
  if (*text == '\0' || *end != '\0')
    throw Error(std::string(name) + " is '" + text + "', which is no whole number");
  return number;
}

}  // namespace

std::vector<double> ProcessGroup::gather(const std::vector<double>& own) {
  const at::Tensor all = gather(at::tensor(own, at::TensorOptions(at::kDouble)));
  const at::Tensor flat = all.contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

double ProcessGroup::largest(double own) {
  const std::vector<double> all = gather(std::vector<double>{own});
  return *std::max_element(all.begin(), all.end());
}

double ProcessGroup::of_first(double own) { return gather(std::vector<double>{own}).front(); }

std::unique_ptr<ProcessGroup> make_mute_group(ProcessGroup& group, bool tells) {
  return std::make_unique<Mute>(group, tells);
}

int rank_by_environment() {
  const int64_t ranks = number_of_environment(worker::ranks_variable, 1);
  const int64_t rank = number_of_environment(worker::rank_variable, 0);
  if (rank < 0 || rank >= ranks) {
    throw Error(std::string(worker::rank_variable) + " is " + std::to_string(rank) + " and " +
                worker::ranks_variable + " " + std::to_string(ranks));
  }
  return static_cast<int>(rank);
}

std::unique_ptr<ProcessGroup> make_process_group(const worker::Request& request,
                                                 const at::Device& device) {
  if (!request.processes || request.processes->count == 1) return std::make_unique<Alone>();
  const worker::Processes& processes = *request.processes;
  return device.is_cuda() ? make_nccl_group(processes, device) : make_gloo_group(processes);
}

}  // namespace forge::libtorch

#include "backends/libtorch/worker/gradient_exchange.h"

#include "backends/libtorch/worker/gradient_tree.h"

namespace forge::libtorch {
namespace {

/// What each process has sent here, in their order.
std::vector<at::Tensor> pieces(Transfer& begun, const ProcessGroup& group) {
  const at::Tensor sent = begun.sent;
  const at::Tensor received = begun.finish();
  std::vector<at::Tensor> pieces = received.unbind(0);
  pieces[static_cast<size_t>(group.rank())] =
      sent.view(received.scalar_type()).view({group.count(), -1}).select(0, group.rank());
  return pieces;
}

}  // namespace

GradientExchange::GradientExchange(ProcessGroup& group, int hosts) : group_(group), hosts_(hosts) {
  if (hosts < 1 || group.count() % hosts != 0) {
    throw Error(std::to_string(group.count()) + " processes cannot be on " + std::to_string(hosts) +
                    " hosts with as many on each",
                "\"hosts\" of the request's processes: a number that divides their count");
  }
  if (hosts == 1) return;
  const int on_each = group.count() / hosts;
  const int host = group.rank() / on_each, place = group.rank() % on_each;
  host_ = group.part("host " + std::to_string(host), place, on_each);
  peers_ = group.part("place " + std::to_string(place), host, hosts);
}

void GradientExchange::share(const at::Tensor& memory) {
  if (!host_) group_.share(memory);
}

Transfer GradientExchange::begin(const at::Tensor& all, const at::Tensor& landing) {
  if (!host_) return group_.begin_exchange(all, landing);
  // A process gets the pieces of all processes with its place from its host, adds them, and sends
  // each to the host that it is for.
  const at::Tensor by_place = all.view({hosts_, host_->count(), -1}).transpose(0, 1).contiguous();
  return host_->begin_exchange(by_place.view(-1));
}

at::Tensor GradientExchange::finish(Transfer& begun) {
  if (!host_) return tree_sum(pieces(begun, group_));
  const at::Tensor of_host = tree_sum(pieces(begun, *host_));
  return tree_sum(peers_->exchange(of_host).unbind(0));
}

Transfer GradientExchange::begin_gather(const at::Tensor& all) {
  const int64_t size = all.numel() / group_.count();
  const at::Tensor own = all.narrow(0, group_.rank() * size, size);
  return host_ ? peers_->begin_gather(own) : group_.begin_gather(own, all);
}

void GradientExchange::finish_gather(Transfer& begun, const at::Tensor& all) {
  const at::Tensor of_place = begun.finish();
  if (!host_) return;
  const at::Tensor by_place = host_->gather(of_place.view(-1)).view({host_->count(), hosts_, -1});
  all.view({hosts_, host_->count(), -1}).copy_(by_place.transpose(0, 1));
}

}  // namespace forge::libtorch

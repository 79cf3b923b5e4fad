#include "backends/libtorch/worker/gradient_exchange.h"

#include "backends/libtorch/worker/gradient_tree.h"

namespace forge::libtorch {

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

at::Tensor GradientExchange::sum(const at::Tensor& all) {
  if (!host_) return tree_sum(group_.exchange(all));
  // A process gets the pieces of all processes with its place from its host, adds them, and sends
  // each to the host that it is for.
  const at::Tensor by_place = all.view({hosts_, host_->count(), -1}).transpose(0, 1).contiguous();
  const at::Tensor of_host = tree_sum(host_->exchange(by_place.view(-1)));
  return tree_sum(peers_->exchange(of_host));
}

at::Tensor GradientExchange::gather(const at::Tensor& own) {
  if (!host_) return group_.gather(own).view(-1);
  const at::Tensor of_place = peers_->gather(own).view(-1);
  const at::Tensor by_place = host_->gather(of_place).view({host_->count(), hosts_, -1});
  return by_place.transpose(0, 1).contiguous().view(-1);
}

}  // namespace forge::libtorch

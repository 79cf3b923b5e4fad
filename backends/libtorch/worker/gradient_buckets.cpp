#include "backends/libtorch/worker/gradient_buckets.h"

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <utility>

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

namespace forge::libtorch {

struct GradientBuckets::State {
  enum class Mode { closed, collecting, rehearsing };
  struct Bucket {
    at::Tensor row;       ///< gradients of the open slot, from the first one on
    size_t complete = 0;  ///< tensors that all passes have found
    GradientTree tree;
  };
  struct UnderWay {
    size_t bucket;
    Transfer transfer;
  };

  const FlatWeights& flat;
  GradientExchange& exchange;
  Mode mode = Mode::closed;
  int64_t passes = 1;
  std::vector<int64_t> found;  ///< passes that have found a tensor's gradient
  std::vector<Bucket> buckets;
  size_t unsent = 0;  ///< buckets of the open slot: the first ones
  std::deque<UnderWay> under_way;
  std::array<at::Tensor, 2> landings;  ///< where gradients come, in turn: one is read, one written
  size_t next_landing = 0;
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators;  ///< kept, with their hooks

  State(const FlatWeights& weights, GradientExchange& processes)
      : flat(weights),
        exchange(processes),
        found(weights.stored().size()),
        buckets(weights.buckets().size()) {
    if (weights.place().count == 1) return;
    size_t most = 0;
    for (const FlatWeights::Bucket& bucket : weights.buckets())
      most = std::max<size_t>(most, bucket.row.nbytes());
    for (at::Tensor& landing : landings) {
      landing = at::empty({int64_t(most)}, weights.buckets()[0].row.options().dtype(at::kByte));
      exchange.share(landing);
    }
  }

  at::Tensor landing_of(size_t bucket) {
    const at::Tensor& row = flat.buckets()[bucket].row;
    const at::Tensor& landing = landings[next_landing];
    if (!landing.defined()) return {};
    next_landing = 1 - next_landing;
    return landing.narrow(0, 0, int64_t(row.nbytes())).view(row.scalar_type());
  }

  /// A backward pass has left a gradient in a tensor.
  void arrived(size_t stored) {
    if (mode == Mode::closed) return;
    const at::NoGradGuard no_grad;
    at::Tensor tensor = flat.stored()[stored];
    const at::Tensor gradient = std::exchange(tensor.mutable_grad(), at::Tensor());
    if (mode == Mode::rehearsing) return;
    const FlatWeights::Location& location = flat.location(stored);
    Bucket& bucket = buckets[location.bucket];
    if (!bucket.row.defined()) bucket.row = at::empty_like(flat.buckets()[location.bucket].row);
    const at::Tensor place =
        bucket.row.narrow(0, location.begin, gradient.numel()).view(gradient.sizes());
    found[stored]++ == 0 ? place.copy_(gradient) : place.add_(gradient);
    if (found[stored] == passes) ++bucket.complete;
    // The last ones first, as a backward pass goes. The order is always the same: also where a
    // pass breaks off the processes send each other the same buckets.
    while (unsent > 0 && buckets[unsent - 1].complete == flat.buckets()[unsent - 1].tensors.size())
      send_next();
  }

  /// One exchange goes on while the next gradients are computed; those before it are added up.
  void send_next() {
    const size_t index = unsent - 1;
    fill_gaps(index);
    under_way.push_back({index, exchange.begin(buckets[index].row, landing_of(index))});
    buckets[index].row = at::Tensor();
    --unsent;
    while (under_way.size() > 1) add_oldest();
  }

  void add_all() {
    while (!under_way.empty()) add_oldest();
  }

  void add_oldest() {
    UnderWay oldest = std::move(under_way.front());
    under_way.pop_front();
    buckets[oldest.bucket].tree.add(exchange.finish(oldest.transfer));
  }

  /// Zeros where no gradient was written.
  void fill_gaps(size_t index) {
    const FlatWeights::Bucket& weights = flat.buckets()[index];
    at::Tensor& row = buckets[index].row;
    if (!row.defined()) row = at::empty_like(weights.row);
    int64_t end = 0;
    for (const size_t stored : weights.tensors) {
      if (found[stored] == 0) continue;
      const int64_t begin = flat.location(stored).begin;
      if (begin > end) row.narrow(0, end, begin - end).zero_();
      end = begin + flat.stored()[stored].numel();
    }
    if (row.numel() > end) row.narrow(0, end, row.numel() - end).zero_();
  }
};

namespace {

/// Runs behind the node that adds a gradient to a tensor's grad().
class Arrival : public torch::autograd::FunctionPostHook {
 public:
  explicit Arrival(std::function<void()> arrived) : arrived_(std::move(arrived)) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    arrived_();
    return outputs;
  }

 private:
  const std::function<void()> arrived_;
};

}  // namespace

GradientBuckets::GradientBuckets(const FlatWeights& flat, GradientExchange& exchange)
    : state_(std::make_shared<State>(flat, exchange)) {
  for (size_t i = 0; i < flat.stored().size(); ++i) {
    const auto node = torch::autograd::impl::grad_accumulator(flat.stored()[i]);
    // The node may outlive this.
    const auto arrived = [state = std::weak_ptr<State>(state_), i] {
      if (const auto alive = state.lock()) alive->arrived(i);
    };
    node->add_post_hook(std::make_unique<Arrival>(arrived));
    state_->accumulators.push_back(node);
  }
}

GradientBuckets::~GradientBuckets() = default;

void GradientBuckets::open_slot(int64_t passes) {
  state_->mode = State::Mode::collecting;
  state_->passes = passes;
  state_->found.assign(state_->found.size(), 0);
  for (State::Bucket& bucket : state_->buckets) {
    bucket.row = at::Tensor();
    bucket.complete = 0;
  }
  state_->unsent = state_->buckets.size();
}

void GradientBuckets::close_slot() {
  const at::NoGradGuard no_grad;
  state_->mode = State::Mode::closed;
  while (state_->unsent > 0) state_->send_next();
}

std::vector<at::Tensor> GradientBuckets::take() {
  const at::NoGradGuard no_grad;
  state_->add_all();
  std::vector<at::Tensor> sums;
  for (State::Bucket& bucket : state_->buckets) sums.push_back(bucket.tree.take());
  return sums;
}

void GradientBuckets::forget() {
  const at::NoGradGuard no_grad;
  state_->add_all();
  for (State::Bucket& bucket : state_->buckets) bucket.tree = GradientTree();
}

void GradientBuckets::exchange_alone(ProcessGroup& group, size_t bucket) {
  group.begin_exchange(state_->flat.buckets()[bucket].row, state_->landing_of(bucket)).finish();
}

void GradientBuckets::open_rehearsal() { state_->mode = State::Mode::rehearsing; }

void GradientBuckets::close_rehearsal() { state_->mode = State::Mode::closed; }

}  // namespace forge::libtorch

#include "backends/libtorch/worker/gradient_buckets.h"

#include <algorithm>
#include <deque>
#include <utility>

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include "backends/libtorch/ops/common/gradient_memory.h"

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
  /// Exchanges that go on while gradients are computed. GPUs that are limited by their power run
  /// now faster and now slower than each other: fewer than so many buckets apart none has to wait.
  const size_t most_under_way;
  Mode mode = Mode::closed;
  int64_t passes = 1;
  std::vector<int64_t> found;        ///< passes that have found a tensor's gradient
  std::vector<bool> has_been_asked;  ///< whether somebody writes it into its place
  std::vector<Bucket> buckets;
  size_t unsent = 0;  ///< buckets of the open slot: the first ones
  std::deque<UnderWay> under_way;
  at::Tensor landing;         ///< where gradients come, a ring of bytes
  int64_t landing_begin = 0;  ///< of what comes next
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators;  ///< kept, with their hooks

  State(const FlatWeights& weights, GradientExchange& processes)
      : flat(weights),
        exchange(processes),
        most_under_way(weights.stored().front().is_cuda() ? 8 : 1),
        found(weights.stored().size()),
        buckets(weights.buckets().size()) {
    if (weights.place().count == 1) return;
    landing = at::empty({bytes_of_landing()}, weights.buckets()[0].row.options().dtype(at::kByte));
    exchange.share(landing);
  }

  /// Of those that are under way and one more, whichever these are, and of the piece at the end
  /// that the next one does not fit into.
  int64_t bytes_of_landing() const {
    const size_t count = buckets.size();
    int64_t most = 0, largest = 0;
    for (size_t first = 0; first < count; ++first) {
      int64_t bytes = 0;
      for (size_t i = 0; i <= most_under_way; ++i) bytes += bytes_of((first + i) % count);
      most = std::max(most, bytes);
      largest = std::max(largest, bytes_of(first));
    }
    return most + largest;
  }

  int64_t bytes_of(size_t bucket) const { return int64_t(flat.buckets()[bucket].row.nbytes()); }

  at::Tensor landing_of(size_t bucket) {
    if (!landing.defined()) return {};
    const int64_t bytes = bytes_of(bucket);
    if (landing_begin + bytes > landing.numel()) landing_begin = 0;
    const at::Tensor place = landing.narrow(0, landing_begin, bytes);
    landing_begin += bytes;
    return place.view(flat.buckets()[bucket].row.scalar_type());
  }

  /// Where the gradient of a tensor is to be in its bucket's row.
  at::Tensor place_of(size_t stored) {
    const FlatWeights::Location& location = flat.location(stored);
    at::Tensor& row = buckets[location.bucket].row;
    if (!row.defined()) row = at::empty_like(flat.buckets()[location.bucket].row);
    const at::Tensor& tensor = flat.stored()[stored];
    return row.narrow(0, location.begin, tensor.numel()).view(tensor.sizes());
  }

  /// For who finds it first, and alone: what others find is added to it.
  at::Tensor memory_for(size_t stored) {
    if (mode != Mode::collecting || has_been_asked[stored]) return {};
    has_been_asked[stored] = true;
    const at::NoGradGuard no_grad;
    return place_of(stored);
  }

  /// A backward pass has left a gradient in a tensor.
  void arrived(size_t stored) {
    if (mode == Mode::closed) return;
    const at::NoGradGuard no_grad;
    at::Tensor tensor = flat.stored()[stored];
    const at::Tensor gradient = std::exchange(tensor.mutable_grad(), at::Tensor());
    if (mode == Mode::rehearsing) return;
    const at::Tensor place = place_of(stored);
    if (found[stored]++ > 0) {
      place.add_(gradient);
    } else if (place.data_ptr() != gradient.data_ptr()) {
      place.copy_(gradient);
    }
    has_been_asked[stored] = true;
    if (found[stored] == passes) ++buckets[flat.location(stored).bucket].complete;
    // The last ones first, as a backward pass goes. The order is always the same: also where a
    // pass breaks off the processes send each other the same buckets.
    while (unsent > 0 && buckets[unsent - 1].complete == flat.buckets()[unsent - 1].tensors.size())
      send_next();
  }

  /// Some exchanges go on while the next gradients are computed; those before them are added up.
  void send_next() {
    const size_t index = unsent - 1;
    fill_gaps(index);
    under_way.push_back({index, exchange.begin(buckets[index].row, landing_of(index))});
    buckets[index].row = at::Tensor();
    --unsent;
    while (under_way.size() > most_under_way) add_oldest();
  }

  void add_all() {
    while (!under_way.empty()) add_oldest();
    landing_begin = 0;  // in each step the same places, also where it is recorded
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

/// Of a stored tensor. The node that it hangs on may outlive the buckets.
class GradientBuckets::Receiver : public ops::GradientReceiver {
 public:
  Receiver(std::weak_ptr<State> state, size_t stored) : state_(std::move(state)), stored_(stored) {}

  at::Tensor memory() override {
    const auto state = state_.lock();
    return state ? state->memory_for(stored_) : at::Tensor();
  }
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    if (const auto state = state_.lock()) state->arrived(stored_);
    return outputs;
  }

 private:
  const std::weak_ptr<State> state_;
  const size_t stored_;
};

GradientBuckets::GradientBuckets(const FlatWeights& flat, GradientExchange& exchange)
    : state_(std::make_shared<State>(flat, exchange)) {
  for (size_t i = 0; i < flat.stored().size(); ++i) {
    const auto node = torch::autograd::impl::grad_accumulator(flat.stored()[i]);
    node->add_post_hook(std::make_unique<Receiver>(state_, i));
    state_->accumulators.push_back(node);
  }
}

GradientBuckets::~GradientBuckets() = default;

void GradientBuckets::open_slot(int64_t passes) {
  state_->mode = State::Mode::collecting;
  state_->passes = passes;
  state_->found.assign(state_->found.size(), 0);
  state_->has_been_asked.assign(state_->found.size(), false);
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

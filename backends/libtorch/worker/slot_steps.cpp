#include "backends/libtorch/worker/slot_steps.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "backends/libtorch/worker/gradient_tree.h"

namespace forge::libtorch {
namespace {

constexpr int64_t flags_on_host = 3;    ///< behind a message: short of memory, stop, save
constexpr int64_t flags_on_device = 2;  ///< stop, save

int64_t own_blocks(const FlatWeights& flat) {
  int64_t blocks = 0;
  for (size_t bucket = 0; bucket < flat.buckets().size(); ++bucket)
    blocks += flat.own_range(bucket).size() / FlatWeights::block;
  return blocks;
}

at::Tensor on_device(const std::vector<int64_t>& numbers, const at::Device& device) {
  return at::tensor(numbers, at::TensorOptions(at::kLong)).to(device);
}

std::vector<double> picked(const std::vector<double>& from, const std::vector<int64_t>& places) {
  std::vector<double> numbers;
  numbers.reserve(places.size());
  for (const int64_t place : places) numbers.push_back(from[static_cast<size_t>(place)]);
  return numbers;
}

}  // namespace

SlotSteps::SlotSteps(const config::Experiment& experiment,
                     Trainer& trainer,
                     ProcessGroup& group,
                     const at::Device& device,
                     bool counts,
                     int hosts)
    : trainer_(trainer),
      group_(group),
      exchange_(group, hosts),
      buckets_(trainer.flat(), exchange_),
      return_(trainer.flat(), exchange_, trainer.optimizer().is_recordable()),
      device_(device),
      rows_(experiment.train.batch_size / experiment.train.gradient_slots),
      slots_(experiment.train.gradient_slots / group.count()),
      counts_(counts),
      batch_targets_(int64_t{experiment.train.batch_size} * experiment.train.seq_len),
      blocks_(own_blocks(trainer.flat())),
      flags_(trainer.optimizer().is_recordable() ? flags_on_device : flags_on_host),
      order_(order_of_messages()),
      graph_(device,
             group.count() > 1 ? StepGraph::Otherwise::error : StepGraph::Otherwise::unrecorded) {
  if (group.count() > 1)
    trainer.model().on_reading([this](size_t count) { return_.finish(count); });
  for (int slot = 0; slot < slots_; ++slot)
    uploaders_.emplace_back(device, experiment.train.seq_len);
  if (!trainer.optimizer().is_recordable()) return;
  block_order_ = on_device(order_.blocks, device);
  loss_order_ = on_device(order_.losses, device);
  asked_ = at::zeros({flags_on_device}, at::TensorOptions(device).dtype(at::kInt));
  wishes_ = at::zeros_like(asked_);
}

SlotSteps::~SlotSteps() { trainer_.model().on_reading(nullptr); }

/// A message: the sums of squares of this process's blocks, the losses of its slots, flags.
SlotSteps::Order SlotSteps::order_of_messages() const {
  const FlatWeights& flat = trainer_.flat();
  const int64_t size = blocks_ + slots_ + flags_;
  Order order;
  int64_t first = 0;
  for (size_t bucket = 0; bucket < flat.buckets().size(); ++bucket) {
    const int64_t blocks = flat.own_range(bucket).size() / FlatWeights::block;
    for (int rank = 0; rank < group_.count(); ++rank)
      for (int64_t i = 0; i < blocks; ++i) order.blocks.push_back(rank * size + first + i);
    first += blocks;
  }
  for (int64_t round = 0; round < slots_; ++round)
    for (int rank = 0; rank < group_.count(); ++rank)
      order.losses.push_back(rank * size + blocks_ + round);
  return order;
}

std::vector<data::RowBatch> SlotSteps::next_rows(data::BatchLoader& loader) const {
  std::vector<data::RowBatch> rows;
  for (int slot = 0; slot < slots_; ++slot) rows.push_back(loader.next());
  return rows;
}

Wishes SlotSteps::step(const std::vector<data::RowBatch>& rows,
                       int64_t step,
                       const std::function<Wishes()>& asked,
                       const OnMicroBatch& on_micro_batch) {
  count_targets(rows);
  const Wishes wishes = trainer_.optimizer().is_recordable()
                            ? step_on_device(rows, step, asked(), on_micro_batch)
                            : step_on_host(rows, step, asked, on_micro_batch);
  is_complete_ = group_.count() == 1;
  return wishes;
}

double SlotSteps::loss_alone(const std::vector<data::RowBatch>& rows) {
  complete_weights();
  count_targets(rows);
  std::vector<double> losses;
  for (const data::RowBatch& slot : rows) {
    const double own = trainer_.loss_alone(batch_of(slot));
    for (const double loss : group_.gather(std::vector<double>{own})) losses.push_back(loss);
  }
  return tree_sum(losses);
}

void SlotSteps::count_targets(const std::vector<data::RowBatch>& rows) {
  double own = 0;
  for (const data::RowBatch& slot : rows)
    own += double(std::count(slot.targets.begin(), slot.targets.end(), data::unscored_target));
  TORCH_CHECK(counts_ || own == 0, "rows without unscored targets have ", own);
  double all = 0;
  if (counts_)
    for (const double unscored : group_.gather(std::vector<double>{own})) all += unscored;
  if (int64_t(all) == unscored_) return;
  unscored_ = int64_t(all);
  if (!counted_.defined())
    counted_ = at::empty({batch_targets_}, at::TensorOptions(device_).dtype(at::kInt));
  counted_.zero_();
  counted_.narrow(0, 0, unscored_).fill_(ops::ignored_target);
}

Batch SlotSteps::batch_of(const data::RowBatch& rows, size_t slot) {
  Batch batch = uploaders_[slot].upload(rows, trainer_.micro_batch_size());
  batch.counted = counted_;
  return batch;
}

void SlotSteps::halve_micro_batch(const std::string& shortage, const OnMicroBatch& on_micro_batch) {
  const int before = trainer_.micro_batch_size();
  trainer_.set_micro_batch_size(0);  // frees gradients
  const int rows = before > 0 ? std::min(before, rows_) : rows_;
  const int halved = halved_micro_batch(rows, shortage, device_);
  trainer_.set_micro_batch_size(halved);
  if (on_micro_batch) on_micro_batch({halved, shortage});
}

void SlotSteps::update(const std::vector<at::Tensor>& gradients) {
  const at::NoGradGuard no_grad;
  const auto gather = [&](const at::Tensor& own) {
    const at::Tensor all = at::empty({own.numel() * group_.count()}, own.options());
    all.narrow(0, own.numel() * group_.rank(), own.numel()).copy_(own);
    Transfer transfer = exchange_.begin_gather(all);
    exchange_.finish_gather(transfer, all);
    return all;
  };
  trainer_.optimizer().update_own(gradients, gather);
  // On a GPU the update rounds, and what others have updated is rounded when it comes.
  if (group_.count() == 1 && !trainer_.optimizer().is_recordable())
    trainer_.model().round_matrices();
}

void SlotSteps::complete_weights() {
  if (is_complete_) return;
  return_.begin();
  return_.finish();
  is_complete_ = true;
}

void SlotSteps::complete_stored() {
  complete_weights();
  if (group_.count() > 1) return_.complete_stored();
}

void SlotSteps::exchange_alone() {
  for (int slot = 0; slot < slots_; ++slot)
    for (size_t bucket = 0; bucket < trainer_.flat().buckets().size(); ++bucket)
      buckets_.exchange_alone(group_, bucket);
  return_.begin();
  return_.finish();
}

// On a CPU.

Wishes SlotSteps::step_on_host(const std::vector<data::RowBatch>& rows,
                               int64_t step,
                               const std::function<Wishes()>& asked,
                               const OnMicroBatch& on_micro_batch) {
  Wishes own;
  if (group_.count() > 1) return_.begin();
  while (true) {
    const Gradient found = gradient(rows);
    const Wishes newest = asked();
    own = {own.stop || newest.stop, own.save || newest.save};
    const Tail tail = tail_of(found, own);
    if (tail.shortage.empty()) {
      Optimizer& optimizer = trainer_.optimizer();
      optimizer.begin(step);
      optimizer.begin_own(tail.loss, tail.norm);
      update(found.own);
      optimizer.end();
      return tail.wishes;
    }
    halve_micro_batch(tail.shortage, on_micro_batch);
  }
}

/// Where memory ran out the others get something, since they wait: the step is repeated by all.
SlotSteps::Gradient SlotSteps::gradient(const std::vector<data::RowBatch>& rows) {
  Gradient found;
  for (const data::RowBatch& slot : rows) {
    double loss = 0;
    buckets_.open_slot(passes());
    const auto shortage = run_or_out_of_memory([&] {
      if (found.shortage.empty()) loss = trainer_.loss_and_gradients(batch_of(slot)).item<double>();
    });
    if (shortage) {
      found.shortage = *shortage;
      trainer_.set_micro_batch_size(trainer_.micro_batch_size());  // frees gradients
    }
    return_.finish();  // if memory ran out before
    buckets_.close_slot();
    found.losses.push_back(loss);
  }
  if (found.shortage.empty()) {
    found.own = buckets_.take();
  } else {
    buckets_.forget();
  }
  return found;
}

SlotSteps::Tail SlotSteps::tail_of(const Gradient& gradient, const Wishes& wishes) {
  // Squares are added within blocks, then blocks in their order: whoever owns them. Behind the last
  // weight of a bucket there are blocks of zeros.
  std::vector<double> own;
  for (const at::Tensor& part : gradient.own) {
    const at::Tensor squares =
        part.view({-1, FlatWeights::block}).square().sum({1}, false, at::kDouble).cpu();
    own.insert(own.end(), squares.data_ptr<double>(), squares.data_ptr<double>() + squares.numel());
  }
  own.resize(static_cast<size_t>(blocks_));  // where memory ran out there are none
  own.insert(own.end(), gradient.losses.begin(), gradient.losses.end());
  own.insert(own.end(),
             {double(!gradient.shortage.empty()), double(wishes.stop), double(wishes.save)});
  const std::vector<double> all = group_.gather(own);
  Tail tail;
  double sum = 0;
  for (const double squares : picked(all, order_.blocks)) sum += squares;
  tail.norm = std::sqrt(sum);
  tail.loss = tree_sum(picked(all, order_.losses));
  for (size_t rank = 0; rank < static_cast<size_t>(group_.count()); ++rank) {
    const double* flags = all.data() + (rank + 1) * own.size() - flags_on_host;
    if (flags[0] != 0 && tail.shortage.empty())
      tail.shortage = "memory ran out in process " + std::to_string(rank);
    if (rank == 0) tail.wishes = {flags[1] != 0, flags[2] != 0};
  }
  if (!gradient.shortage.empty()) tail.shortage = gradient.shortage;
  return tail;
}

// On a GPU.

Wishes SlotSteps::step_on_device(const std::vector<data::RowBatch>& rows,
                                 int64_t step,
                                 const Wishes& asked,
                                 const OnMicroBatch& on_micro_batch) {
  if (!has_rehearsed_) rehearse(rows[0], on_micro_batch);
  batches_.clear();
  for (size_t slot = 0; slot < rows.size(); ++slot) batches_.push_back(batch_of(rows[slot], slot));
  const std::array<int32_t, flags_on_device> flags = {asked.stop, asked.save};
  asked_copies_.copy(flags.data(), flags_on_device, asked_);

  Optimizer& optimizer = trainer_.optimizer();
  optimizer.begin(step);
  // Documents may move in memory, in some processes and not in others.
  const bool is_fixed = !batches_[0].documents.ids.defined();
  const auto work = [this] { run_on_device(); };
  is_fixed ? graph_.run(work) : work();
  optimizer.end();
  if (group_.count() == 1) return asked;
  late_wishes_.copy(wishes_);
  const std::vector<int32_t> before = late_wishes_.before_last();
  return before.empty() ? Wishes() : Wishes{before[0] != 0, before[1] != 0};
}

void SlotSteps::run_on_device() {
  std::vector<at::Tensor> message;
  if (group_.count() > 1) return_.begin();
  for (const Batch& batch : batches_) {
    buckets_.open_slot(passes());
    message.push_back(trainer_.loss_and_gradients(batch).detach().view({1}));
    buckets_.close_slot();
  }
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> gradients = buckets_.take();
  std::vector<at::Tensor> squares;
  for (const at::Tensor& part : gradients) squares.push_back(ops::square_sums_cuda(part));
  message.insert(message.begin(), squares.begin(), squares.end());
  message.push_back(asked_.to(at::kFloat));

  const at::Tensor all = group_.gather(at::cat(message));
  wishes_.copy_(all.select(0, 0).narrow(0, blocks_ + slots_, flags_on_device));
  const at::Tensor said = all.view(-1);
  const at::Tensor losses = said.index_select(0, loss_order_).to(at::kDouble);
  const at::Tensor loss = tree_sum(losses.unbind(0)).to(at::kFloat);
  trainer_.optimizer().begin_own(said.index_select(0, block_order_), loss);
  update(gradients);
}

void SlotSteps::rehearse(const data::RowBatch& rows, const OnMicroBatch& on_micro_batch) {
  while (true) {
    buckets_.open_rehearsal();
    const auto own = run_or_out_of_memory(
        [&] { static_cast<void>(trainer_.loss_and_gradients(batch_of(rows)).item<float>()); });
    buckets_.close_rehearsal();
    const std::vector<double> short_of = group_.gather(std::vector<double>{own ? 1.0 : 0.0});
    const auto first = std::find(short_of.begin(), short_of.end(), 1.0);
    if (first == short_of.end()) break;
    const auto rank = first - short_of.begin();
    halve_micro_batch(own ? *own : "memory ran out in process " + std::to_string(rank),
                      on_micro_batch);
  }
  has_rehearsed_ = true;
}

}  // namespace forge::libtorch

#include "backends/libtorch/worker/slot_steps.h"

#include <algorithm>
#include <cmath>

#include "backends/libtorch/worker/gradient_tree.h"

namespace forge::libtorch {

SlotSteps::SlotSteps(const config::Experiment& experiment,
                     Trainer& trainer,
                     ProcessGroup& group,
                     const at::Device& device,
                     bool counts,
                     int hosts)
    : trainer_(trainer),
      group_(group),
      exchange_(group, hosts),
      device_(device),
      rows_(experiment.train.batch_size / experiment.train.gradient_slots),
      slots_(experiment.train.gradient_slots / group.count()),
      counts_(counts),
      batch_targets_(int64_t{experiment.train.batch_size} * experiment.train.seq_len),
      uploader_(device, experiment.train.seq_len) {}

Wishes SlotSteps::step(const std::vector<data::RowBatch>& rows,
                       int64_t step,
                       const std::function<Wishes()>& asked,
                       const OnMicroBatch& on_micro_batch) {
  count_targets(rows);
  Wishes own;
  while (true) {
    const Gradient found = gradient(rows);
    const Wishes newest = asked();
    own = {own.stop || newest.stop, own.save || newest.save};
    const Tail tail = tail_of(found, own);
    if (tail.shortage.empty()) {
      update(found, tail, step);
      return tail.wishes;
    }
    halve_micro_batch(tail.shortage, on_micro_batch);
  }
}

double SlotSteps::loss_alone(const std::vector<data::RowBatch>& rows) {
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
  if (counted_.defined() && int64_t(all) == unscored_) return;
  unscored_ = int64_t(all);
  counted_ = at::zeros({batch_targets_}, at::TensorOptions(device_).dtype(at::kInt));
  counted_.narrow(0, 0, unscored_).fill_(ops::ignored_target);
}

Batch SlotSteps::batch_of(const data::RowBatch& rows) {
  Batch batch = uploader_.upload(rows, trainer_.micro_batch_size());
  batch.counted = counted_;
  return batch;
}

SlotSteps::Gradient SlotSteps::gradient(const std::vector<data::RowBatch>& rows) {
  Gradient found;
  GradientTree tree;
  for (const data::RowBatch& slot : rows) tree.add(exchanged(found, slot));
  found.own = tree.take();
  return found;
}

/// Where memory ran out the others get zeros, since they wait: the step is repeated by all.
at::Tensor SlotSteps::exchanged(Gradient& found, const data::RowBatch& slot) {
  at::Tensor all;
  double loss = 0;
  const auto shortage = run_or_out_of_memory([&] {
    if (!found.shortage.empty()) return;
    loss = trainer_.loss_and_gradients(batch_of(slot)).item<double>();
    const at::NoGradGuard no_grad;
    all = at::zeros_like(trainer_.flat().all());
    trainer_.flat().copy_gradients(all);
  });
  if (shortage) {
    found.shortage = *shortage;
    trainer_.set_micro_batch_size(trainer_.micro_batch_size());  // frees gradients
  }
  const at::NoGradGuard no_grad;
  if (!all.defined()) all = at::zeros_like(trainer_.flat().all());
  found.losses.push_back(loss);
  return exchange_.sum(all);
}

SlotSteps::Tail SlotSteps::tail_of(const Gradient& gradient, const Wishes& wishes) {
  // Squares are added within blocks, then blocks in their order: whoever owns them. Behind the last
  // weight there are blocks of zeros.
  const at::Tensor squares =
      gradient.own.view({-1, FlatWeights::block}).square().sum({1}, false, at::kDouble).cpu();
  std::vector<double> own(squares.data_ptr<double>(), squares.data_ptr<double>() + squares.numel());
  own.insert(own.end(), gradient.losses.begin(), gradient.losses.end());
  own.insert(own.end(),
             {double(!gradient.shortage.empty()), double(wishes.stop), double(wishes.save)});
  const std::vector<double> all = group_.gather(own);
  const auto blocks = static_cast<size_t>(squares.numel());
  Tail tail;
  double sum = 0;
  std::vector<double> losses(gradient.losses.size() * static_cast<size_t>(group_.count()));
  for (size_t rank = 0; rank < static_cast<size_t>(group_.count()); ++rank) {
    const double* said = all.data() + rank * own.size();
    for (size_t i = 0; i < blocks; ++i) sum += said[i];
    said += blocks;
    for (size_t round = 0; round < gradient.losses.size(); ++round)
      losses[round * static_cast<size_t>(group_.count()) + rank] = said[round];
    said += gradient.losses.size();
    if (said[0] != 0 && tail.shortage.empty())
      tail.shortage = "memory ran out in process " + std::to_string(rank);
    if (rank == 0) tail.wishes = {said[1] != 0, said[2] != 0};
  }
  if (!gradient.shortage.empty()) tail.shortage = gradient.shortage;
  tail.norm = std::sqrt(sum);
  tail.loss = tree_sum(losses);
  return tail;
}

void SlotSteps::halve_micro_batch(const std::string& shortage, const OnMicroBatch& on_micro_batch) {
  const int before = trainer_.micro_batch_size();
  trainer_.set_micro_batch_size(0);  // frees gradients
  const int rows = before > 0 ? std::min(before, rows_) : rows_;
  const int halved = halved_micro_batch(rows, shortage, device_);
  trainer_.set_micro_batch_size(halved);
  if (on_micro_batch) on_micro_batch({halved, shortage});
}

void SlotSteps::update(const Gradient& gradient, const Tail& tail, int64_t step) {
  const at::NoGradGuard no_grad;
  Optimizer& optimizer = trainer_.optimizer();
  optimizer.begin(step);
  optimizer.update_own(gradient.own, tail.loss, tail.norm, [&](const at::Tensor& own) {
    return exchange_.gather(own);
  });
  optimizer.end();
  const FlatWeights& flat = trainer_.flat();
  if (group_.count() > 1) flat.all().copy_(exchange_.gather(flat.own()));
  trainer_.model().round_matrices();
}

}  // namespace forge::libtorch

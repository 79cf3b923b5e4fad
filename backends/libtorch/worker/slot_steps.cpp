#include "backends/libtorch/worker/slot_steps.h"

#include <algorithm>
#include <cmath>

#include "backends/libtorch/worker/gradient_tree.h"

namespace forge::libtorch {

SlotSteps::SlotSteps(const config::Experiment& experiment,
                     Trainer& trainer,
                     ProcessGroup& group,
                     const at::Device& device,
                     int hosts)
    : trainer_(trainer),
      group_(group),
      exchange_(group, hosts),
      device_(device),
      rows_(experiment.train.batch_size / experiment.train.gradient_slots),
      slots_(experiment.train.gradient_slots / group.count()),
      batch_targets_(int64_t{experiment.train.batch_size} * experiment.train.seq_len),
      uploader_(device, experiment.train.seq_len) {}

void SlotSteps::step(const std::vector<data::RowBatch>& rows,
                     int64_t step,
                     const OnMicroBatch& on_micro_batch) {
  count_targets(rows);
  while (true) {
    std::string shortage;
    if (const std::optional<Gradient> found = gradient(rows, shortage)) return update(*found, step);
    halve_micro_batch(shortage, on_micro_batch);
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
  double all = 0;
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

std::optional<SlotSteps::Gradient> SlotSteps::gradient(const std::vector<data::RowBatch>& rows,
                                                       std::string& shortage) {
  GradientTree tree;
  std::vector<double> losses;
  for (const data::RowBatch& slot : rows) {
    at::Tensor all;
    double loss = 0;
    const auto out_of_memory = run_or_out_of_memory([&] {
      loss = trainer_.loss_and_gradients(batch_of(slot)).item<double>();
      const at::NoGradGuard no_grad;
      all = at::zeros_like(trainer_.flat().all());
      trainer_.flat().copy_gradients(all);
    });
    // Before the exchange, in which those who have a gradient would wait for those who have none.
    const std::vector<double> told = group_.gather({out_of_memory ? 1.0 : 0.0, loss});
    for (size_t rank = 0; 2 * rank < told.size(); ++rank) {
      if (told[2 * rank] != 0 && shortage.empty())
        shortage = "memory ran out in process " + std::to_string(rank);
      losses.push_back(told[2 * rank + 1]);
    }
    if (out_of_memory) shortage = *out_of_memory;
    if (!shortage.empty()) return std::nullopt;
    const at::NoGradGuard no_grad;
    tree.add(exchange_.sum(all));
  }
  return Gradient{tree.take(), tree_sum(losses)};
}

void SlotSteps::halve_micro_batch(const std::string& shortage, const OnMicroBatch& on_micro_batch) {
  const int before = trainer_.micro_batch_size();
  trainer_.set_micro_batch_size(0);  // frees gradients
  const int rows = before > 0 ? std::min(before, rows_) : rows_;
  const int halved = halved_micro_batch(rows, shortage, device_);
  trainer_.set_micro_batch_size(halved);
  if (on_micro_batch) on_micro_batch({halved, shortage});
}

void SlotSteps::update(const Gradient& gradient, int64_t step) {
  const at::NoGradGuard no_grad;
  Optimizer& optimizer = trainer_.optimizer();
  optimizer.begin(step);
  optimizer.update_own(
      gradient.own, gradient.loss, norm_of(gradient.own), [&](const at::Tensor& own) {
        return exchange_.gather(own);
      });
  optimizer.end();
  const FlatWeights& flat = trainer_.flat();
  if (group_.count() > 1) flat.all().copy_(exchange_.gather(flat.own()));
  trainer_.model().round_matrices();
}

double SlotSteps::norm_of(const at::Tensor& own) {
  // Squares are added within blocks, then blocks in their order: whoever owns them. Behind the last
  // weight there are blocks of zeros.
  const at::Tensor squares =
      own.view({-1, FlatWeights::block}).square().sum({1}, /*keepdim=*/false, at::kDouble);
  const at::Tensor all = group_.gather(squares).cpu().contiguous();
  double sum = 0;
  for (int64_t i = 0; i < all.numel(); ++i) sum += all.data_ptr<double>()[i];
  return std::sqrt(sum);
}

}  // namespace forge::libtorch

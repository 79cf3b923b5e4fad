#include "backends/libtorch/worker/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "backends/libtorch/ops/adamw/adamw.h"
#include "backends/libtorch/ops/lion/lion.h"
#include "backends/libtorch/ops/sgd/sgd.h"
#include "backends/libtorch/worker/weights.h"
#include "core/base/error.h"
#include "core/config/schedule.h"

namespace forge::libtorch {
namespace {

using model::WeightGroup;
using ops::UpdateRule;

UpdateRule rule_of(const config::OptimizerConfig& config, WeightGroup group) {
  if (config.is_orthogonalised(group)) return UpdateRule::muon;
  if (config.type == "lion") return UpdateRule::lion;
  return config.type == "sgd" ? UpdateRule::sgd : UpdateRule::adamw;
}

/// What Muon multiplies the learning rate of a matrix by.
double adjustment(config::LrAdjustment kind, double rows, double columns) {
  if (kind == config::LrAdjustment::original) return std::sqrt(std::max(1.0, rows / columns));
  return 0.2 * std::sqrt(std::max(rows, columns));
}

ops::UpdateOptions options_of(const config::Experiment& experiment) {
  const config::OptimizerConfig& config = experiment.optimizer;
  const std::vector<double>& betas = config.type == "lion" ? config.lion.betas : config.betas;
  ops::UpdateOptions options;
  options.grad_clip = experiment.train.grad_clip;
  options.beta1 = betas.at(0);
  options.beta2 = betas.at(1);
  options.eps = config.eps;
  const bool is_muon = config.type == "muon";
  options.momentum = is_muon ? config.muon.momentum : config.sgd.momentum;
  options.nesterov = is_muon ? config.muon.nesterov : config.sgd.nesterov;
  const std::vector<double>& coefficients = config.muon.newton_schulz_coefficients;
  options.newton_schulz = {
      config.muon.newton_schulz_steps, coefficients.at(0), coefficients.at(1), coefficients.at(2)};
  // By several processes each updates other matrices.
  options.one_matrix_at_once = experiment.train.gradient_slots > 1;
  options.seed = experiment.seed;
  return options;
}

}  // namespace

at::Tensor Optimizer::Part::of(const at::Tensor& tensor) const {
  const bool is_whole = !tensor.defined() || rows == tensor.size(0);
  return is_whole ? tensor : tensor.narrow(0, first, rows);
}

Optimizer::Optimizer(const config::Experiment& experiment,
                     const Model& model,
                     const FlatWeights* flat)
    : experiment_(experiment), model_(model), flat_(flat), options_(options_of(experiment)) {
  const bool copies = experiment.train.bfloat16_weights == model::Bfloat16Weights::master_copies;
  for (const at::Tensor& weight : model.trainable()) {
    const bool has_master = weight.scalar_type() == at::kBFloat16 && copies;
    Stored& stored = stored_.emplace_back();
    stored.weight = weight;
    stored.rounded = has_master ? weight.detach() : model.rounded_copy_of(weight);
    add_parts(stored_.size() - 1);
    stored.own = flat ? flat->own_of(stored_.size() - 1) : Range{0, weight.numel()};
    stored.kept = kept_of(stored_.size() - 1);
    add_moments(stored);
    if (has_master)
      stored.master =
          at::zeros(shape_of_kept(stored), weight.options().requires_grad(false).dtype(at::kFloat));
  }
  const at::Tensor& first = stored_.front().weight;
  if (!first.is_cuda() || first.scalar_type() == at::kDouble) return;
  std::vector<double> rates;
  for (int64_t step = 0; step < std::max<int64_t>(1, experiment.train.max_steps); ++step)
    rates.push_back(learning_rate(step));
  state_ = ops::make_update_state(rates, first.device());
}

/// Zeros, of the rule that add_parts found.
void Optimizer::add_moments(Stored& stored) const {
  const bool narrow = stored.weight.scalar_type() == at::kBFloat16;
  const at::TensorOptions options = stored.weight.options().requires_grad(false).dtype(
      narrow ? at::kFloat : stored.weight.scalar_type());
  const std::vector<int64_t> shape = shape_of_kept(stored);
  const bool has_first = stored.rule != UpdateRule::sgd || options_.momentum > 0;
  if (has_first) stored.first_moment = at::zeros(shape, options);
  if (stored.rule == UpdateRule::adamw) stored.second_moment = at::zeros(shape, options);
}

std::vector<int64_t> Optimizer::shape_of_kept(const Stored& stored) const {
  return flat_ ? std::vector<int64_t>{stored.kept.size()} : stored.weight.sizes().vec();
}

/// Of Muon's matrices all of which this process owns some numbers: a matrix that is divided is
/// updated by each of its owners, to the same bits.
Range Optimizer::kept_of(size_t index) const {
  const Stored& stored = stored_[index];
  if (!flat_ || stored.rule != UpdateRule::muon || stored.own.size() == 0) return stored.own;
  const int64_t width = stored.weight.numel() / stored.weight.size(0);
  Range kept = stored.own;
  for (const Part& part : parts_) {
    const int64_t begin = part.first * width, end = begin + part.rows * width;
    if (part.stored != index || end <= stored.own.begin || begin >= stored.own.end) continue;
    kept = {std::min(kept.begin, begin), std::max(kept.end, end)};
  }
  return kept;
}

/// Muon's parts are the matrices that the stored one is made of; other rules look at each number
/// alone, and take rows of one group at once.
void Optimizer::add_parts(size_t index) {
  Stored& stored = stored_[index];
  const NamedTensors named = model_.named([&](const at::Tensor& tensor) {
    return tensor.is_same(stored.weight) ? tensor.detach() : at::Tensor();
  });
  const config::OptimizerConfig& config = experiment_.optimizer;
  const size_t begin = parts_.size();
  int64_t row = 0;
  for (const auto& [name, weight] : named) {
    const WeightGroup group = model::group_of(name, weight.sizes().vec());
    const UpdateRule rule = rule_of(config, group);
    TORCH_CHECK(row == 0 || rule == stored.rule, name, " is stored with weights of another rule");
    stored.rule = rule;
    stored.named.push_back({name, weight.sizes().vec(), row});
    const bool is_muon = rule == UpdateRule::muon;
    Part part{index, row, weight.size(0), group_of(rule, group), 1};
    row += part.rows;
    if (is_muon)
      part.update_factor =
          adjustment(config.muon.adjust_lr, double(weight.size(0)), double(weight.size(1)));
    const bool continues = !is_muon && parts_.size() > begin && parts_.back().group == part.group;
    continues ? void(parts_.back().rows += part.rows) : parts_.push_back(part);
  }
  // Rows of zeros behind the weights have gradients of zero.
  if (stored.rule != UpdateRule::muon) parts_.back().rows += stored.weight.size(0) - row;
}

int Optimizer::group_of(UpdateRule rule, WeightGroup group) {
  const config::OptimizerConfig& config = experiment_.optimizer;
  const ops::UpdateGroup wanted{rule, config.lr_factor(group), config.weight_decay_for(group)};
  std::vector<ops::UpdateGroup>& groups = options_.groups;
  const auto found = std::find_if(groups.begin(), groups.end(), [&](const ops::UpdateGroup& own) {
    return own.rule == rule && own.lr_factor == wanted.lr_factor &&
           own.weight_decay == wanted.weight_decay;
  });
  const auto index = static_cast<int>(found - groups.begin());
  if (found == groups.end()) groups.push_back(wanted);
  return index;
}

double Optimizer::learning_rate(int64_t step) const {
  return config::learning_rate(
      experiment_.schedule, experiment_.optimizer.lr, step, experiment_.train.max_steps);
}

void Optimizer::zero_gradients() {
  for (Stored& stored : stored_) stored.weight.mutable_grad() = at::Tensor();
}

void Optimizer::begin(int64_t step) {
  // The device counts steps itself: only a jump is written to it.
  if (is_recordable() && step != step_) state_.step.fill_(step);
  step_ = step;
}

void Optimizer::update(const at::Tensor& loss) {
  const at::NoGradGuard no_grad;
  if (!is_recordable()) return update_one_by_one(loss);
  ops::update_weights_cuda(described(), options_, loss.detach(), state_);
}

/// All parts, for the GPU.
ops::WeightUpdate Optimizer::described() const {
  std::vector<at::Tensor> gradients;
  for (const Stored& stored : stored_) gradients.push_back(stored.weight.grad().contiguous());
  ops::WeightUpdate update;
  for (const Part& part : parts_) {
    const Stored& stored = stored_[part.stored];
    update.push_back({part.of(stored.master.defined() ? stored.master : stored.weight.detach()),
                      part.of(gradients[part.stored]),
                      part.of(stored.first_moment),
                      part.of(stored.second_moment),
                      part.of(stored.rounded),
                      part.group,
                      part.update_factor});
  }
  return update;
}

void Optimizer::update_one_by_one(const at::Tensor& loss) {
  std::vector<at::Tensor> squares;
  for (const Stored& stored : stored_) squares.push_back(stored.weight.grad().norm().square());
  const at::Tensor norm = at::stack(squares).sum().sqrt();
  if (options_.grad_clip > 0) {
    const at::Tensor factor = (options_.grad_clip / (norm + 1e-6)).clamp_max(1.0);
    for (Stored& stored : stored_) stored.weight.mutable_grad().mul_(factor);
  }
  const double lr = learning_rate(step_);
  for (const Part& part : parts_) update_part(part, lr);
  for (const Stored& stored : stored_) {
    if (stored.rounded.defined()) stored.rounded.copy_(stored.weight.detach());
  }
  totals_.loss += loss.item<double>();
  totals_.gradient_norm += norm.item<double>();
}

void Optimizer::begin_own(double loss, double norm) {
  clip_ = options_.grad_clip > 0 ? std::min(1.0, options_.grad_clip / (norm + 1e-6)) : 1;
  totals_.loss += loss;
  totals_.gradient_norm += norm;
}

void Optimizer::begin_own(const at::Tensor& squares, const at::Tensor& loss) {
  ops::begin_update_cuda(squares, options_, loss, state_);
}

void Optimizer::update_own(const std::vector<at::Tensor>& gradients, const Gather& gather) {
  const at::NoGradGuard no_grad;
  own_gradients_ = gradients;
  if (!is_recordable() && options_.grad_clip > 0)
    for (at::Tensor& gradient : own_gradients_) gradient.mul_(clip_);
  if (experiment_.optimizer.type == "muon")
    for (const at::Tensor& gradient : own_gradients_) all_gradients_.push_back(gather(gradient));
  if (is_recordable()) {
    ops::apply_update_cuda(described_own(), options_, state_);
  } else {
    const double lr = learning_rate(step_);
    for (const Part& part : parts_) update_part(part, lr);
  }
  own_gradients_.clear();
  all_gradients_.clear();
}

/// The parts of which this process updates something, for the GPU.
ops::WeightUpdate Optimizer::described_own() const {
  ops::WeightUpdate update;
  for (const Part& part : parts_) {
    const Views v = own_views_of(part);
    if (!v.weight.defined()) continue;
    update.push_back({v.weight,
                      v.gradient,
                      v.first,
                      v.second,
                      v.rounded,
                      part.group,
                      part.update_factor,
                      v.first_element});
  }
  return update;
}

Optimizer::Views Optimizer::views_of(const Part& part) const {
  if (flat_) return own_views_of(part);
  const Stored& stored = stored_[part.stored];
  return {part.of(stored.weight.detach()),
          part.of(stored.weight.grad()),
          part.of(stored.first_moment),
          part.of(stored.second_moment),
          {}};
}

/// Of weights that are divided this process's own numbers, undefined where it has none.
Optimizer::Views Optimizer::own_views_of(const Part& part) const {
  const Stored& stored = stored_[part.stored];
  const FlatWeights::Location& location = flat_->location(part.stored);
  const at::Tensor weight = stored.weight.detach().view(-1);
  const int64_t width = weight.numel() / stored.weight.size(0);
  const Range numbers = {std::max(part.first * width, stored.kept.begin),
                         std::min((part.first + part.rows) * width, stored.kept.end)};
  if (numbers.size() <= 0) return {};
  const bool is_muon = stored.rule == UpdateRule::muon;  // then it is the whole part
  const std::vector<int64_t> shape =
      is_muon ? std::vector<int64_t>{part.rows, width} : std::vector<int64_t>{numbers.size()};
  /// Of a row that begins with number `begin` of the stored tensor.
  const auto view = [&](const at::Tensor& row, int64_t begin) {
    if (!row.defined()) return row;
    return row.narrow(0, numbers.begin - begin, numbers.size()).view(shape);
  };
  const std::vector<at::Tensor>& gradients = is_muon ? all_gradients_ : own_gradients_;
  const int64_t first = is_muon ? 0 : flat_->own_range(location.bucket).begin;
  const bool has_master = stored.master.defined();
  return {has_master ? view(stored.master, stored.kept.begin) : view(weight, 0),
          view(gradients.at(location.bucket), first - location.begin),
          view(stored.first_moment, stored.kept.begin),
          view(stored.second_moment, stored.kept.begin),
          stored.rounded.defined() ? view(stored.rounded.view(-1), 0) : at::Tensor(),
          location.first + numbers.begin};
}

void Optimizer::update_part(const Part& part, double scheduled) {
  const Stored& stored = stored_[part.stored];
  const ops::UpdateGroup& group = options_.groups[static_cast<size_t>(part.group)];
  const double lr = scheduled * group.lr_factor, decay = group.weight_decay;
  const ops::UpdateOptions& o = options_;
  Views views = views_of(part);
  if (!views.weight.defined()) return;  // of another process
  auto& [weight, gradient, first, second, rounded, first_element] = views;
  switch (stored.rule) {
    case UpdateRule::adamw:
      return ops::adamw_(
          weight, gradient, first, second, {lr, o.beta1, o.beta2, o.eps, decay, step_ + 1});
    case UpdateRule::lion:
      return ops::lion_(weight, gradient, first, {lr, o.beta1, o.beta2, decay});
    case UpdateRule::sgd:
      return ops::sgd_(weight, gradient, first, {lr, o.momentum, o.nesterov, decay});
    case UpdateRule::muon:
      return ops::muon_(weight,
                        gradient,
                        first,
                        {lr, part.update_factor, o.momentum, o.nesterov, decay, o.newton_schulz});
  }
}

StepTotals Optimizer::totals() const {
  if (!is_recordable()) return totals_;
  const at::Tensor totals = state_.totals.cpu();
  return {totals[0].item<double>(), totals[1].item<double>()};
}

void Optimizer::set_totals(const StepTotals& totals) {
  totals_ = totals;
  if (!is_recordable()) return;
  const std::array<double, 2> both = {totals.loss, totals.gradient_norm};
  state_.totals.copy_(at::tensor(at::ArrayRef<double>(both), at::TensorOptions(at::kDouble)));
}

void Optimizer::copy_weights() {
  const at::NoGradGuard no_grad;
  for (Stored& stored : stored_) {
    if (!stored.master.defined()) continue;
    const at::Tensor kept =
        stored.weight.detach().view(-1).narrow(0, stored.kept.begin, stored.kept.size());
    stored.master.view(-1).copy_(kept);
  }
}

/// `numbers` are those of a range of the stored tensor, flat; every weight of it has a part, an
/// empty one too.
void Optimizer::add_named(const Stored& stored,
                          const Range& range,
                          const std::string& suffix,
                          const at::Tensor& numbers,
                          NamedParts& parts) {
  if (!numbers.defined()) return;
  const int64_t width = stored.weight.numel() / stored.weight.size(0);
  for (const Named& named : stored.named) {
    const int64_t begin = named.first * width, end = begin + c10::multiply_integers(named.shape);
    const int64_t first = std::clamp(range.begin, begin, end);
    const int64_t last = std::clamp(range.end, first, end);
    parts.push_back({named.name + suffix,
                     named.shape,
                     first - begin,
                     numbers.narrow(0, last > first ? first - range.begin : 0, last - first)});
  }
}

NamedParts Optimizer::named_weights() const {
  if (!flat_) return whole_parts(model_.named_weights());
  NamedParts parts;
  for (const Stored& stored : stored_) {
    const at::Tensor numbers = stored.weight.detach().view(-1);
    add_named(
        stored, stored.own, "", numbers.narrow(0, stored.own.begin, stored.own.size()), parts);
  }
  return parts;
}

NamedParts Optimizer::named_state() const {
  if (flat_) {
    NamedParts parts;
    for (const Stored& stored : stored_) {
      const bool is_adamw = stored.rule == UpdateRule::adamw;
      const std::string first = is_adamw ? ".first_moment" : ".momentum";
      add_named(stored, stored.kept, first, stored.first_moment, parts);
      add_named(stored, stored.kept, ".second_moment", stored.second_moment, parts);
      add_named(stored, stored.kept, ".master_weight", stored.master, parts);
    }
    return parts;
  }
  NamedTensors state;
  const auto add = [&](const std::string& suffix, const auto& tensor_of) {
    const auto of_weight = [&](const at::Tensor& weight) {
      for (const Stored& stored : stored_) {
        if (stored.weight.is_same(weight)) return tensor_of(stored);
      }
      TORCH_CHECK(false, "a weight without optimizer state");
    };
    for (auto& [name, tensor] : model_.named(of_weight)) state.emplace_back(name + suffix, tensor);
  };
  const auto first_of = [](bool is_adamw) {
    return [=](const Stored& stored) {
      const bool is_own = (stored.rule == UpdateRule::adamw) == is_adamw;
      return is_own ? stored.first_moment : at::Tensor();
    };
  };
  add(".first_moment", first_of(true));
  add(".second_moment", [](const Stored& stored) { return stored.second_moment; });
  add(".momentum", first_of(false));
  add(".master_weight", [](const Stored& stored) { return stored.master; });
  return whole_parts(state);
}

}  // namespace forge::libtorch

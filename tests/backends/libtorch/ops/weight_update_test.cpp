// The optimizers' steps on one tensor: loops for the CPU, and the GPU's kernels on the emulated
// one.

#include "backends/libtorch/ops/adamw/adamw.h"
#include "backends/libtorch/ops/lion/lion.h"
#include "backends/libtorch/ops/muon/muon.h"
#include "backends/libtorch/ops/sgd/sgd.h"
#include "tests/support/emulated_update.h"
#include "tests/support/tensors.h"
#include "tests/support/torch_catch.h"

namespace forge::tests {
namespace {

/// Runs five steps of both on equal tensors: parameter, momentum; returns the largest difference.
template <class Fused, class Reference>
double difference_after_steps(int64_t size,
                              at::ScalarType type,
                              const Fused& fused,
                              const Reference& reference) {
  at::Tensor p = at::randn({size}, at::TensorOptions(type)), m = at::zeros_like(p);
  at::Tensor p2 = p.clone(), m2 = m.clone();
  for (int step = 0; step < 5; ++step) {
    const at::Tensor g = at::randn({size}, p.options());
    fused(p, g, m);
    reference(p2, g, m2);
  }
  if (size == 0) return 0;
  return std::max(largest_difference(p, p2), largest_difference(m, m2));
}

TEST_CASE("lion and sgd agree with their references over several steps", "[ops]") {
  at::manual_seed(14);
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    const double tolerance = type == at::kDouble ? 1e-12 : 1e-5;
    for (const int64_t size : {0, 1, 2, 3, 129, 4097, 100003}) {
      INFO(at::toString(type) << " " << size);
      const ops::LionStep lion{1e-2, 0.9, 0.95, 0.1};
      CHECK(
          difference_after_steps(
              size,
              type,
              [&](at::Tensor& p, const at::Tensor& g, at::Tensor& m) { ops::lion_(p, g, m, lion); },
              [&](at::Tensor& p, const at::Tensor& g, at::Tensor& m) {
                ops::lion_reference_(p, g, m, lion);
              }) <= tolerance);
      for (const ops::SgdStep& sgd : {ops::SgdStep{1e-2, 0.9, true, 0.1},
                                      ops::SgdStep{1e-2, 0.9, false, 0.1},
                                      ops::SgdStep{1e-2, 0, false, 0.1}}) {
        CHECK(
            difference_after_steps(
                size,
                type,
                [&](at::Tensor& p, const at::Tensor& g, at::Tensor& m) { ops::sgd_(p, g, m, sgd); },
                [&](at::Tensor& p, const at::Tensor& g, at::Tensor& m) {
                  ops::sgd_reference_(p, g, m, sgd);
                }) <= tolerance);
      }
    }
  }
}

TEST_CASE("lion does not move what has no gradient, and shows what is no number", "[ops]") {
  at::Tensor p = at::ones({3}), m = at::zeros({3});
  const at::Tensor g = at::zeros({3});
  g[1] = NAN;
  ops::lion_(p, g, m, {0.5, 0.9, 0.99, 0});
  CHECK(p[0].item<float>() == 1);
  CHECK(std::isnan(p[1].item<float>()));
  CHECK(p[2].item<float>() == 1);
}

TEST_CASE("orthogonalised matrices agree with plain operations", "[ops]") {
  at::manual_seed(15);
  const ops::NewtonSchulz iteration;
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    for (const auto& [rows, columns] :
         {std::pair(1, 1), {1, 7}, {7, 1}, {16, 16}, {8, 129}, {129, 8}}) {
      INFO(at::toString(type) << " " << rows << " x " << columns);
      const at::Tensor x = at::randn({rows, columns}, at::TensorOptions(type));
      const at::Tensor before = x.clone();
      const at::Tensor fused = ops::orthogonalised(x, iteration);
      CHECK(at::equal(x, before));
      CHECK(largest_difference(fused, ops::orthogonalised_reference(x, iteration)) <
            (type == at::kDouble ? 1e-12 : 1e-4));
    }
  }
}

// On a GPU matrices of one shape are made orthogonal together, in bfloat16.
TEST_CASE("orthogonalised batches are the matrices one by one, in bfloat16 nearly", "[ops]") {
  at::manual_seed(16);
  const ops::NewtonSchulz iteration;
  for (const auto& [rows, columns] : {std::pair(12, 12), {8, 24}, {24, 8}}) {
    INFO(rows << " x " << columns);
    const at::Tensor x = at::randn({3, rows, columns});
    const at::Tensor together = ops::orthogonalised(x, iteration);
    for (int i = 0; i < 3; ++i)
      CHECK(largest_difference(together[i], ops::orthogonalised(x[i], iteration)) < 1e-4);
    const at::Tensor narrow = ops::orthogonalised(x.to(at::kBFloat16), iteration);
    CHECK(narrow.scalar_type() == at::kBFloat16);
    // Some CPUs add up in bfloat16 as well.
    const at::Tensor error = narrow.to(at::kFloat) - together;
    CHECK((at::norm(error) / at::norm(together)).item<double>() < 0.15);
    CHECK(error.abs().max().item<double>() < 0.25);
  }
}

TEST_CASE("singular values come near one, whatever they were", "[ops]") {
  at::manual_seed(17);
  const at::Tensor u = std::get<0>(at::linalg_qr(at::randn({12, 12}, at::kDouble)));
  const at::Tensor values = at::logspace(-2, 0, 12, 10, at::kDouble);
  const at::Tensor x = ops::orthogonalised(at::matmul(u * values, u.t()), {});
  const at::Tensor found = at::linalg_svdvals(x);
  CHECK(found.min().item<double>() > 0.3);
  CHECK(found.max().item<double>() < 1.25);
  CHECK(at::equal(ops::orthogonalised(at::zeros({3, 5}), {}), at::zeros({3, 5})));
}

at::Tensor tensor_in(std::vector<float>& numbers) {
  return at::from_blob(numbers.data(), {int64_t(numbers.size())}, at::kFloat).clone();
}

std::vector<float> numbers_of(const at::Tensor& x) {
  const at::Tensor flat = x.contiguous();
  return {flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()};
}

uint16_t bits_of(float x) { return c10::BFloat16(x).x; }
float number_of(uint16_t bits) { return c10::BFloat16(bits, c10::BFloat16::from_bits()); }

/// A weight on the emulated GPU and what the CPU's loops make of the same.
struct Pair {
  EmulatedWeight emulated;
  at::Tensor p, m, v;

  Pair(int64_t size, int group) : p(at::randn({size})), m(at::zeros({size})), v(at::zeros({size})) {
    emulated.weight = numbers_of(p);
    emulated.first_moment = emulated.second_moment = numbers_of(m);
    emulated.rounded.assign(size_t(size), 0);
    emulated.group = group;
  }
};

void update_on_cpu(Pair& pair, const at::Tensor& g, EmulatedRule rule, const EmulatedUpdate& u) {
  const EmulatedGroup& group = u.groups[size_t(pair.emulated.group)];
  const double lr = u.learning_rates[size_t(u.step)] * group.lr_factor, wd = group.weight_decay;
  switch (rule) {
    case EmulatedRule::adamw:
      return ops::adamw_(pair.p, g, pair.m, pair.v, {lr, u.beta1, u.beta2, u.eps, wd, u.step + 1});
    case EmulatedRule::lion: return ops::lion_(pair.p, g, pair.m, {lr, u.beta1, u.beta2, wd});
    default: return ops::sgd_(pair.p, g, pair.m, {lr, u.momentum, u.nesterov, wd});
  }
}

EmulatedUpdate three_steps(EmulatedRule rule) {
  EmulatedUpdate update{};
  update.rule = rule;
  update.clip = 1;
  update.beta2 = 0.95;
  update.momentum = rule == EmulatedRule::sgd ? 0.9 : 0;
  const bool is_corrected = rule == EmulatedRule::adamw;
  update.groups = {{1, 0.1, is_corrected}, {0.25, 0, is_corrected}};
  update.learning_rates = {1e-2, 2e-2};  // behind the last one it stays
  return update;
}

/// Sizes with a whole block of 8192, a rest of a vector, and a single number.
const std::vector<int64_t> sizes = {8192 + 7, 1, 256};

void check_rule(EmulatedUpdate update) {
  std::vector<Pair> pairs;
  for (size_t i = 0; i < sizes.size(); ++i) pairs.emplace_back(sizes[i], int(i % 2));
  update.learning_rates.push_back(update.learning_rates.back());
  double loss = 0, norms = 0;
  for (int64_t step = 0; step < 3; ++step) {
    std::vector<at::Tensor> gradients;
    double squares = 0;
    for (Pair& pair : pairs) {
      gradients.push_back(at::randn_like(pair.p));
      pair.emulated.gradient = numbers_of(gradients.back());
      squares += gradients.back().square().sum().item<double>();
    }
    loss += 2.5;
    norms += std::sqrt(squares);
    const double factor = std::min(1.0, update.clip / (std::sqrt(squares) + 1e-6));
    for (size_t i = 0; i < pairs.size(); ++i)
      update_on_cpu(pairs[i], gradients[i] * factor, update.rule, update);
    std::vector<EmulatedWeight> weights;
    for (Pair& pair : pairs) weights.push_back(pair.emulated);
    run_emulated_update(update, weights, 2.5);
    for (size_t i = 0; i < pairs.size(); ++i) pairs[i].emulated = weights[i];
  }
  CHECK(update.step == 3);
  CHECK(update.loss == loss);
  CHECK(update.norm == Approx(norms).epsilon(1e-6));
  for (Pair& pair : pairs) {
    CHECK(largest_difference(tensor_in(pair.emulated.weight), pair.p) < 1e-5);
    if (update.rule != EmulatedRule::sgd_without_momentum)
      CHECK(largest_difference(tensor_in(pair.emulated.first_moment), pair.m) < 1e-6);
    if (update.rule == EmulatedRule::adamw)
      CHECK(largest_difference(tensor_in(pair.emulated.second_moment), pair.v) < 1e-6);
    for (size_t i = 0; i < pair.emulated.weight.size(); ++i)
      REQUIRE(pair.emulated.rounded[i] == bits_of(pair.emulated.weight[i]));
  }
}

TEST_CASE("the GPU's rules do what the CPU's loops do", "[ops][cuda_emulation]") {
  for (const EmulatedRule rule : {EmulatedRule::adamw,
                                  EmulatedRule::lion,
                                  EmulatedRule::sgd,
                                  EmulatedRule::sgd_without_momentum}) {
    for (const bool aligned : {true, false}) {
      at::manual_seed(18);
      INFO("rule " << int(rule) << ", aligned " << aligned);
      EmulatedUpdate update = three_steps(rule);
      update.aligned = aligned;
      update.backwards = !aligned;
      check_rule(update);
      update.nesterov = true;
      if (rule == EmulatedRule::sgd) check_rule(update);
    }
  }
}

TEST_CASE("the GPU's momentum is Muon's", "[ops][cuda_emulation]") {
  for (const bool nesterov : {true, false}) {
    at::manual_seed(19);
    EmulatedUpdate update = three_steps(EmulatedRule::momentum);
    update.momentum = 0.95;
    update.nesterov = nesterov;
    Pair pair(4097, 0);
    const std::vector<float> before = pair.emulated.weight;
    for (int step = 0; step < 3; ++step) {
      const at::Tensor g = at::randn_like(pair.p);
      pair.emulated.gradient = numbers_of(g);
      const at::Tensor clipped = g * std::min(1.0, 1 / (g.norm().item<double>() + 1e-6));
      pair.m.mul_(0.95).add_(clipped, 0.05);
      const at::Tensor ahead = nesterov ? 0.05 * clipped + 0.95 * pair.m : pair.m;
      std::vector<EmulatedWeight> weights = {pair.emulated};
      run_emulated_update(update, weights, 1);
      pair.emulated = weights[0];
      CHECK(largest_difference(tensor_in(pair.emulated.first_moment), pair.m) < 1e-7);
      std::vector<float> found;
      for (const uint16_t bits : pair.emulated.rounded) found.push_back(number_of(bits));
      CHECK(largest_difference(tensor_in(found), ahead) < 0.005 * ahead.abs().max().item<double>());
    }
    CHECK(pair.emulated.weight == before);
  }
}

TEST_CASE("the GPU adds directions at Muon's rate, without clipping them",
          "[ops][cuda_emulation]") {
  at::manual_seed(20);
  EmulatedUpdate update = three_steps(EmulatedRule::direction);
  EmulatedWeight weight;
  const at::Tensor p = at::randn({300}), direction = at::randn({300}).to(at::kBFloat16);
  weight.weight = numbers_of(p);
  for (const float x : numbers_of(direction.to(at::kFloat)))
    weight.narrow_gradient.push_back(bits_of(x));
  weight.factor = 3.2f;
  std::vector<EmulatedWeight> weights = {weight};
  run_emulated_update(update, weights, 1);
  const at::Tensor wanted = (1 - 1e-2 * 0.1) * p - 1e-2 * 3.2 * direction.to(at::kFloat);
  CHECK(largest_difference(tensor_in(weights[0].weight), wanted) < 1e-6);
}

TEST_CASE("bfloat16 weights are rounded at random, and to nothing else on average",
          "[ops][cuda_emulation]") {
  EmulatedUpdate update = three_steps(EmulatedRule::lion);
  update.clip = 0;
  update.groups = {{1, 0, false}};
  update.learning_rates = {1e-3};  // a quarter of the distance between neighbours of 1 below it
  EmulatedWeight weight;
  constexpr size_t count = 8192;
  weight.narrow_weight.assign(count, bits_of(1));
  weight.first_moment.assign(count, 0);
  weight.narrow_gradient.assign(count, bits_of(1));
  std::vector<EmulatedWeight> weights = {weight};
  run_emulated_update(update, weights, 1);
  double sum = 0;
  for (const uint16_t bits : weights[0].narrow_weight) {
    const float found = number_of(bits);
    const bool is_neighbour = found == 1.0f || found == 1 - 1.0f / 256;
    REQUIRE(is_neighbour);
    sum += found;
  }
  CHECK(sum / count == Approx(1 - 1e-3).epsilon(1e-4));
  EmulatedUpdate again = three_steps(EmulatedRule::lion);
  again.clip = 0;
  again.groups = update.groups;
  again.learning_rates = update.learning_rates;
  std::vector<EmulatedWeight> same = {weight};
  run_emulated_update(again, same, 1);
  CHECK(same[0].narrow_weight == weights[0].narrow_weight);
}

}  // namespace
}  // namespace forge::tests

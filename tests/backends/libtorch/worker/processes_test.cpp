// One run by several processes, here threads that speak by Gloo as processes do.

#include "backends/libtorch/ops/common/gradient_memory.h"
#include "backends/libtorch/ops/linear/linear.h"
#include "backends/libtorch/worker/flat_weights.h"
#include "backends/libtorch/worker/gradient_buckets.h"
#include "backends/libtorch/worker/gradient_tree.h"
#include "backends/libtorch/worker/process_group.h"
#include "backends/libtorch/worker/process_group_gloo.h"
#include "backends/libtorch/worker/trainer.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/model/weights/checkpoint.h"
#include "tests/backends/libtorch/small_models.h"
#include "tests/support/catch.h"
#include "tests/support/tensors.h"
#include "tests/support/torch_catch.h"

namespace forge::tests {
namespace {

using libtorch::FlatWeights;

/// The model with so many ids that all of four processes own some of its weights.
model::ModelConfig with_many_ids(model::ModelConfig model) {
  model.vocab_size = 4000;
  return model;
}

struct SlottedJob : Job {
  explicit SlottedJob(int slots) {
    experiment.model = with_many_ids(experiment.model);
    experiment.train.batch_size = 8;
    experiment.train.gradient_slots = slots;
    experiment.train.checkpoint_every = 4;
  }
};

/// The bytes of a checkpoint's weights and of what the optimizer keeps.
std::pair<std::string, std::string> tensors_of(const std::filesystem::path& run, int64_t step) {
  const std::filesystem::path folder = run / "checkpoints" / weights::checkpoint_name(step);
  return {read_file(folder / weights::weights_file), read_file(folder / weights::optimizer_file)};
}

/// Whether processes on a CPU cannot speak here: what needs that is not tested then.
bool is_without_gloo() {
  if (libtorch::has_gloo()) return false;
  SUCCEED("this LibTorch's Gloo has no headers");
  return true;
}

/// Whether 1, 2 and 4 processes give the same numbers and the same weights.
void check_same_bits(Job& job) {
  const std::vector<json> alone = job.run("alone");
  REQUIRE(of_kind(alone, "train").size() == 3);
  for (const int count : {2, 4}) {
    const std::string name = std::to_string(count);
    INFO(count << " processes");
    REQUIRE(numbers(job.run_processes(name, count)) == numbers(alone));
    REQUIRE(tensors_of(job.run_dir(name), 10) == tensors_of(job.run_dir("alone"), 10));
  }
}

TEST_CASE("any number of processes trains a run to the same bits", "[worker][processes]") {
  if (is_without_gloo()) return;
  SlottedJob job(4);
  SECTION("Canon at all positions") {}
  SECTION("a Llama with bfloat16 products") {
    job.experiment.model = with_many_ids(small_model("", model::PositionKind::rope));
    job.experiment.train.precision = model::Precision::bfloat16;
  }
  SECTION("float64") { job.experiment.train.precision = model::Precision::float64; }
  SECTION("micro-batches within slots") {
    job.experiment.train.batch_size = 16;
    job.experiment.train.micro_batch_size = 3;
  }
  SECTION("documents, whose targets are not all scored") { job.document_start = 0; }
  SECTION("more slots than processes") { job.experiment.train.gradient_slots = 8; }
  SECTION("Lion") { job.experiment.optimizer.type = "lion"; }
  SECTION("Muon, whose matrices are cut") { job.experiment.optimizer.type = "muon"; }
  SECTION("SGD") { job.experiment.optimizer.type = "sgd"; }
  SECTION("without clipping") { job.experiment.train.grad_clip = 0; }
  check_same_bits(job);
}

TEST_CASE("processes on any hosts train a run to the same bits", "[worker][processes]") {
  if (is_without_gloo()) return;
  SlottedJob job(8);
  const std::vector<json> alone = job.run("alone");
  for (const int hosts : {1, 2, 4}) {
    const std::string name = std::to_string(hosts) + " hosts";
    INFO(name);
    REQUIRE(numbers(job.run_processes(name, 4, "", hosts)) == numbers(alone));
    REQUIRE(tensors_of(job.run_dir(name), 10) == tensors_of(job.run_dir("alone"), 10));
  }
  REQUIRE(contains(error_of([&] { job.run_processes("three hosts", 2, "", 3); }),
                   "2 processes cannot be on 3 hosts with as many on each"));
}

TEST_CASE("linear models train to the same bits on any number of processes",
          "[worker][processes]") {
  if (is_without_gloo()) return;
  for (const ModelVariant& variant : linear_variants()) {
    SlottedJob job(4);
    job.experiment.model = with_many_ids(model_of(variant.change));
    INFO(describe(job.experiment.model));
    check_same_bits(job);
  }
}

TEST_CASE("a run goes on by another number of processes with the same bits",
          "[worker][processes]") {
  if (is_without_gloo()) return;
  SlottedJob job(4);
  SECTION("AdamW") {}
  SECTION("Muon") { job.experiment.optimizer.type = "muon"; }
  const std::vector<json> whole = job.run("whole");
  std::string from, from_run;
  std::vector<json> joined;
  // By 4, 2, 1 and 4 processes, of each of which a checkpoint is gone on with.
  const std::vector<std::pair<int, int64_t>> parts = {{4, 4}, {2, 8}, {1, 10}};
  for (const auto& [count, until] : parts) {
    const std::string name = std::to_string(count) + " until " + std::to_string(until);
    const std::vector<json> events = job.run_processes(name, count, from);
    for (const json& event : of_kind(events, "train")) {
      if (joined.empty() || event.at("step") > joined.back().at("step")) joined.push_back(event);
    }
    while (!joined.empty() && joined.back().at("step") > until) joined.pop_back();
    from_run = job.run_dir(name).string();
    from = (job.run_dir(name) / "checkpoints" / weights::checkpoint_name(until)).string();
  }
  REQUIRE(numbers(joined) == numbers(of_kind(whole, "train")));
  REQUIRE(tensors_of(from_run, 10) == tensors_of(job.run_dir("whole"), 10));
}

TEST_CASE("a slot's gradient is that of its rows", "[worker][processes]") {
  // Two slots are the sum of two parts: equal to one sum but for rounding.
  SlottedJob job(1);
  const std::vector<json> one = of_kind(job.run("one"), "train");
  job.experiment.train.gradient_slots = 2;
  const std::vector<json> two = of_kind(job.run("two"), "train");
  REQUIRE(one.size() == two.size());
  for (size_t i = 0; i < one.size(); ++i) {
    REQUIRE(two[i].at("loss").get<double>() ==
            Approx(one[i].at("loss").get<double>()).epsilon(1e-5));
    REQUIRE(two[i].at("gradient_norm").get<double>() ==
            Approx(one[i].at("gradient_norm").get<double>()).epsilon(1e-4));
  }
}

TEST_CASE("each process keeps and writes the weights and moments of its own part",
          "[worker][processes]") {
  const SlottedJob job(4);
  const auto numbers_of = [&](const libtorch::Place& place) {
    libtorch::Trainer trainer(job.experiment, at::Device("cpu"), place);
    std::pair<int64_t, int64_t> numbers;
    for (const libtorch::NamedPart& part : trainer.optimizer().named_weights())
      numbers.first += part.numbers.numel();
    for (const libtorch::NamedPart& part : trainer.optimizer().named_state())
      numbers.second += part.numbers.numel();
    return numbers;
  };
  const auto whole = numbers_of({0, 1});
  std::pair<int64_t, int64_t> sum;
  for (int rank = 0; rank < 4; ++rank) {
    const auto own = numbers_of({rank, 4});
    CHECK(double(own.first) < 0.4 * double(whole.first));
    CHECK(own.second == 2 * own.first);
    sum = {sum.first + own.first, sum.second + own.second};
  }
  CHECK(sum == whole);
}

TEST_CASE("a process that waits for one that does not come says so", "[worker][processes]") {
  if (is_without_gloo()) return;
  const TemporaryFolder folder;
  worker::Request request;
  request.processes =
      worker::Processes{2, "file:" + (folder / "meet").string(), /*timeout_seconds=*/0.1, {}, 0};
  REQUIRE_THROWS_AS(libtorch::make_process_group(request, at::Device("cpu")),
                    libtorch::LostProcess);
  request.processes->rendezvous = "tcp:host:1";
  REQUIRE(contains(error_of([&] { libtorch::make_process_group(request, at::Device("cpu")); }),
                   "processes cannot meet at 'tcp:host:1'"));
}

TEST_CASE("leaves are added as a balanced tree wherever they are added", "[worker][processes]") {
  at::manual_seed(5);
  const at::Tensor leaves = at::randn({8, 33});
  std::vector<at::Tensor> level = leaves.unbind(0);
  while (level.size() > 1) {
    std::vector<at::Tensor> next;
    for (size_t i = 0; i < level.size(); i += 2) next.push_back(level[i] + level[i + 1]);
    level = next;
  }
  const at::Tensor before = leaves.clone();
  REQUIRE(libtorch::tree_sum(leaves.unbind(0)).equal(level[0]));
  for (const int64_t at_once : {1, 2, 4}) {
    libtorch::GradientTree tree;
    for (int64_t first = 0; first < 8; first += at_once)
      tree.add(libtorch::tree_sum(leaves.narrow(0, first, at_once).unbind(0)).clone());
    REQUIRE(tree.take().equal(level[0]));
  }
  REQUIRE(leaves.equal(before));
}

/// Three tensors of two types, of which the last one is larger than a bucket.
std::vector<at::Tensor> tensors_of_two_types() {
  return {at::arange(6, at::kFloat).view({2, 3}).requires_grad_(true),
          at::ones({FlatWeights::block}, at::kBFloat16).requires_grad_(true),
          at::ones({FlatWeights::numbers_of_bucket}).requires_grad_(true),
          at::ones({5}).requires_grad_(true)};
}

TEST_CASE("flat weights are the model's own, in buckets of one type", "[worker][processes]") {
  const std::vector<at::Tensor> stored = tensors_of_two_types();
  const std::vector<at::Tensor> rounded = {{}, {}, {}, at::full({5}, 3, at::kBFloat16)};
  const FlatWeights flat(stored, rounded, {1, 2}, 4);
  REQUIRE(stored[0].detach().flatten().equal(at::arange(6, at::kFloat)));
  REQUIRE(flat.buckets().size() == 3);
  REQUIRE(flat.buckets()[0].tensors == std::vector<size_t>{0, 2});
  REQUIRE(flat.buckets()[1].tensors == std::vector<size_t>{1});
  REQUIRE(flat.buckets()[2].tensors == std::vector<size_t>{3});
  REQUIRE(flat.buckets()[2].row.numel() == 4 * FlatWeights::block);
  REQUIRE(flat.own_range(2).size() == 2 * FlatWeights::block);
  REQUIRE(flat.own_of(3).size() == 0);  // process 0 has it
  REQUIRE(flat.own_of(2).begin == flat.own_range(0).begin - flat.location(2).begin);
  REQUIRE(flat.own_of(2).end == FlatWeights::numbers_of_bucket);
  const at::NoGradGuard no_grad;
  flat.buckets()[1].row.fill_(7);
  REQUIRE(stored[1].detach().equal(at::full({FlatWeights::block}, 7, at::kBFloat16)));
  REQUIRE_FALSE(flat.buckets()[0].rounded.defined());
  REQUIRE(rounded[3].equal(at::full({5}, 3, at::kBFloat16)));
  flat.buckets()[2].rounded.fill_(4);
  REQUIRE(rounded[3].equal(at::full({5}, 4, at::kBFloat16)));
}

TEST_CASE("the gradients of slots and passes are added in the rows of buckets",
          "[worker][processes]") {
  const std::vector<at::Tensor> stored = tensors_of_two_types();
  const FlatWeights flat(stored, std::vector<at::Tensor>(4), {0, 1}, 2);
  const std::unique_ptr<libtorch::ProcessGroup> alone =
      libtorch::make_process_group(worker::Request(), at::Device("cpu"));
  libtorch::GradientExchange exchange(*alone);
  libtorch::GradientBuckets buckets(flat, exchange);
  const auto pass = [&](float factor) {
    (stored[0].sum() * factor + (stored[1].sum() * 3).to(at::kFloat)).backward();
  };
  buckets.open_rehearsal();
  pass(100);
  buckets.close_rehearsal();
  for (const float factor : {1.F, 10.F}) {
    buckets.open_slot(/*passes=*/2);
    pass(factor);
    pass(2 * factor);
    buckets.close_slot();
    REQUIRE_FALSE(stored[0].grad().defined());
  }
  const std::vector<at::Tensor> sums = buckets.take();
  REQUIRE(sums[0].narrow(0, 0, 6).equal(at::full({6}, 33.F)));
  REQUIRE(sums[0].sum().item<float>() == 6 * 33.F);  // a tensor without gradient has zeros
  REQUIRE(sums[1].scalar_type() == at::kFloat);
  REQUIRE(sums[1].narrow(0, 0, FlatWeights::block).equal(at::full({FlatWeights::block}, 12.F)));
  pass(5);  // no slot is open: as without buckets
  REQUIRE(stored[0].grad().equal(at::full({2, 3}, 5.F)));
}

TEST_CASE("who finds a gradient first writes it into its bucket's row", "[worker][processes]") {
  const std::vector<at::Tensor> stored = tensors_of_two_types();
  const FlatWeights flat(stored, std::vector<at::Tensor>(4), {0, 1}, 1);
  const std::unique_ptr<libtorch::ProcessGroup> alone =
      libtorch::make_process_group(worker::Request(), at::Device("cpu"));
  libtorch::GradientExchange exchange(*alone);
  libtorch::GradientBuckets buckets(flat, exchange);
  const at::Tensor x = at::randn({4, 3}), &w = stored[0];
  const auto reads = [&] { return ops::linear(x, {w, {}}).sum(); };
  const at::Tensor expected = at::ones({4, 2}).t().matmul(x);

  const at::Tensor elsewhere = ops::empty_gradient(w);  // no slot is open
  REQUIRE(elsewhere.sizes() == w.sizes());
  buckets.open_slot(/*passes=*/1);
  const at::Tensor place = ops::empty_gradient(w);
  buckets.close_slot();
  const at::Tensor row = buckets.take()[0];
  REQUIRE(place.data_ptr() == row.data_ptr());
  REQUIRE(row.count_nonzero().item<int64_t>() == 0);  // nobody has found it

  for (const int64_t passes : {1, 2}) {
    for (const int64_t times : {1, 2}) {  // a weight that is read twice has one gradient
      buckets.open_slot(passes);
      for (int64_t pass = 0; pass < passes; ++pass)
        (times == 1 ? reads() : reads() + reads()).backward();
      buckets.close_slot();
      const at::Tensor sum = buckets.take()[0].narrow(0, 0, 6).view({2, 3});
      REQUIRE(at::allclose(sum, expected * passes * times));
    }
  }
}

}  // namespace
}  // namespace forge::tests

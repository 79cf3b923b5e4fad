// Checkpoints that several processes write together, and their optimizer's state in parts.

#include <cstring>
#include <numeric>
#include <thread>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/model/weights/checkpoint.h"
#include "core/model/weights/checkpoint_parts.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::weights {
namespace {

namespace fs = std::filesystem;
using tests::contains;
using tests::error_of;
using tests::TemporaryFolder;
using Tensors = std::map<std::string, TensorView>;

TensorView view_of(const std::vector<float>& numbers, size_t begin, size_t end) {
  return {Dtype::f32,
          {static_cast<int64_t>(end - begin)},
          reinterpret_cast<const std::byte*>(numbers.data() + begin),
          4 * (end - begin)};
}

std::vector<float> read(const OptimizerState& state, const std::string& name, int64_t numbers) {
  std::vector<float> read(static_cast<size_t>(numbers));
  state.read(name, Dtype::f32, numbers, reinterpret_cast<std::byte*>(read.data()));
  return read;
}

std::vector<float> counting(size_t count) {
  std::vector<float> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0.F);
  return numbers;
}

std::vector<float> slice(const std::vector<float>& numbers, long begin, long end) {
  return {numbers.begin() + begin, numbers.begin() + end};
}

CheckpointState state_at(int64_t step) {
  CheckpointState state;
  state.step = step;
  return state;
}

const auto never = [] { return false; };

/// Writes m in three parts of a checkpoint, each by a process of its own.
fs::path write_three(const fs::path& checkpoints, const std::vector<float>& m) {
  const std::vector<Tensors> optimizer = {{{part_name("m", 0, 4), view_of(m, 0, 4)}},
                                          {{part_name("m", 4, 7), view_of(m, 4, 7)}},
                                          {{part_name("m", 7, 10), view_of(m, 7, 10)}}};
  std::vector<std::thread> others;
  for (const int rank : {2, 1}) {
    others.emplace_back([&, rank] {
      write_checkpoint_part(
          checkpoints, state_at(30), {}, optimizer[size_t(rank)], {rank, 3}, never);
    });
  }
  const Tensors weights = {{"w", view_of(m, 0, 3)}};
  const fs::path folder =
      write_checkpoint_part(checkpoints, state_at(30), weights, optimizer[0], {0, 3}, never);
  for (std::thread& other : others) other.join();
  return folder;
}

TEST_CASE("processes write a checkpoint together, and any number of them reads it") {
  const TemporaryFolder run;
  const std::vector<float> m = counting(10);
  const fs::path folder = write_three(run / "checkpoints", m);
  REQUIRE(read_checkpoint_state(folder).step == 30);
  REQUIRE(fs::exists(folder / "optimizer-2-of-3.safetensors"));
  REQUIRE_FALSE(fs::exists(folder / optimizer_file));
  REQUIRE_FALSE(fs::exists(parts_folder(run / "checkpoints", 30)));
  const OptimizerState state(folder);
  REQUIRE(read(state, "m", 10) == m);
  REQUIRE(read(state, part_name("m", 0, 5), 5) == slice(m, 0, 5));
  REQUIRE(read(state, part_name("m", 3, 9), 6) == slice(m, 3, 9));
}

TEST_CASE("a whole optimizer's file is read in parts, too") {
  const TemporaryFolder run;
  const std::vector<float> m = counting(10);
  const fs::path folder =
      write_checkpoint(run / "checkpoints", state_at(1), {}, {{"m", view_of(m, 0, 10)}});
  REQUIRE(read(OptimizerState(folder), part_name("m", 2, 6), 4) == slice(m, 2, 6));
}

TEST_CASE("parts of an optimizer's state that do not fit together are damage") {
  const TemporaryFolder run;
  const std::vector<float> m = counting(10);
  const fs::path folder = write_three(run / "checkpoints", m);
  const auto failure = [&](const std::string& name, int64_t numbers) {
    return error_of([&] { read(OptimizerState(folder), name, numbers); });
  };
  REQUIRE(contains(failure("n", 10), "have no 'n'"));
  REQUIRE(contains(failure("m", 11), "number 10 is not where it should be"));
  REQUIRE(contains(failure("m[2:1]", 1), "names no part of 1 numbers"));
  write_safetensors(folder / "optimizer-3-of-4.safetensors",
                    {{part_name("m", 6, 8), view_of(m, 6, 8)}});
  REQUIRE(contains(failure("m", 10), "number 7 is not where it should be"));
  fs::remove(folder / "optimizer-3-of-4.safetensors");
  fs::remove(folder / "optimizer-1-of-3.safetensors");
  REQUIRE(contains(failure("m", 10), "number 4 is not where it should be"));
  REQUIRE(contains(error_of([&] { read_checkpoint_state(folder); }),
                   "optimizer-1-of-3.safetensors cannot be read"));
}

TEST_CASE("the first process gives up a checkpoint that another one does not write") {
  const TemporaryFolder run;
  const fs::path checkpoints = run / "checkpoints";
  const auto gives_up = [] { return true; };
  const std::string failure = error_of([&] {
    write_checkpoint_part(checkpoints, state_at(5), {}, {}, {0, 2}, gives_up);
  });
  REQUIRE(contains(failure, "process 1 has not written its part"));
  REQUIRE(list_checkpoints(checkpoints).empty());
}

TEST_CASE("what other processes have written ahead stays when an older checkpoint is done") {
  const TemporaryFolder run;
  const fs::path checkpoints = run / "checkpoints";
  write_checkpoint_part(checkpoints, state_at(20), {}, {}, {1, 2}, never);
  write_checkpoint_part(checkpoints, state_at(5), {}, {}, {1, 2}, never);
  remove_abandoned_checkpoints(checkpoints, 10);
  REQUIRE(fs::exists(parts_folder(checkpoints, 20)));
  REQUIRE_FALSE(fs::exists(parts_folder(checkpoints, 5)));
  remove_parts(checkpoints);
  REQUIRE_FALSE(fs::exists(parts_folder(checkpoints, 20)));
}

}  // namespace
}  // namespace forge::weights

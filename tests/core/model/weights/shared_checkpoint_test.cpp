// Checkpoints that several processes write together.

#include <unistd.h>
#include <atomic>
#include <numeric>
#include <thread>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/model/weights/checkpoint.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::weights {
namespace {

namespace fs = std::filesystem;
using tests::contains;
using tests::error_of;
using tests::TemporaryFolder;
using Tensors = std::map<std::string, TensorPart>;

/// The numbers from begin up to end of a tensor of all.
TensorPart part_of(const std::vector<float>& numbers, size_t begin, size_t end) {
  return {Dtype::f32,
          {static_cast<int64_t>(numbers.size())},
          reinterpret_cast<const std::byte*>(numbers.data() + begin),
          4 * (end - begin),
          static_cast<int64_t>(begin)};
}

std::vector<float> counting(size_t count) {
  std::vector<float> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0.F);
  return numbers;
}

CheckpointState state_at(int64_t step) {
  CheckpointState state;
  state.step = step;
  return state;
}

const auto never = [] { return false; };

TEST_CASE("a checkpoint has the same bytes however many processes write it") {
  const TemporaryFolder run;
  const std::vector<float> w = counting(10), m = counting(1000), n = counting(3);
  const auto parts_from = [&](size_t w_begin, size_t w_end, size_t m_begin, size_t m_end) {
    return std::pair(
        Tensors{{"w", part_of(w, w_begin, w_end)}},
        Tensors{{"m", part_of(m, m_begin, m_end)}, {"n", part_of(n, 0, m_begin == 0 ? 3 : 0)}});
  };
  const auto write = [&](const char* name, const auto& parts, int rank, int count) {
    return write_checkpoint_part(
        run / name, state_at(30), parts.first, parts.second, {rank, count}, never);
  };
  const fs::path alone = write("alone", parts_from(0, 10, 0, 1000), 0, 1);
  std::vector<std::thread> others;
  for (const int rank : {2, 1}) {
    others.emplace_back([&, rank] {
      write("three", rank == 1 ? parts_from(4, 7, 10, 900) : parts_from(7, 10, 900, 1000), rank, 3);
    });
  }
  const fs::path folder = write("three", parts_from(0, 4, 0, 10), 0, 3);
  for (std::thread& other : others) other.join();
  REQUIRE(read_checkpoint_state(folder).step == 30);
  REQUIRE_FALSE(fs::exists(shared_folder(run / "three", 30)));
  for (const auto& file : fs::directory_iterator(alone))
    CHECK(read_file(folder / file.path().filename()) == read_file(file.path()));
  CHECK(std::distance(fs::directory_iterator(folder), {}) == 3);
}

TEST_CASE("parts are written where they belong, and no others") {
  const TemporaryFolder folder;
  const std::vector<float> w = counting(10);
  const Tensors whole = {{"w", part_of(w, 0, 10)}};
  const int64_t bytes = write_safetensors_part(folder / "whole", whole, true);
  REQUIRE(bytes == int64_t(fs::file_size(folder / "whole")));
  REQUIRE(write_safetensors_part(folder / "end", {{"w", part_of(w, 8, 10)}}, false) == bytes);
  REQUIRE(read_file(folder / "end").substr(size_t(bytes) - 8) ==
          read_file(folder / "whole").substr(size_t(bytes) - 8));
  Tensors beyond = {{"w", part_of(w, 8, 10)}};
  beyond["w"].begin = 9;
  REQUIRE(contains(error_of([&] { write_safetensors_part(folder / "wrong", beyond, true); }),
                   "the part of tensor 'w' is not within its shape"));
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
  REQUIRE(fs::exists(shared_folder(checkpoints, 20)));
  REQUIRE_FALSE(fs::exists(shared_folder(checkpoints, 5)));
  remove_shared_folders(checkpoints);
  REQUIRE_FALSE(fs::exists(shared_folder(checkpoints, 20)));
}

TEST_CASE("a process is done with a checkpoint as soon as it has said so") {
  // The first one moves the folder at once: in few of many times within the same microsecond.
  const TemporaryFolder run;
  for (int64_t step = 1; step <= 200; ++step) {
    const fs::path shared = shared_folder(run / "checkpoints", step);
    std::atomic<bool> is_done{false};
    std::thread first([&] {
      const std::string mark = (shared / "written-1").string();
      while (!is_done && ::access(mark.c_str(), F_OK) != 0) {
      }
      fs::rename(shared, run / checkpoint_name(step));
    });
    INFO("step " << step);
    const std::string failure = error_of([&] {
      write_checkpoint_part(run / "checkpoints", state_at(step), {}, {}, {1, 2}, never);
    });
    is_done = true;
    first.join();
    REQUIRE(failure == "");
  }
}

}  // namespace
}  // namespace forge::weights

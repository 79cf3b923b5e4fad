#include "core/weights/checkpoint_writer.h"

#include "core/base/error.h"
#include "core/base/fs.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/support.h"

namespace forge::weights {
namespace {

using tests::contains;
using tests::TemporaryFolder;

constexpr double long_enough = 60;  // seconds; a write takes milliseconds

/// A tensor of some values and its view.
struct OneTensor {
  std::vector<float> values = std::vector<float>(64, 1.5f);
  CheckpointWriter::Tensors tensors = {
      {"w", {Dtype::f32, {64}, reinterpret_cast<const std::byte*>(values.data()), 256}}};
};

CheckpointState at_step(int64_t step) {
  CheckpointState state;
  state.step = step;
  return state;
}

TEST_CASE("a checkpoint is written from another thread and given once") {
  const TemporaryFolder folder;
  const OneTensor sample;
  CheckpointWriter writer(folder / "checkpoints", {2, true});
  REQUIRE_FALSE(writer.take_written());
  writer.start(at_step(5), sample.tensors, {});
  REQUIRE(writer.is_busy());
  const auto written = writer.take_written(long_enough);
  REQUIRE(written.has_value());
  REQUIRE(written->step == 5);
  REQUIRE(written->folder == folder / "checkpoints" / "000000005");
  REQUIRE(written->bytes > 256);
  REQUIRE(writer.fraction() == 1);
  REQUIRE(read_checkpoint_state(written->folder).step == 5);
  REQUIRE_FALSE(writer.is_busy());
  REQUIRE_FALSE(writer.take_written());
}

TEST_CASE("the writer keeps as many as it is told") {
  const TemporaryFolder folder;
  const OneTensor sample;
  CheckpointWriter writer(folder.path(), {1, false});
  for (const int64_t step : {1, 2, 3}) {
    writer.start(at_step(step), sample.tensors, {});
    REQUIRE(writer.take_written(long_enough));
  }
  REQUIRE(list_checkpoints(folder.path()) == std::vector<fs::path>{folder / "000000003"});
}

TEST_CASE("one checkpoint is written at a time and none is lost at the end") {
  const TemporaryFolder folder;
  const OneTensor sample;
  {
    CheckpointWriter writer(folder.path(), {2, true});
    writer.start(at_step(1), sample.tensors, {});
    REQUIRE(contains(tests::error_of([&] { writer.start(at_step(2), {}, {}); }), "already"));
  }
  REQUIRE(read_checkpoint_state(folder / "000000001").step == 1);
}

TEST_CASE("a write that fails says so once and leaves what was there") {
  const TemporaryFolder folder;
  OneTensor sample;
  CheckpointWriter writer(folder.path(), {2, true});
  writer.start(at_step(1), sample.tensors, {});
  REQUIRE(writer.take_written(long_enough));
  CheckpointWriter::Tensors broken = sample.tensors;
  broken["w"].bytes = 7;
  writer.start(at_step(2), broken, {});
  try {
    writer.take_written(long_enough);
    FAIL("nothing was said");
  } catch (const Error& error) {
    REQUIRE(contains(error.message(), "the checkpoint of step 2 could not be written"));
    REQUIRE(contains(error.hint(), "checkpoint 000000001 is whole"));
    REQUIRE(error.exit_code() == ExitCode::storage);
  }
  REQUIRE_FALSE(writer.is_busy());
  REQUIRE(list_checkpoints(folder.path()) == std::vector<fs::path>{folder / "000000001"});
  writer.start(at_step(3), sample.tensors, {});
  REQUIRE(writer.take_written(long_enough)->step == 3);
}

}  // namespace
}  // namespace forge::weights

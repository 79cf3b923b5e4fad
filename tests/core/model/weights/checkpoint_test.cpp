#include <sys/resource.h>

#include <cstring>
#include <thread>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/model/weights/checkpoint.h"
#include "tests/core/model/weights/damage.h"
#include "tests/support/catch.h"
#include "tests/support/other_user.h"
#include "tests/support/support.h"

namespace forge::weights {
namespace {

using tests::contains;
using tests::error_of;
using tests::TemporaryFolder;

/// Values for a small checkpoint, and the views into them.
struct SavedSample {
  std::vector<float> values = {1, 2, 3, 4};
  std::vector<int64_t> steps = {300};
  std::map<std::string, TensorView> weights = {
      {"w", {Dtype::f32, {2, 2}, reinterpret_cast<const std::byte*>(values.data()), 16}}};
  std::map<std::string, TensorView> optimizer = {
      {"step", {Dtype::i64, {}, reinterpret_cast<const std::byte*>(steps.data()), 8}}};

  std::optional<double> eval_loss;

  fs::path write(const fs::path& checkpoints, int64_t step, int64_t* bytes = nullptr) const {
    CheckpointState state;
    state.step = step;
    state.rows_served = 8 * step;
    state.elapsed_seconds = 1.25;
    state.extra = {{"peak_memory_bytes", 123}};
    state.identity = "5a0c1f0e9b21";
    state.eval_loss = eval_loss;
    return write_checkpoint(checkpoints, state, weights, optimizer, bytes);
  }
};

std::vector<std::string> names_below(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST_CASE("whoever waits for a checkpoint is told of its bytes piece by piece") {
  const TemporaryFolder folder;
  const std::vector<std::byte> zeros(size_t{40} << 20);
  const auto size = static_cast<int64_t>(zeros.size());
  std::vector<int64_t> pieces;
  int64_t sum = 0;
  write_checkpoint(folder.path(),
                   {},
                   {{"w", {Dtype::u8, {size}, zeros.data(), zeros.size()}}},
                   {},
                   nullptr,
                   [&](int64_t bytes) {
                     pieces.push_back(bytes);
                     sum += bytes;
                   });
  REQUIRE(pieces.size() > 6);
  REQUIRE(*std::max_element(pieces.begin(), pieces.end()) <= size / 2);
  REQUIRE(sum >= 2 * size);           // written and hashed
  REQUIRE(sum <= 2 * size + 10'000);  // and the headers
}

TEST_CASE("a checkpoint comes back as it was written") {
  const TemporaryFolder folder;
  int64_t bytes = 0;
  // The folder of a run that somebody removed does not come back.
  REQUIRE_THROWS_AS(SavedSample().write(folder / "run/checkpoints", 300), Error);
  REQUIRE_FALSE(fs::exists(folder / "run"));
  make_directories(folder / "run");
  const fs::path checkpoint = SavedSample().write(folder / "run/checkpoints", 300, &bytes);
  REQUIRE(checkpoint == folder / "run/checkpoints" / "000000300");
  REQUIRE(names_below(checkpoint) == std::vector<std::string>{"manifest.json",
                                                              "optimizer.safetensors",
                                                              "weights.safetensors"});

  const CheckpointState state = read_checkpoint_state(checkpoint);
  REQUIRE(state.step == 300);
  REQUIRE(state.rows_served == 2400);
  REQUIRE(state.elapsed_seconds == 1.25);
  REQUIRE(state.extra == nlohmann::json{{"peak_memory_bytes", 123}});
  REQUIRE(state.identity == "5a0c1f0e9b21");
  REQUIRE_FALSE(state.eval_loss.has_value());
  REQUIRE(read_checkpoint_state(checkpoint, FileCheck::none).step == 300);
  const SafetensorsFile weights(checkpoint / weights_file);
  float last = 0;
  std::memcpy(&last, weights.tensor("w").data + 12, sizeof last);
  REQUIRE(last == 4);

  uintmax_t on_disk = 0;
  for (const auto& file : fs::directory_iterator(checkpoint)) on_disk += file.file_size();
  REQUIRE(static_cast<uintmax_t>(bytes) == on_disk);
}

TEST_CASE("writing leaves nothing but the checkpoint") {
  const TemporaryFolder folder;
  SavedSample().write(folder.path(), 7);
  REQUIRE(names_below(folder.path()) == std::vector<std::string>{"000000007"});
}

TEST_CASE("a checkpoint of the same step is replaced") {
  const TemporaryFolder folder;
  SavedSample first;
  const fs::path checkpoint = first.write(folder.path(), 5);
  SavedSample second;
  second.values[0] = 9;
  second.write(folder.path(), 5);
  REQUIRE(names_below(folder.path()) == std::vector<std::string>{"000000005"});
  REQUIRE(read_checkpoint_state(checkpoint).step == 5);
  const SafetensorsFile weights(checkpoint / weights_file);
  float value = 0;
  std::memcpy(&value, weights.tensor("w").data, sizeof value);
  REQUIRE(value == 9);
}

TEST_CASE("a damaged folder of the same step is replaced too") {
  const TemporaryFolder folder;
  folder.write("000000005/rubbish", "x");
  const fs::path checkpoint = SavedSample().write(folder.path(), 5);
  REQUIRE(names_below(folder.path()) == std::vector<std::string>{"000000005"});
  REQUIRE(read_checkpoint_state(checkpoint).step == 5);
  REQUIRE_FALSE(fs::exists(checkpoint / "rubbish"));
}

TEST_CASE("a failed write leaves earlier checkpoints and nothing of its own") {
  const TemporaryFolder folder;
  SavedSample sample;
  const fs::path checkpoint = sample.write(folder.path(), 5);
  sample.optimizer["step"].bytes = 7;
  REQUIRE(contains(error_of([&] { sample.write(folder.path(), 5); }), "tensor 'step'"));
  REQUIRE(contains(error_of([&] { sample.write(folder.path(), 6); }), "tensor 'step'"));
  REQUIRE(names_below(folder.path()) == std::vector<std::string>{"000000005"});
  REQUIRE(read_checkpoint_state(checkpoint).step == 5);
}

TEST_CASE("checkpoints that cannot be created name the path") {
  const TemporaryFolder folder;
  folder.write("file", "");
  REQUIRE(contains(error_of([&] { SavedSample().write(folder / "file/checkpoints", 5); }), "file"));
  REQUIRE(contains(error_of([&] { SavedSample().write(folder.path(), -1); }), "step -1"));
}

TEST_CASE("every flipped bit of every file is found and the file is named") {
  const TemporaryFolder folder;
  const fs::path checkpoint = SavedSample().write(folder.path(), 300);
  for (const char* name : {weights_file, optimizer_file, manifest_file}) {
    const size_t bits = 8 * fs::file_size(checkpoint / name);
    for (size_t bit = 0; bit < bits; ++bit) {
      INFO(name << " bit " << bit);
      tests::flip_bit(checkpoint / name, bit);
      const std::string message = error_of([&] { read_checkpoint_state(checkpoint); });
      REQUIRE(contains(message, "000000300' is damaged"));
      REQUIRE(contains(message, name));
      tests::flip_bit(checkpoint / name, bit);
    }
  }
  REQUIRE(read_checkpoint_state(checkpoint).step == 300);
}

TEST_CASE("every truncation of every file is found and a longer file too") {
  const TemporaryFolder folder;
  const fs::path checkpoint = SavedSample().write(folder.path(), 300);
  for (const char* name : {weights_file, optimizer_file, manifest_file}) {
    const std::string bytes = read_file(checkpoint / name);
    tests::overwrite(checkpoint / name, bytes + " ");
    REQUIRE(contains(error_of([&] { read_checkpoint_state(checkpoint); }), name));
    for (size_t size = bytes.size(); size-- > 0;) {
      fs::resize_file(checkpoint / name, size);
      INFO(name << " cut to " << size);
      REQUIRE(contains(error_of([&] { read_checkpoint_state(checkpoint); }), name));
    }
    tests::overwrite(checkpoint / name, bytes);
  }
}

TEST_CASE("a missing file is named") {
  for (const char* name : {weights_file, optimizer_file, manifest_file}) {
    const TemporaryFolder folder;
    const fs::path checkpoint = SavedSample().write(folder.path(), 300);
    fs::remove(checkpoint / name);
    const std::string message = error_of([&] { read_checkpoint_state(checkpoint); });
    REQUIRE(contains(message, std::string(name) + " cannot be read"));
  }
}

TEST_CASE("files of another checkpoint are noticed") {
  const TemporaryFolder folder;
  SavedSample sample;
  const fs::path first = sample.write(folder.path(), 1);
  sample.values[3] = 5;
  const fs::path second = sample.write(folder.path(), 2);
  fs::copy_file(second / weights_file, first / weights_file, fs::copy_options::overwrite_existing);
  REQUIRE(contains(error_of([&] { read_checkpoint_state(first); }),
                   "content of weights.safetensors is not what was written"));
}

TEST_CASE("checkpoints are listed oldest first and unfinished ones not at all") {
  const TemporaryFolder folder;
  const SavedSample sample;
  for (const int64_t step : {200, 1000000000, 30, 999999999}) sample.write(folder.path(), step);
  folder.write(".tmp-000000400-1/manifest.json", "{}");
  folder.write("000000500/weights.safetensors", "");
  folder.write("notes/manifest.json", "{}");
  folder.write("0000006x0/manifest.json", "{}");
  folder.write("000000700", "");
  // 500 had its name, so it was whole once: it is damaged, which only its reader can say.
  const std::vector<fs::path> expected = {folder / "000000030",
                                          folder / "000000200",
                                          folder / "000000500",
                                          folder / "999999999",
                                          folder / "1000000000"};
  REQUIRE(list_checkpoints(folder.path()) == expected);
}

TEST_CASE("a folder that is not there holds no checkpoints") {
  const TemporaryFolder folder;
  REQUIRE(list_checkpoints(folder / "none").empty());
  remove_surplus_checkpoints(folder / "none", {1, true}, 10);
  remove_abandoned_checkpoints(folder / "none", 10);
  folder.write("file", "");
  REQUIRE(contains(error_of([&] { list_checkpoints(folder / "file"); }), "file"));
}

TEST_CASE("the newest are kept, and those after the last recorded step do not count") {
  const TemporaryFolder folder;
  const SavedSample sample;
  for (const int64_t step : {1, 2, 3, 4}) sample.write(folder.path(), step);
  folder.write(".tmp-000000009-1/weights.safetensors", "being written");
  folder.write("notes.txt", "mine");
  const std::vector<std::string> others = {".tmp-000000009-1", "notes.txt"};
  const auto left = [&] {
    std::vector<std::string> names = names_below(folder.path());
    for (const std::string& name : others)
      names.erase(std::remove(names.begin(), names.end(), name), names.end());
    return names;
  };
  remove_surplus_checkpoints(folder.path(), {2, true}, 3);
  REQUIRE(left() == std::vector<std::string>{"000000002", "000000003", "000000004"});
  REQUIRE(path_exists(folder / ".tmp-000000009-1" / "weights.safetensors"));
  remove_surplus_checkpoints(folder.path(), {5, true}, 4);
  REQUIRE(left().size() == 3);
  remove_surplus_checkpoints(folder.path(), {0, true}, 4);
  REQUIRE(left().empty());
  REQUIRE(contains(error_of([&] {
                     remove_surplus_checkpoints(folder.path(), {-1, true}, 4);
                   }),
                   "-1"));
}

TEST_CASE("a checkpoint that somebody reads or needs stays") {
  const TemporaryFolder folder;
  const SavedSample sample;
  for (const int64_t step : {1, 2, 3}) sample.write(folder.path(), step);
  const fs::path needed = folder / "000000002";
  const Retention retention{1, false, [&](const fs::path& each) { return each == needed; }};
  std::optional<FileLock> hold = hold_checkpoint(folder / "000000001");
  REQUIRE(hold);
  remove_surplus_checkpoints(folder.path(), retention, 3);
  REQUIRE(list_checkpoints(folder.path()).size() == 3);
  hold.reset();
  remove_surplus_checkpoints(folder.path(), retention, 3);
  REQUIRE(list_checkpoints(folder.path()) == std::vector<fs::path>{needed, folder / "000000003"});
  REQUIRE_FALSE(hold_checkpoint(folder / "000000001"));
}

TEST_CASE("the best is kept too and of two equally good ones the later") {
  const std::vector<std::string> newest = {"000000004", "000000005"};
  for (const bool keep_best : {true, false}) {
    const TemporaryFolder folder;
    SavedSample sample;
    int64_t step = 0;
    for (const std::optional<double> loss : {2.5, 2.0, 2.0}) {
      sample.eval_loss = loss;
      sample.write(folder.path(), ++step);
    }
    sample.eval_loss.reset();
    sample.write(folder.path(), 4);
    sample.eval_loss = 3;
    sample.write(folder.path(), 5);
    remove_surplus_checkpoints(folder.path(), {2, keep_best}, 5);
    std::vector<std::string> expected = newest;
    if (keep_best) expected.insert(expected.begin(), "000000003");
    REQUIRE(names_below(folder.path()) == expected);
    REQUIRE(read_checkpoint_state(folder / "000000005").eval_loss == 3.0);
  }
}

TEST_CASE("what is unfinished or beyond the step where the run stands is abandoned") {
  const TemporaryFolder folder;
  const SavedSample sample;
  for (const int64_t step : {10, 20, 30}) sample.write(folder.path(), step);
  folder.write("000000040/weights.safetensors", "half of it is gone");
  folder.write(".tmp-000000009-1/weights.safetensors", "");
  remove_abandoned_checkpoints(folder.path(), 20);
  REQUIRE(names_below(folder.path()) == std::vector<std::string>{"000000010", "000000020"});
}

TEST_CASE("a manifest without the keys that came later is read") {
  const TemporaryFolder folder;
  const fs::path checkpoint = SavedSample().write(folder.path(), 1);
  nlohmann::json whole = nlohmann::json::parse(read_file(checkpoint / manifest_file));
  whole["manifest"]["state"].erase("identity");
  whole["manifest"]["state"].erase("eval_loss");
  whole["hash"] = hash_hex(whole["manifest"].dump());
  tests::overwrite(checkpoint / manifest_file, whole.dump(2) + "\n");
  REQUIRE(read_checkpoint_state(checkpoint).identity.empty());
}

TEST_CASE("a checkpoint without a manifest is sealed over all of its files") {
  const TemporaryFolder folder;
  folder.write("000000007/counts.txt", "1 2 3\n");
  const fs::path checkpoint = folder / "000000007";
  REQUIRE(contains(error_of([&] { read_checkpoint_state(checkpoint); }), manifest_file));
  CheckpointState state;
  state.step = 7;
  seal_checkpoint(checkpoint, state);
  REQUIRE(read_checkpoint_state(checkpoint).step == 7);
  // Sealing again changes nothing, whatever happened meanwhile.
  folder.write("000000007/counts.txt", "1 2 4\n");
  seal_checkpoint(checkpoint, state);
  REQUIRE(contains(error_of([&] { read_checkpoint_state(checkpoint); }), "counts.txt"));
  seal_checkpoint(folder / "none", state);
  REQUIRE_FALSE(fs::exists(folder / "none"));
}

TEST_CASE("nothing but plain files of the folder itself belongs to a checkpoint") {
  const TemporaryFolder folder;
  folder.write("secret", "s");
  fs::create_directories(folder / "000000001");
  fs::create_symlink(folder / "secret", folder / "000000001/link");
  REQUIRE(contains(error_of([&] { seal_checkpoint(folder / "000000001", {}); }), "no plain file"));
  folder.write("000000002/inner/file", "x");
  REQUIRE(contains(error_of([&] { seal_checkpoint(folder / "000000002", {}); }), "no plain file"));

  // A manifest is as little to be trusted as its writer.
  const nlohmann::json manifest = {
      {"version", 1},
      {"state", {{"step", 3}, {"rows_served", 0}, {"elapsed_seconds", 0.5}, {"extra", {}}}},
      {"files", {{"../secret", {{"bytes", 1}, {"hash", hash_hex("s")}}}}}};
  const nlohmann::json whole = {{"manifest", manifest}, {"hash", hash_hex(manifest.dump())}};
  folder.write("000000003/manifest.json", whole.dump(2) + "\n");
  REQUIRE(contains(error_of([&] { read_checkpoint_state(folder / "000000003"); }),
                   "lists '../secret', which is no file"));
}

TEST_CASE("a link in the place of a run's checkpoints, or of its folder, removes nothing elsewhere",
          "[hostile]") {
  const TemporaryFolder folder, elsewhere;
  make_directories(elsewhere / "run");
  CheckpointState state;
  for (state.step = 1; state.step < 4; ++state.step)
    write_checkpoint(elsewhere / "run/checkpoints", state, {}, {});
  make_directories(elsewhere / "run/checkpoints/.tmp-000000009");
  make_directories(folder / "a");
  fs::create_directory_symlink(elsewhere / "run/checkpoints", folder / "a/checkpoints");
  fs::create_directory_symlink(elsewhere / "run", folder / "b");
  for (const fs::path& checkpoints : {folder / "a/checkpoints", folder / "b/checkpoints"}) {
    state.step = 3;
    for (const auto& action : std::vector<std::function<void()>>{
             [&] {
               remove_surplus_checkpoints(checkpoints, {1, false}, 3);
             },
             [&] { remove_abandoned_checkpoints(checkpoints, 1); },
             [&] { remove_shared_folders(checkpoints); },
             [&] { acknowledge_checkpoint(checkpoints / "000000003", state); },
             [&] { write_checkpoint(checkpoints, {}, {}, {}); }}) {
      const std::string fault = error_of(action);
      INFO(fault);
      CHECK(contains(fault, "is a symbolic link, and forge keeps a folder there"));
    }
  }
  CHECK(list_checkpoints(elsewhere / "run/checkpoints").size() == 3);
  CHECK(!is_acknowledged(elsewhere / "run/checkpoints/000000003"));
  CHECK(fs::exists(elsewhere / "run/checkpoints/.tmp-000000009"));
}

TEST_CASE("a link among checkpoints is not removed, nor what it leads to", "[hostile]") {
  const TemporaryFolder folder, elsewhere;
  CheckpointState state;
  for (state.step = 2; state.step < 5; ++state.step)
    write_checkpoint(folder / "checkpoints", state, {}, {});
  elsewhere.write("thesis.txt", "work");
  fs::create_directory_symlink(elsewhere.path(), folder / "checkpoints/000000001");
  remove_surplus_checkpoints(folder / "checkpoints", {1, false}, 4);
  CHECK(list_checkpoints(folder / "checkpoints").size() == 2);  // the link, and the newest
  CHECK(folder_entries(elsewhere.path()).size() == 1);
}

TEST_CASE("no checkpoint is written or sealed behind a link", "[hostile]") {
  const TemporaryFolder folder, elsewhere;
  elsewhere.write("000000007/counts.txt", "1");
  fs::create_directory_symlink(elsewhere.path(), folder / "checkpoints");
  fs::create_directory_symlink(elsewhere / "000000007", folder / "000000007");
  const auto is_link = [](const std::string& message) {
    return contains(message, "is a symbolic link");
  };
  REQUIRE(is_link(error_of([&] { write_checkpoint(folder / "checkpoints", {}, {}, {}); })));
  REQUIRE(is_link(error_of([&] { seal_checkpoint(folder / "000000007", {}); })));
  REQUIRE_FALSE(fs::exists(elsewhere / "000000000"));
  REQUIRE_FALSE(fs::exists(elsewhere / "000000007" / manifest_file));
}

TEST_CASE("a checkpoint of a later version says so") {
  const TemporaryFolder folder;
  const fs::path checkpoint = SavedSample().write(folder.path(), 1);
  nlohmann::json whole = nlohmann::json::parse(read_file(checkpoint / manifest_file));
  whole["manifest"]["version"] = 2;
  whole["hash"] = hash_hex(whole["manifest"].dump());
  tests::overwrite(checkpoint / manifest_file, whole.dump(2) + "\n");
  const std::string message = error_of([&] { read_checkpoint_state(checkpoint); });
  REQUIRE(contains(message, "manifest.json has version 2 and this program reads version 1"));
}

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
  CheckpointWriter writer(folder / "checkpoints");
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

TEST_CASE("the writer keeps all checkpoints before its own") {
  const TemporaryFolder folder;
  const OneTensor sample;
  CheckpointWriter writer(folder.path());
  folder.write("000000009/weights.safetensors", "of an attempt that got further");
  for (const int64_t step : {1, 2, 3}) {
    writer.start(at_step(step), sample.tensors, {});
    REQUIRE(writer.take_written(long_enough));
  }
  REQUIRE(list_checkpoints(folder.path()) ==
          std::vector<fs::path>{folder / "000000001", folder / "000000002", folder / "000000003"});
}

TEST_CASE("one checkpoint is written at a time and none is lost at the end") {
  const TemporaryFolder folder;
  const OneTensor sample;
  {
    CheckpointWriter writer(folder.path());
    writer.start(at_step(1), sample.tensors, {});
    REQUIRE(contains(tests::error_of([&] { writer.start(at_step(2), {}, {}); }), "already"));
  }
  REQUIRE(read_checkpoint_state(folder / "000000001").step == 1);
}

TEST_CASE("a checkpoint is whole where the process may start no more threads", "[hostile]") {
  const TemporaryFolder folder;
  fs::permissions(folder.path(), fs::perms(0777));
  const OneTensor sample;
  const std::string said = tests::words_of_other_user([&]() -> std::string {
    const struct rlimit none {};
    if (::setrlimit(RLIMIT_NPROC, &none) != 0) return "no limit";
    bool has_started = true;
    try {
      std::thread([] {}).join();
    } catch (const std::system_error&) {
      has_started = false;
    }
    CheckpointWriter writer(folder / "checkpoints");
    writer.start(at_step(5), sample.tensors, sample.tensors);
    const auto written = writer.take_written(long_enough);
    {
      CheckpointWriter last(folder / "last");  // which nobody waits for
      last.start(at_step(6), sample.tensors, {});
    }
    return (has_started ? "a thread was started" : "none") + std::string(" ") +
           std::to_string(written ? written->step : 0);
  });
  REQUIRE(said == "none 5");
  for (const char* file : {"weights.safetensors", "optimizer.safetensors"}) {
    const SafetensorsFile read(folder / "checkpoints" / "000000005" / file);
    REQUIRE(read.tensors().count("w") == 1);
  }
  REQUIRE(read_checkpoint_state(folder / "last" / "000000006").step == 6);
}

TEST_CASE("a write that fails says so once and leaves what was there") {
  const TemporaryFolder folder;
  OneTensor sample;
  CheckpointWriter writer(folder.path());
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

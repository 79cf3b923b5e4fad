#include "core/manage/garbage.h"

#include <fstream>

#include "core/base/clock.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/manage/run_edits.h"
#include "core/model/weights/checkpoint.h"
#include "core/run/runs_dir.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/fake_runs.h"
#include "tests/support/other_user.h"
#include "tests/support/support.h"

namespace forge::manage {
namespace {

using namespace tests;

constexpr double day = 86400;

MadeRun keeping(const std::string& id, int checkpoints) {
  MadeRun run;
  run.id = id;
  run.experiment.train.keep_checkpoints = checkpoints;
  run.experiment.train.keep_best = false;
  return run;
}

void save(const run::RunFolder& folder, int64_t step) {
  weights::CheckpointState state;
  state.step = step;
  weights::write_checkpoint(folder.checkpoints(), state, {}, {});
}

GarbageOptions in_days(double days) {
  GarbageOptions options;
  options.now = unix_time() + days * day;
  return options;
}

std::vector<std::string> kinds(const std::vector<Garbage>& garbage) {
  std::vector<std::string> names;
  for (const Garbage& item : garbage)
    names.push_back(name_of(item.kind) + " " + item.path.filename().string());
  return names;
}
using Texts = std::vector<std::string>;

TEST_CASE("removed runs are garbage after so many days and freed with their removal",
          "[upkeep][garbage]") {
  const TemporaryFolder folder;
  remove_runs(folder.path(), {make_completed_run(folder.path(), keeping("a", 2))}, "");
  REQUIRE(find_garbage(folder.path(), in_days(6)).garbage.empty());
  const auto garbage = find_garbage(folder.path(), in_days(8)).garbage;
  REQUIRE(kinds(garbage) == Texts{"removed_run a"});
  REQUIRE(garbage[0].reason == "removed 8 days ago");
  const Freed freed = free_garbage(folder.path(), garbage);
  REQUIRE(freed.count == 1);
  REQUIRE(freed.bytes == garbage[0].bytes);
  REQUIRE(list_removals(folder.path()).empty());
  REQUIRE(fs::is_empty(run::trash_folder(folder.path())));
}

TEST_CASE("looking for garbage and freeing it tell how far they are", "[upkeep][garbage]") {
  const TemporaryFolder folder;
  const std::vector<run::RunFolder> runs = {make_completed_run(folder.path(), keeping("a", 1)),
                                            make_completed_run(folder.path(), keeping("b", 1))};
  for (const run::RunFolder& run : runs)
    for (const int64_t step : {1, 2}) save(run, step);
  Texts told;
  const CountProgress tell = [&](size_t done, size_t all) {
    told.push_back(std::to_string(done) + "/" + std::to_string(all));
  };
  const auto garbage = find_garbage(folder.path(), in_days(0), tell).garbage;
  REQUIRE(garbage.size() == 2);
  REQUIRE(told == Texts{"1/2", "2/2"});
  told.clear();
  free_garbage(folder.path(), garbage, tell);
  REQUIRE(told == Texts{"0/2", "1/2"});
}

TEST_CASE("a completed run gives back the checkpoints that it was asked not to keep",
          "[upkeep][garbage]") {
  const TemporaryFolder folder;
  const run::RunFolder completed = make_completed_run(folder.path(), keeping("a", 1));
  const run::RunFolder stopped = make_stopped_run(folder.path(), keeping("b", 1), 4);
  for (const int64_t step : {1, 2, 3}) {
    save(completed, step);
    save(stopped, step);
  }
  const auto garbage = find_garbage(folder.path(), in_days(0)).garbage;
  REQUIRE(kinds(garbage) == Texts{"surplus_checkpoint 000000001", "surplus_checkpoint 000000002"});
  free_garbage(folder.path(), garbage);
  REQUIRE(weights::list_checkpoints(completed.checkpoints()).size() == 1);
  REQUIRE(completed.newest_checkpoint() == (completed.checkpoints() / "000000003").string());
  REQUIRE(weights::list_checkpoints(stopped.checkpoints()).size() == 3);
  REQUIRE(find_garbage(folder.path(), in_days(0)).garbage.empty());
}

TEST_CASE("a checkpoint cut short is damaged and a flipped byte is when all is read",
          "[upkeep][garbage]") {
  const TemporaryFolder folder;
  const run::RunFolder run = make_stopped_run(folder.path(), keeping("a", 2), 4);
  save(run, 1);
  save(run, 2);
  fs::resize_file(run.checkpoints() / "000000001" / weights::weights_file, 3);
  {
    std::fstream file(run.checkpoints() / "000000002" / weights::weights_file,
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(2);
    file.put('\x55');
  }
  GarbageOptions options = in_days(0);
  REQUIRE(kinds(find_garbage(folder.path(), options).garbage) ==
          Texts{"damaged_checkpoint 000000001"});
  options.read_all = true;
  REQUIRE(kinds(find_garbage(folder.path(), options).garbage) ==
          Texts{"damaged_checkpoint 000000001", "damaged_checkpoint 000000002"});
}

TEST_CASE("a checkpoint that this user is kept from is not taken for a damaged one",
          "[upkeep][garbage]") {
  const TemporaryFolder folder;
  const run::RunFolder run = make_stopped_run(folder.path(), keeping("a", 2), 4);
  save(run, 1);
  fs::permissions(folder.path(), fs::perms::all);
  const fs::path checkpoint = run.checkpoints() / "000000001";
  const bool is_file = GENERATE(false, true);
  const fs::path closed = is_file ? checkpoint / "manifest.json" : checkpoint;
  const fs::perms before = fs::status(closed).permissions();
  fs::permissions(closed, fs::perms::none);
  const std::string said = words_of_other_user([&] {
    return "found: " + join(kinds(find_garbage(folder.path(), in_days(0)).garbage), ", ");
  });
  fs::permissions(closed, before);
  CHECK(said == "found: ");
}

TEST_CASE("a whole checkpoint under the name of another step is called that", "[upkeep][garbage]") {
  const TemporaryFolder folder;
  const run::RunFolder run = make_completed_run(folder.path(), keeping("a", 1));
  save(run, 1);
  save(run, 3);
  fs::rename(run.checkpoints() / "000000003", run.checkpoints() / "000000009");
  auto garbage = find_garbage(folder.path(), in_days(0)).garbage;
  REQUIRE(kinds(garbage) == Texts{"misnamed_checkpoint 000000009"});
  CHECK(garbage[0].reason == "whole, of step 3: it is used under the name 000000003");

  fs::resize_file(run.checkpoints() / "000000009" / weights::weights_file, 3);
  garbage = find_garbage(folder.path(), in_days(0)).garbage;
  CHECK(kinds(garbage) == Texts{"damaged_checkpoint 000000009"});
}

TEST_CASE("leftovers are garbage after a day and nothing of a running run ever is",
          "[upkeep][garbage]") {
  const TemporaryFolder folder;
  const run::RunFolder idle = make_stopped_run(folder.path(), keeping("a", 2), 4);
  make_directories(idle.checkpoints() / ".tmp-000000005-77");
  folder.write(".tmp-b-123/config.json", "{}");
  const FileLock lock = make_running_run(folder.path(), keeping("c", 0), 2);
  const run::RunFolder running(folder / "c");
  make_directories(running.checkpoints() / ".tmp-000000001-78");
  make_directories(running.checkpoints() / "000000001");
  REQUIRE(find_garbage(folder.path(), in_days(0.9)).garbage.empty());
  const auto garbage = find_garbage(folder.path(), in_days(1.1)).garbage;
  REQUIRE(kinds(garbage) == Texts{"leftover .tmp-b-123", "leftover .tmp-000000005-77"});
  REQUIRE(free_garbage(folder.path(), garbage).count == 2);
  REQUIRE(fs::exists(running.checkpoints() / ".tmp-000000001-78"));
}

TEST_CASE("a run is never garbage, whatever its name", "[upkeep][garbage][hostile]") {
  const TemporaryFolder folder;
  const std::string aside = ".tmp-" + process_digits();
  for (const std::string& name : {std::string("train_lr.tmp-2-0123456789ab"), "lr" + aside})
    make_completed_run(folder.path(), keeping(name, 2));
  folder.write("half" + aside, "");
  REQUIRE(kinds(find_garbage(folder.path(), in_days(3)).garbage) == Texts{"leftover half" + aside});
}

TEST_CASE("what a user names like a leftover is no garbage", "[upkeep][garbage]") {
  const TemporaryFolder folder;
  const run::RunFolder run = make_completed_run(folder.path(), keeping("a", 2));
  for (const fs::path& place : {folder.path(), run.path(), run.checkpoints()}) {
    make_directories(place / "plots.tmp-20261127120000");
    make_directories(place / ("plots.tmp-" + process_digits()));
    write_file_atomic(place / "notes.tmp-20261127", "");
  }
  REQUIRE(find_garbage(folder.path(), in_days(3)).garbage.empty());
}

TEST_CASE("what a run folder only links to is never garbage", "[upkeep][garbage][hostile]") {
  const TemporaryFolder folder;
  const TemporaryFolder elsewhere;
  for (const char* name : {"a", "b"}) {
    const run::RunFolder run = make_stopped_run(folder.path(), keeping(name, 2), 4);
    save(run, 1);
    fs::resize_file(run.checkpoints() / "000000001" / weights::weights_file, 3);
  }
  fs::rename(folder / "a", elsewhere / "a");
  fs::create_directory_symlink(elsewhere / "a", folder / "a");
  fs::rename(folder / "b/checkpoints", elsewhere / "checkpoints");
  fs::create_directory_symlink(elsewhere / "checkpoints", folder / "b/checkpoints");
  REQUIRE(find_garbage(folder.path(), in_days(0)).garbage.empty());
}

TEST_CASE("what a link among checkpoints or in the trash leads to is never garbage",
          "[upkeep][garbage][hostile]") {
  const TemporaryFolder folder;
  const TemporaryFolder elsewhere;
  const run::RunFolder run = make_completed_run(folder.path(), keeping("a", 1));
  for (const int64_t step : {1, 2, 3}) save(run, step);
  fs::rename(run.checkpoints() / "000000001", elsewhere / "whole");
  fs::rename(run.checkpoints() / "000000002", elsewhere / "damaged");
  fs::resize_file(elsewhere / "damaged" / weights::weights_file, 3);
  fs::create_directory_symlink(elsewhere / "whole", run.checkpoints() / "000000001");
  fs::create_directory_symlink(elsewhere / "damaged", run.checkpoints() / "000000002");
  make_completed_run(elsewhere.path(), keeping("kept", 1));
  make_directories(run::trash_folder(folder.path()));
  fs::create_directory_symlink(elsewhere.path(), run::trash_folder(folder.path()) / "removal");
  REQUIRE(find_garbage(folder.path(), in_days(60)).garbage.empty());
}

TEST_CASE("what has come into the place of garbage since it was found stays",
          "[upkeep][garbage][hostile]") {
  const TemporaryFolder folder, elsewhere;
  const run::RunFolder run = make_completed_run(folder.path(), keeping("a", 1));
  for (const int64_t step : {1, 2}) save(run, step);
  remove_runs(folder.path(), {make_completed_run(folder.path(), keeping("b", 1))}, "");
  const std::string removal = list_removals(folder.path())[0].name;
  const auto garbage = find_garbage(folder.path(), in_days(8)).garbage;
  REQUIRE(kinds(garbage) == Texts{"removed_run b", "surplus_checkpoint 000000001"});
  const auto exchange = [&](const fs::path& path) {
    fs::rename(path, path.string() + ".away");
    fs::create_directory_symlink(elsewhere.path(), path);
  };
  const auto require_kept = [&](const std::string& why) {
    const Freed freed = free_garbage(folder.path(), garbage);
    CHECK(freed.count == 0);
    for (const std::string& kept : freed.kept) {
      INFO(kept);
      CHECK(contains(kept, why));
    }
    CHECK(freed.kept.size() == 2);
    CHECK(read_file(elsewhere / "b/thesis.txt") == "work");
    CHECK(read_file(elsewhere / "000000001/thesis.txt") == "work");
  };
  elsewhere.write("b/thesis.txt", "work");
  elsewhere.write("000000001/thesis.txt", "work");
  exchange(run::trash_folder(folder.path()) / removal);
  exchange(run.checkpoints());
  require_kept("is a symbolic link, and forge keeps a folder there");
  // Nor is another folder removed in its place.
  for (const fs::path& parent : {run::trash_folder(folder.path()) / removal, run.checkpoints()}) {
    fs::remove(parent);
    make_directories(parent / "b");
    make_directories(parent / "000000001");
  }
  require_kept("something else is there by now");
}

TEST_CASE("what has been taken up since it was found stays", "[upkeep][garbage]") {
  const TemporaryFolder folder;
  const run::RunFolder run = make_completed_run(folder.path(), keeping("a", 1));
  save(run, 1);
  save(run, 2);
  const auto garbage = find_garbage(folder.path(), in_days(0)).garbage;
  REQUIRE(garbage.size() == 1);
  const auto lock = FileLock::try_acquire(run.lock_file());
  const Freed freed = free_garbage(folder.path(), garbage);
  REQUIRE(freed.count == 0);
  REQUIRE(freed.kept.size() == 1);
  REQUIRE(weights::list_checkpoints(run.checkpoints()).size() == 2);
}

TEST_CASE("a run that this user may not look into keeps no other one's garbage",
          "[upkeep][garbage]") {
  const TemporaryFolder folder;
  const run::RunFolder closed = make_completed_run(folder.path(), keeping("closed", 1));
  const run::RunFolder open = make_completed_run(folder.path(), keeping("open", 1));
  for (const run::RunFolder& run : {closed, open}) {
    save(run, 1);
    save(run, 2);
  }
  fs::permissions(folder.path(), fs::perms::all);
  fs::permissions(closed.checkpoints(), fs::perms::none);
  const std::string found = words_of_other_user([&] {
    const GarbageSearch search = find_garbage(folder.path(), in_days(0));
    return join(search.left_out, "; ") + " | " + join(kinds(search.garbage), ", ");
  });
  fs::permissions(closed.checkpoints(), fs::perms::owner_all);
  CHECK(contains(found, "closed: cannot list"));
  CHECK(contains(found, "| surplus_checkpoint 000000001"));
}

TEST_CASE("a trash that is a link is neither emptied nor filled", "[upkeep][garbage][hostile]") {
  const TemporaryFolder folder;
  const TemporaryFolder elsewhere;
  const run::RunFolder run = make_completed_run(folder.path(), keeping("a", 2));
  elsewhere.write("photos/one/run.json", "{}");
  fs::create_directory_symlink(elsewhere.path(), run::trash_folder(folder.path()));
  const auto refused = [&](const std::function<void()>& action) {
    CHECK(contains(error_of(action), ".trash' is a symbolic link, and forge keeps a folder there"));
  };
  refused([&] { find_garbage(folder.path(), in_days(8)).garbage; });
  refused([&] { remove_runs(folder.path(), {run}, ""); });
  refused([&] { list_removals(folder.path()); });
  refused([&] { undo_removal(folder.path(), "photos"); });
  REQUIRE(fs::exists(elsewhere / "photos/one/run.json"));
  REQUIRE(fs::exists(run.record_file()));
}

TEST_CASE("a checkpoint that is whole by now is not freed as a damaged one",
          "[upkeep][garbage][hostile]") {
  const TemporaryFolder folder;
  const run::RunFolder run = make_stopped_run(folder.path(), keeping("a", 2), 9);
  save(run, 9);
  const fs::path manifest = run.checkpoints() / "000000009/manifest.json";
  const std::string whole = read_file(manifest);
  write_file_atomic(manifest, "{");
  const auto garbage = find_garbage(folder.path(), in_days(0)).garbage;
  REQUIRE(kinds(garbage) == Texts{"damaged_checkpoint 000000009"});
  write_file_atomic(manifest, whole);  // the disk had failed
  const Freed freed = free_garbage(folder.path(), garbage);
  CHECK(freed.count == 0);
  REQUIRE(freed.kept.size() == 1);
  CHECK(contains(freed.kept[0], "it can be read by now, and is whole"));
  CHECK(fs::exists(manifest));
}

TEST_CASE("prepared data that an unfinished run needs stays, wherever the cache is by now",
          "[upkeep][garbage]") {
  const TemporaryFolder runs, cache;
  const std::string text = "data/text-" + std::string(32, 'a') + "/byte_level_bpe-300-v1";
  const std::string mixture = "data/mixture-" + std::string(32, 'b') + "/byte_level_bpe-300-v1";
  const std::string other = "data/text-" + std::string(32, 'c') + "/byte_level_bpe-300-v1";
  for (const std::string& folder : {text, mixture, other}) cache.write(folder + "/lock", "");
  cache.write(mixture + "/made_from.json",
              R"({"parts": {"x": {"weight": 1, "folder": ")" + text.substr(5) + "\"}}}");
  run::RunInputs inputs = small_inputs();
  inputs.train_tokens[0].path = "/the/cache/before/it/was/moved/" + text + "/train.tokens";
  new_run(runs.path(), inputs);
  GarbageOptions options = in_days(30);
  options.cache_dir = cache.path();
  const auto garbage = find_garbage(runs.path(), options).garbage;
  REQUIRE(garbage.size() == 1);
  CHECK(garbage[0].path == cache / other);
}

}  // namespace
}  // namespace forge::manage

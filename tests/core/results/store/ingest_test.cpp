#include <unistd.h>

#include "core/base/files.h"
#include "core/project/workspace_id.h"
#include "core/results/benchmark/benchmark.h"
#include "core/results/store/database.h"
#include "core/results/store/result_store.h"
#include "tests/core/results/benchmark/maker.h"
#include "tests/core/results/store/store_dump.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::store {
namespace {

using tests::TemporaryFolder;

using namespace tests;

struct BenchmarkPlace {
  TemporaryFolder folder;
  std::filesystem::path runs = folder / "runs";
  std::filesystem::path database = folder / "forge.sqlite";
  ResultStore store{database};

  BenchmarkPlace() { make_directories(runs); }
  std::filesystem::path add(benchmark::Record record) const {
    return benchmark::write_record(runs, record);
  }
  std::vector<std::string> configs(const BenchmarkFilter& filter = {}) const {
    std::vector<std::string> names;
    for (const benchmark::Record& record : store.benchmarks(filter)) names.push_back(record.config);
    return names;
  }
};

using Names = std::vector<std::string>;

TEST_CASE("measurements are taken up once and given newest first", "[store]") {
  BenchmarkPlace place;
  place.add(made_record("train_a", 20, 1000));
  place.add(made_record("train_b", 21, 2000));
  REQUIRE(place.store.sync(place.runs).benchmarks == 2);
  REQUIRE(place.store.sync(place.runs).benchmarks == 0);
  REQUIRE(place.configs() == Names{"train_b", "train_a"});
  const benchmark::Record back = place.store.benchmarks()[1];
  benchmark::Record made = made_record("train_a", 20, 1000);
  made.id = back.id;
  REQUIRE(benchmark::to_json(back) == benchmark::to_json(made));
  place.add(made_record("train_c", 19, 3000));
  REQUIRE(place.store.sync(place.runs).benchmarks == 1);
  REQUIRE(place.configs() == Names{"train_b", "train_a", "train_c"});
}

TEST_CASE("measurements are found by config and project and kind", "[store]") {
  BenchmarkPlace place;
  place.add(made_record("train_a", 20, 1000));
  benchmark::Record other = made_record("train_b", 21, 2000);
  other.project = "projects/other";
  place.add(other);
  benchmark::Record operations;
  operations.kind = benchmark::Kind::operations;
  operations.call = other.call;
  operations.operations = {{{"operation", "swiglu"}}};
  place.add(operations);
  place.store.sync(place.runs);
  REQUIRE(place.configs({{}, "projects/other", {}}) == Names{"train_b"});
  REQUIRE(place.configs({{"train_a", "train_x"}, "", {}}) == Names{"train_a"});
  REQUIRE(place.configs({{}, "", benchmark::Kind::training}).size() == 2);
  const auto of_operations = place.store.benchmarks({{}, "", benchmark::Kind::operations});
  REQUIRE(of_operations.size() == 1);
  REQUIRE(of_operations[0].operations[0].at("operation") == "swiglu");
}

TEST_CASE("measurements of another workspace are not those of this one", "[store]") {
  BenchmarkPlace place;
  for (const char* name : {"first", "second"}) {
    place.folder.write(std::string(name) + "/forge_workspace/workspace.yaml", "");
    place.folder.write(std::string(name) + "/projects/canon/meta.yaml", "");
  }
  benchmark::Record record = made_record("train_a", 20, 1000);
  record.project = "projects/canon";
  record.call.workspace = (place.folder / "first").string();
  record.call.workspace_id = project::made_workspace_id(place.folder / "first");
  const auto file = place.add(record);
  place.store.sync(place.runs);
  const auto known_in = [&](const char* name) {
    BenchmarkFilter filter;
    filter.workspace = (place.folder / name).string();
    filter.runs_dir = place.runs;
    return place.configs(filter).size();
  };
  CHECK(known_in("first") == 1);
  CHECK(known_in("second") == 0);
  std::filesystem::rename(place.folder / "first", place.folder / "moved");
  CHECK(known_in("moved") == 1);
  CHECK(known_in("second") == 1);  // this user's own, which may have been made anew
  if (::geteuid() != 0) return;    // only root can be two users
  REQUIRE(::chown(file.c_str(), 12345, 12345) == 0);
  CHECK(known_in("moved") == 1);
  CHECK(known_in("second") == 0);
}

TEST_CASE("a measurement that is gone or replaced leaves the index", "[store]") {
  BenchmarkPlace place;
  const auto first = place.add(made_record("train_a", 20, 1000));
  const auto second = place.add(made_record("train_b", 21, 2000));
  place.store.sync(place.runs);
  remove_tree(first);
  benchmark::Record changed = made_record("train_b", 21, 2500);
  changed.id = second.stem().string();
  write_file_atomic(second, benchmark::to_json(changed).dump());
  REQUIRE(place.store.sync(place.runs).benchmarks == 1);
  const auto left = place.store.benchmarks();
  REQUIRE(left.size() == 1);
  REQUIRE(left[0].tokens_per_second == 2500);
}

TEST_CASE("a damaged measurement is told and left out", "[store]") {
  BenchmarkPlace place;
  const auto file = place.add(made_record("train_a", 20, 1000));
  place.store.sync(place.runs);
  write_file_atomic(file, "{\"id\":");
  const SyncReport report = place.store.sync(place.runs);
  REQUIRE(report.warnings.size() == 1);
  REQUIRE(contains(report.warnings[0], "20261120T100000Z-train_a.json' is no benchmark"));
  REQUIRE(place.configs().empty());
}

TEST_CASE("the index of measurements is rebuilt from their files", "[store]") {
  BenchmarkPlace place;
  place.add(made_record("train_a", 20, 1000));
  place.add(made_record("train_b", 21, 2000));
  place.store.sync(place.runs);
  const std::string before = dump_store(place.database);
  REQUIRE(contains(before, "train_b"));
  REQUIRE(reindex(place.database, place.runs).benchmarks == 2);
  REQUIRE(dump_store(place.database) == before);
}

}  // namespace
}  // namespace forge::store

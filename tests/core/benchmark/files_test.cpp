#include "core/benchmark/files.h"

#include "core/base/fs.h"
#include "tests/core/benchmark/maker.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/support.h"

namespace forge::benchmark {
namespace {

using namespace tests;

TEST_CASE("a measurement is a file named by time and config and never replaced", "[benchmark]") {
  const TemporaryFolder folder;
  Record first = made_record("train_x", 21, 1000);
  Record second = first;
  REQUIRE(write_record(folder.path(), first).filename() == "20261121T100000Z-train_x.json");
  REQUIRE(write_record(folder.path(), second).filename() == "20261121T100000Z-train_x-2.json");
  REQUIRE(second.id == "20261121T100000Z-train_x-2");
  Record operations;
  operations.kind = Kind::operations;
  operations.call = first.call;
  write_record(folder.path(), operations);
  Record nested = made_record("small/train_x", 21, 1000);
  write_record(folder.path(), nested);
  std::vector<std::string> names;
  for (const auto& file : list_records(folder.path())) {
    names.push_back(file.stem().string());
    REQUIRE(read_record(file).id == names.back());
  }
  REQUIRE(names == std::vector<std::string>{"20261121T100000Z-ops",
                                            "20261121T100000Z-small-train_x",
                                            "20261121T100000Z-train_x",
                                            "20261121T100000Z-train_x-2"});
}

TEST_CASE("a file that is no measurement is refused by name", "[benchmark]") {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& text) {
    const auto file = folder.write("benchmarks/x.json", text);
    return error_of([&] { read_record(file); });
  };
  REQUIRE(contains(error("{"), "x.json' is no benchmark"));
  REQUIRE(contains(error("{}"), "'id'"));
  REQUIRE(contains(error(to_json(made_record("a", 1, 1)).dump()), "calls itself '2026-11-01-a'"));
}

TEST_CASE("without measurements there are none to list", "[benchmark]") {
  const TemporaryFolder folder;
  REQUIRE(list_records(folder.path()).empty());
  REQUIRE(list_records(folder / "nothing").empty());
  folder.write("benchmarks/.json", "{}");
  folder.write("benchmarks/notes.txt", "");
  folder.write("benchmarks/.aside.json", "{}");
  REQUIRE(list_records(folder.path()).empty());
}

}  // namespace
}  // namespace forge::benchmark

#include "core/data/corpus/text_files.h"

#include "tests/core/data/corpus/compressed.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/support.h"

namespace forge::data {
namespace {

using config::DocumentKind;
using tests::contains;

const DocumentRule records = {DocumentKind::record, "", "text"};

std::vector<std::string> names(const std::vector<std::filesystem::path>& paths) {
  std::vector<std::string> names;
  for (const auto& path : paths) names.push_back(path.filename().string());
  return names;
}

TEST_CASE("a folder gives its files of the wanted format in bytewise order, compressed or not") {
  tests::TemporaryFolder folder;
  for (const char* name : {"b.txt", "B.txt.gz", "a.txt.zst", "c.md", "d.jsonl", "e.ndjson.gz"}) {
    folder.write(name, "");
  }
  folder.write("f.txt/g.txt", "in a folder of its own");
  using Names = std::vector<std::string>;
  REQUIRE(names(list_text_files(folder.path(), {})) == Names{"B.txt.gz", "a.txt.zst", "b.txt"});
  REQUIRE(names(list_text_files(folder.path(), records)) == Names{"d.jsonl", "e.ndjson.gz"});
}

TEST_CASE("parquet is refused with what to do instead") {
  tests::TemporaryFolder folder;
  folder.write("data/train.parquet", "PAR1");
  for (const auto& path : {folder / "data", folder / "data/train.parquet"}) {
    const std::string error = tests::error_of([&] { list_text_files(path, records); });
    INFO(error);
    REQUIRE(contains(error, "is parquet, which forge does not read"));
    REQUIRE(contains(error, "pandas.read_parquet"));
  }
}

TEST_CASE("positions and counts of bytes belong to one another") {
  tests::TemporaryFolder folder;
  folder.write("a.txt", "abc");
  folder.write("b.txt", "");
  folder.write("c.txt.gz", tests::gzipped("defgh"));
  const TextFiles files = find_text_files(folder.path(), {});
  REQUIRE(files.sizes == std::vector<int64_t>{3, 0, 5});
  REQUIRE(files.bytes() == 8);
  for (int64_t bytes = 0; bytes <= 8; ++bytes) {
    REQUIRE(files.bytes_before(files.position_at(bytes)) == bytes);
  }
  REQUIRE(files.position_at(3) == TextPosition{2, 0});
  REQUIRE(files.position_at(8) == files.end());
}

}  // namespace
}  // namespace forge::data

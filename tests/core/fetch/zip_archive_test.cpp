#include "core/fetch/zip_archive.h"

#include "core/base/fs.h"
#include "tests/core/fetch/zipped.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/support.h"

namespace forge::fetch {
namespace {

using tests::contains;

TEST_CASE("a file of a zip archive is written whole") {
  tests::TemporaryFolder folder;
  std::string large;
  while (large.size() < 3000000) large += "line " + std::to_string(large.size()) + "\n";
  const auto archive =
      folder.write("a.zip", tests::zipped({{"in/a.txt", large}, {"in/b.txt", ""}, {"c", "sea"}}));
  extract(archive, "in/a.txt", folder / "a.txt");
  extract(archive, "in/b.txt", folder / "b.txt");
  extract(archive, "c", folder / "c.txt");
  REQUIRE(read_file(folder / "a.txt") == large);
  REQUIRE(read_file(folder / "b.txt") == "");
  REQUIRE(read_file(folder / "c.txt") == "sea");
  REQUIRE(
      contains(tests::error_of([&] { extract(archive, "d", folder / "d"); }), "holds no file 'd'"));
}

TEST_CASE("a damaged archive is refused wherever the damage is") {
  tests::TemporaryFolder folder;
  const std::string whole = tests::zipped({{"a.txt", "some text some text some text"}});
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto archive = folder.write("cut.zip", whole.substr(0, size));
    REQUIRE(tests::error_of([&] { extract(archive, "a.txt", folder / "a.txt"); }) != "");
    REQUIRE_FALSE(fs::exists(folder / "a.txt"));
  }
  std::string changed = whole;
  changed[30 + 5 + 3] = static_cast<char>(changed[30 + 5 + 3] ^ 1);  // within the content
  const auto archive = folder.write("changed.zip", changed);
  REQUIRE(contains(tests::error_of([&] { extract(archive, "a.txt", folder / "a.txt"); }),
                   "is not a whole zip archive"));
}

}  // namespace
}  // namespace forge::fetch

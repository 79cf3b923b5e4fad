#include "core/store/location.h"

#include <cstdlib>

#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::store {
namespace {

TEST_CASE("file systems of other machines are told from local ones", "[store]") {
  for (const int64_t remote : {0x6969, 0x65735546, 0x0BD00BD0, 0x01021997}) {
    REQUIRE(is_remote_file_system(remote));
  }
  REQUIRE(is_remote_file_system(int64_t{0xFF534D42}));
  REQUIRE(is_remote_file_system(static_cast<int32_t>(0xFF534D42)));  // sign extended
  for (const int64_t local : {0xEF53 /* ext4 */,
                              0x01021994 /* tmpfs */,
                              0x58465342 /* XFS */,
                              0x794C7630 /* overlayfs */}) {
    REQUIRE_FALSE(is_remote_file_system(local));
  }
}

TEST_CASE("the store lies in the runs folder or under a name of its own in the cache", "[store]") {
  tests::TemporaryFolder folder;
  const auto path = store_path(folder / "runs");
  const bool expected =
      path == folder / "runs" / "forge.sqlite" || path == cached_store_path(folder / "runs");
  REQUIRE(expected);
  REQUIRE(cached_store_path(folder / "a") != cached_store_path(folder / "b"));
  REQUIRE(cached_store_path(folder / "a") == cached_store_path(folder / "b" / ".." / "a"));
  REQUIRE(cached_store_path(folder / "a").extension() == ".sqlite");
}

}  // namespace
}  // namespace forge::store

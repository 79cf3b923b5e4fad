#include "core/base/hash.h"

#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge {
namespace {

TEST_CASE("the hash is XXH3-128 in canonical order, however the bytes arrive") {
  REQUIRE(hash_hex("") == "99aa06d3014798d86001c324468d497f");
  Hasher parts;
  parts.update("canon ");
  parts.update("layers");
  REQUIRE(parts.hex() == hash_hex("canon layers"));
  const tests::TemporaryFolder folder;
  REQUIRE(hash_file(folder.write("f", "canon layers")) == hash_hex("canon layers"));
}

}  // namespace
}  // namespace forge

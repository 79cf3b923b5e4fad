#if FORGE_CATCH2_MAJOR >= 3
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#include <cstdlib>

#include "tests/support/support.h"

int main(int argument_count, char** arguments) {
  // What is tested keeps nothing in the cache of whoever runs the tests.
  const forge::tests::TemporaryFolder cache;
  ::setenv("XDG_CACHE_HOME", cache.path().c_str(), 1);
  return Catch::Session().run(argument_count, arguments);
}

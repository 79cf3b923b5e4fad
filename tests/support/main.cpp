#if FORGE_CATCH2_MAJOR >= 3
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

int main(int argument_count, char** arguments) {
  return Catch::Session().run(argument_count, arguments);
}

#include "core/base/threads.h"

#include <sys/resource.h>

#include "core/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/other_user.h"

namespace forge {
namespace {

using tests::contains;

TEST_CASE("threads that can be started are") {
  require_threads(0);
  require_threads(20);
  bool is_done = false;
  start_thread([&] { is_done = true; }).join();
  REQUIRE(is_done);
}

TEST_CASE("threads that this user may not start are told of at once") {
  const auto refused = [](const std::function<void()>& action) {
    return tests::words_of_other_user([&] {
      const struct rlimit none = {1, 1};  // this process alone
      ::setrlimit(RLIMIT_NPROC, &none);
      action();
      return std::string();
    });
  };
  REQUIRE(contains(refused([] { require_threads(9); }), "cannot start 9 threads: "));
  REQUIRE(contains(refused([] { start_thread([] {}).join(); }), "hint: this user, container"));
}

}  // namespace
}  // namespace forge

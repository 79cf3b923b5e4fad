#include "core/run/queue/keeper.h"

#include <unistd.h>

#include <future>
#include <string>
#include <thread>

#include "core/base/files.h"
#include "core/run/host.h"
#include "core/run/queue/dispatch.h"
#include "core/run/queue/place.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::queue {
namespace {

constexpr double soon = 0.01;  // seconds between two looks

TEST_CASE("a queue that cannot be read for a while is kept", "[run][dispatch][hostile]") {
  const tests::TemporaryFolder runs;
  const std::filesystem::path queue = runs / ".queue";
  make_directories(queue / "lock");  // where a file should be: no dispatch
  auto kept = std::async(std::launch::async, [&] { keep_queue(runs.path(), "/bin/false", soon); });
  const std::filesystem::path keeper =
      keeper_file(runs.path(), own_place(), worker::own_settings());
  while (!FileLock::is_held(keeper)) std::this_thread::yield();
  REQUIRE_THROWS(dispatch(runs.path(), "/bin/false", IfLocked::skip));
  std::filesystem::remove(queue / "lock");
  CHECK_NOTHROW(kept.get());  // nothing waits in it
}

TEST_CASE("nobody keeps the queue of a folder that is gone", "[run][dispatch]") {
  const tests::TemporaryFolder folder;
  CHECK_THROWS(keep_queue(folder / "gone", "/bin/false", soon));
}

}  // namespace
}  // namespace forge::queue

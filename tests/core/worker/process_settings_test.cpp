#include "core/worker/process_settings.h"

#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::worker {
namespace {

TEST_CASE("settings are written and read as they are, but for their folder", "[worker]") {
  ProcessSettings own = own_settings();
  CHECK(own.cores.size() >= 1);
  CHECK(own.folder == std::filesystem::current_path());
  const std::optional<ProcessSettings> read = settings_from_text(to_text(own));
  own.folder.clear();
  REQUIRE(read);
  CHECK(*read == own);
}

TEST_CASE("damaged settings are none", "[worker][hostile]") {
  for (const char* text : {"", "{}", "[1]", R"({"umask": "a"})", R"({"umask": 18, "nice": 0})"})
    CHECK_FALSE(settings_from_text(text));
  ProcessSettings own = own_settings();
  own.cores = {1 << 20};
  CHECK_FALSE(settings_from_text(to_text(own)));
}

TEST_CASE("a process may start others with its own settings, and not with a group that it lacks",
          "[worker]") {
  ProcessSettings settings = own_settings();
  CHECK(may_start_with(settings, ::getpid()));
  CHECK(may_start_with(settings, ::getppid()));
  settings.groups.push_back(4242424);
  CHECK_FALSE(may_start_with(settings, ::getpid()));
}

TEST_CASE("where a folder is gone a process starts in the root", "[worker]") {
  const tests::TemporaryFolder folder;
  CHECK(folder_to_start_in(folder.path()) == folder.path());
  CHECK(folder_to_start_in(folder / "gone") == "/");
  CHECK(folder_to_start_in("") == "/");
}

}  // namespace
}  // namespace forge::worker

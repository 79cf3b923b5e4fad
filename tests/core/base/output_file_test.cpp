#include "core/base/output_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "core/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/support.h"

namespace forge {
namespace {

size_t entries_of(const fs::path& folder) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST_CASE("an output file is new or replaced as a whole", "[fs]") {
  const tests::TemporaryFolder folder;
  const fs::path path = folder / "out.csv";
  write_output_file(path, "one");
  REQUIRE(read_file(path) == "one");
  OutputFile file(path);
  file.write("tw");
  REQUIRE(read_file(path) == "one");
  file.write("o");
  file.finish();
  REQUIRE(read_file(path) == "two");
  REQUIRE(entries_of(folder.path()) == 1);
}

TEST_CASE("an output file that is not finished stays as it was", "[fs]") {
  const tests::TemporaryFolder folder;
  const fs::path path = folder.write("out.csv", "old");
  OutputFile(path).write("new");
  OutputFile(folder / "other").write("new");
  REQUIRE(read_file(path) == "old");
  REQUIRE(entries_of(folder.path()) == 1);
}

TEST_CASE("a link is written through and never replaced", "[fs]") {
  const tests::TemporaryFolder folder;
  const fs::path target = folder.write("target", "a longer text");
  fs::create_symlink(target, folder / "link");
  write_output_file(folder / "link", "text");
  REQUIRE(fs::is_symlink(folder / "link"));
  REQUIRE(read_file(target) == "text");
  REQUIRE(entries_of(folder.path()) == 2);
}

TEST_CASE("a pipe takes the text and stays a pipe", "[fs]") {
  const tests::TemporaryFolder folder;
  const fs::path path = folder / "pipe";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  std::string received;
  std::thread reader([&] { received = read_file(path); });
  write_output_file(path, "text");
  reader.join();
  REQUIRE(received == "text");
  REQUIRE(fs::is_fifo(path));
}

TEST_CASE("a device is not replaced", "[fs]") {
  // The link /dev/stdout and the like are links; this one is a device.
  const auto device = fs::status("/dev/null").type();
  write_output_file("/dev/null", "text");
  REQUIRE(device == fs::file_type::character);
  REQUIRE(fs::status("/dev/null").type() == device);
}

TEST_CASE("what cannot be written is named", "[fs]") {
  const tests::TemporaryFolder folder;
  const std::string error =
      tests::error_of([&] { write_output_file(folder / "missing/out", "text"); });
  REQUIRE(tests::contains(error, "missing/out': No such file or directory"));
  REQUIRE_FALSE(tests::contains(error, ".tmp-"));
  REQUIRE(tests::contains(tests::error_of([&] { write_output_file(folder.path(), "text"); }),
                          "Is a directory"));
}

}  // namespace
}  // namespace forge

#include "core/base/tail.h"

#include "core/base/files.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::run {
namespace {

using tests::TemporaryFolder;
using Lines = std::vector<std::string>;

TEST_CASE("the last whole line is found from the end", "[run][tail]") {
  const TemporaryFolder folder;
  const auto last_of = [&](const std::string& text) { return last_line(folder.write("f", text)); };
  REQUIRE(last_line(folder / "missing").empty());
  REQUIRE(last_of("").empty());
  REQUIRE(last_of("torn").empty());
  REQUIRE(last_of("one\n") == "one");
  REQUIRE(last_of("one\ntwo\n") == "two");
  REQUIRE(last_of("one\ntwo\ntorn") == "two");
  REQUIRE(last_of("one\n\n").empty());
}

TEST_CASE("the last line may be longer than a block", "[run][tail]") {
  const TemporaryFolder folder;
  for (const size_t size : {4094u, 4095u, 4096u, 4097u, 65536u, 300000u}) {
    const std::string line(size, 'x');
    REQUIRE(last_line(folder.write("f", line + "\n")) == line);
    REQUIRE(last_line(folder.write("f", "before\n" + line + "\n")) == line);
    REQUIRE(last_line(folder.write("f", "before\n" + line)) == "before");
  }
}

TEST_CASE("the last lines of a log are cut in number and length", "[run][tail]") {
  const TemporaryFolder folder;
  const auto file = folder.write("log", "a\nb\n\nlonger\nend");
  REQUIRE(last_lines(folder / "missing", 0, 3, 9).empty());
  REQUIRE(last_lines(file, 0, 9, 9) == Lines{"a", "b", "", "longer", "end"});
  REQUIRE(last_lines(file, 0, 2, 4) == Lines{"long", "end"});
  REQUIRE(last_lines(file, 2, 9, 9) == Lines{"b", "", "longer", "end"});
  REQUIRE(last_lines(file, 999, 9, 9).empty());
  const auto large = folder.write("large", std::string(100'000, 'x') + "\nend\n");
  REQUIRE(last_lines(large, 0, 9, 9) == Lines{"end"});
}

TEST_CASE("no more of a file is looked at for its last line than a line may have",
          "[run][tail][hostile]") {
  const TemporaryFolder folder;
  const auto file = folder.write("f", "one\n");
  std::filesystem::resize_file(file, uintmax_t{1} << 40);  // sparse
  REQUIRE(last_line(file).size() == size_t{4} << 20);
}

}  // namespace
}  // namespace forge::run

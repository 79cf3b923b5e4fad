#include "app/terminal.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <set>
#include <sstream>
#include <thread>

#include "core/base/text.h"
#include "tests/support/catch.h"

namespace forge::app {
namespace {

/// What is printed to stderr in the lifetime of this object, as if it were a file.
class PrintedErrors {
 public:
  PrintedErrors() {
    ::setenv("TERM", "dumb", 1);
    before_ = std::cerr.rdbuf(text_.rdbuf());
  }
  ~PrintedErrors() { std::cerr.rdbuf(before_); }
  PrintedErrors(const PrintedErrors&) = delete;
  PrintedErrors& operator=(const PrintedErrors&) = delete;
  std::vector<std::string> lines() const { return split(trimmed(text_.str()), '\n'); }
  std::string text() const { return text_.str(); }

 private:
  static std::string trimmed(const std::string& text) { return std::string(trim(text)); }
  std::ostringstream text_;
  std::streambuf* before_;
};

TEST_CASE("a line is printed once, however many threads print it", "[terminal]") {
  const PrintedErrors printed;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([] {
      for (int line = 0; line < 200; ++line) print_once("line " + std::to_string(line));
      print_new_warnings({"little space"});
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<std::string> lines = printed.lines();
  REQUIRE(lines.size() == 201);
  REQUIRE(std::set<std::string>(lines.begin(), lines.end()).size() == 201);
  REQUIRE(std::count(lines.begin(), lines.end(), "warning: little space") == 1);
}

TEST_CASE("a late progress says nothing of work that is soon over", "[terminal]") {
  const PrintedErrors printed;
  double now = 100;
  LateProgress progress("reading runs", LateProgress::Counts::things, [&] { return now; });
  for (size_t done = 0; done <= 1000; ++done) {
    now += 0.0019;
    progress(done, 1000);
  }
  REQUIRE(printed.text().empty());
}

TEST_CASE("a late progress says after two seconds how far the work is, a line for each tenth",
          "[terminal]") {
  const PrintedErrors printed;
  double now = 100;
  LateProgress progress("reading runs", LateProgress::Counts::things, [&] { return now; });
  for (size_t done = 0; done < 5000; ++done) progress(done, 10000);
  now += 2;
  for (size_t done = 5000; done <= 10000; ++done) progress(done, 10000);
  const std::vector<std::string> lines = printed.lines();
  REQUIRE(lines.size() == 6);
  REQUIRE(lines.front() == "reading runs  50%  5,000 of 10,000");
  REQUIRE(lines.back() == "reading runs  100%  10,000 of 10,000");
}

TEST_CASE("a late progress counts each part of the work from its beginning", "[terminal]") {
  const PrintedErrors printed;
  double now = 0;
  LateProgress progress("importing", LateProgress::Counts::bytes, [&] { return now; });
  now = 3;
  progress(3 << 20, 3 << 20);
  progress(1 << 20, 2 << 20);
  progress(0, 0);  // nothing to do
  const std::vector<std::string> lines = printed.lines();
  REQUIRE(lines.size() == 2);
  REQUIRE(lines[1] == "importing  50%  1.00 MiB of 2.00 MiB");
}

}  // namespace
}  // namespace forge::app

#include "core/report/figures.h"

#include <cmath>
#include <limits>

#include "tests/support/catch.h"

namespace forge::report {
namespace {

TEST_CASE("losses have four decimals", "[report]") {
  REQUIRE(loss_text(1.30109) == "1.3011");
  REQUIRE(loss_text(12) == "12.0000");
  REQUIRE(loss_text(std::nan("")) == "nan");
  REQUIRE(loss_text(std::numeric_limits<double>::infinity()) == "inf");
}

TEST_CASE("a score is a percentage or has four decimals", "[report]") {
  REQUIRE(score_text(0.87549, true) == "87.5 %");
  REQUIRE(score_text(1, true) == "100.0 %");
  REQUIRE(score_text(1.30109, false) == "1.3011");
  REQUIRE(score_text(std::nan(""), true) == "nan");
}

TEST_CASE("throughput keeps three digits or four", "[report]") {
  REQUIRE(throughput_text(87.6) == "88");
  REQUIRE(throughput_text(4311.6) == "4,312");
  REQUIRE(throughput_text(9999.4) == "9,999");
  REQUIRE(throughput_text(9999.6) == "10.0K");
  REQUIRE(throughput_text(43111) == "43.1K");
  REQUIRE(throughput_text(99960) == "100K");
  REQUIRE(throughput_text(291000) == "291K");
  REQUIRE(throughput_text(999600) == "1.00M");
  REQUIRE(throughput_text(3310000) == "3.31M");
  REQUIRE(throughput_text(std::nan("")) == "nan");
  REQUIRE(throughput_text(1e308).size() > 300);
}

TEST_CASE("memory is given in binary units", "[report]") {
  REQUIRE(memory_text(1.5 * (1 << 30)) == "1.50 GiB");
  REQUIRE(memory_text(512.0 * (1 << 20)) == "512.00 MiB");
}

TEST_CASE("changes are signed percentages", "[report]") {
  REQUIRE(change_text(0.4133) == "+41.3 %");
  REQUIRE(change_text(-0.093) == "\u22129.3 %");
  REQUIRE(change_text(0) == "+0.0 %");
  REQUIRE(change_text(-0.0001) == "+0.0 %");
}

}  // namespace
}  // namespace forge::report

#include "core/run/halving_runs.h"
#include "core/run/event_log.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::run {
namespace {

using tests::error_of;
using tests::TemporaryFolder;

const std::vector<int64_t> test_rungs = {10, 30, 90};

std::string evaluation_line(int64_t step, double loss) {
  return R"({"time":1,"attempt":1,"event":"evaluation","step":)" + std::to_string(step) +
         R"(,"loss":)" + std::to_string(loss) +
         R"(,"tokens":1,"seconds":1,"scores":{"accuracy":{"value":0.5,"count":4}}})" + "\n";
}

std::string attempt_line(int64_t stop_after) {
  return R"({"time":1,"attempt":1,"event":"attempt")" +
         (stop_after > 0 ? R"(,"stop_after":)" + std::to_string(stop_after) : "") + "}\n";
}

Contestant contestant_of(const std::string& events, const HalvingRule& rule = {}) {
  const TemporaryFolder folder;
  const RunFolder run = tests::new_run(folder.path());
  write_file_atomic(run.events_file(), events);
  return read_contestant(run, rule, test_rungs);
}

TEST_CASE("a run that has not begun was sent nowhere", "[run][halving]") {
  REQUIRE(contestant_of("").aim == -1);
  REQUIRE(contestant_of("").losses.empty());
}

TEST_CASE("a run is where its attempts sent it and its evaluations are", "[run][halving]") {
  const Contestant under_way = contestant_of(attempt_line(10) + evaluation_line(5, 9));
  REQUIRE(under_way.aim == 0);
  REQUIRE(!under_way.has_arrived());
  const Contestant first = contestant_of(attempt_line(10) + evaluation_line(10, 8));
  REQUIRE(first.aim == 0);
  REQUIRE(first.has_arrived());
  REQUIRE(first.losses == std::vector<double>{8});
  const Contestant promoted =
      contestant_of(attempt_line(10) + evaluation_line(10, 8) + attempt_line(30));
  REQUIRE(promoted.aim == 1);
  REQUIRE(!promoted.has_arrived());
  const Contestant last =
      contestant_of(attempt_line(90) + evaluation_line(10, 8) + evaluation_line(30, 7));
  REQUIRE(last.aim == 2);
  REQUIRE(!last.has_arrived());
}

TEST_CASE("a run that another search stopped is promoted in none of this one's rungs",
          "[run][halving]") {
  const std::string first = attempt_line(20) + evaluation_line(10, 8);
  const Contestant behind_one = contestant_of(first + evaluation_line(20, 7));
  CHECK(behind_one.aim == 0);
  CHECK(behind_one.losses == std::vector<double>{8});
  // Interrupted on its way to that one's rung.
  CHECK(contestant_of(first).has_arrived());
  CHECK(contestant_of(attempt_line(20)).aim == -1);
  const Contestant behind_two = contestant_of(attempt_line(40) + evaluation_line(10, 8) +
                                              evaluation_line(30, 7) + evaluation_line(40, 6));
  CHECK(behind_two.aim == 1);
  CHECK(behind_two.has_arrived());
  const Contestant of_both = contestant_of(first + attempt_line(30) + evaluation_line(20, 7));
  CHECK(of_both.aim == 1);
  CHECK_FALSE(of_both.has_arrived());
}

TEST_CASE("an evaluation behind the step that a run was sent to does not count", "[run][halving]") {
  const Contestant quick =
      contestant_of(attempt_line(10) + evaluation_line(10, 8) + evaluation_line(30, 7));
  REQUIRE(quick.aim == 0);
  REQUIRE(quick.losses == std::vector<double>{8});
  // It counts once the run is sent there, and the later attempt's once that is made.
  const std::string again = attempt_line(30) + evaluation_line(30, 6);
  REQUIRE(contestant_of(attempt_line(10) + evaluation_line(10, 8) + evaluation_line(30, 7) + again)
              .losses == std::vector<double>{8, 6});
}

TEST_CASE("a run that was completed before it could be stopped counts to its end",
          "[run][halving]") {
  const Contestant whole = contestant_of(
      attempt_line(10) + evaluation_line(10, 8) + evaluation_line(30, 7) + evaluation_line(90, 6) +
      R"({"time":1,"attempt":1,"event":"finished","completed":true,"step":90,"eval_loss":6,)"
      R"("train_loss":6,"tokens_per_second":5,"wall_seconds":1,"peak_memory_bytes":1,)"
      R"("peak_resident_bytes":1,"parameters":1})" +
      "\n");
  REQUIRE(whole.aim == 2);
  REQUIRE(whole.losses == std::vector<double>{8, 7, 6});
}

TEST_CASE("a run of another command counts as far as it came", "[run][halving]") {
  const Contestant whole = contestant_of(attempt_line(0) + evaluation_line(10, 8) +
                                         evaluation_line(30, 7) + evaluation_line(90, 6));
  REQUIRE(whole.aim == 2);
  REQUIRE(whole.losses == std::vector<double>{8, 7, 6});
  const Contestant stopped =
      contestant_of(attempt_line(0) + evaluation_line(10, 8) + evaluation_line(30, 7));
  REQUIRE(stopped.aim == 1);
  REQUIRE(stopped.has_arrived());
}

TEST_CASE("a search may compare the loss on the validation rows", "[run][halving]") {
  HalvingRule rule;
  rule.by = "validation_loss";
  std::string evaluation = evaluation_line(10, 8);
  const std::string error = error_of([&] { contestant_of(attempt_line(10) + evaluation, rule); });
  REQUIRE(error.find("halving compares validation_loss, and the evaluation of run '") !=
          std::string::npos);
  REQUIRE(error.find("at step 10 has none") != std::string::npos);
  evaluation.insert(evaluation.find(",\"tokens\""), ",\"validation_loss\":7.5");
  REQUIRE(contestant_of(attempt_line(10) + evaluation, rule).losses == std::vector<double>{7.5});
}

TEST_CASE("a search may compare a score, the higher the better", "[run][halving]") {
  HalvingRule rule;
  rule.by = "accuracy";
  rule.take_highest = true;
  REQUIRE(contestant_of(attempt_line(10) + evaluation_line(10, 8), rule).losses ==
          std::vector<double>{-0.5});
  rule.by = "acuracy";
  const std::string error =
      error_of([&] { contestant_of(attempt_line(10) + evaluation_line(10, 8), rule); });
  REQUIRE(error.find("halving compares acuracy") != std::string::npos);
  REQUIRE(error.find("did you mean 'accuracy'") != std::string::npos);
}

}  // namespace
}  // namespace forge::run

#include "core/report/machine_formats.h"

#include <cmath>

#include "core/base/text.h"
#include "tests/core/report/lab.h"
#include "tests/support/catch.h"

namespace forge::report {
namespace {

using namespace tests;

TEST_CASE("JSON gives figures in full and null for what is not there", "[report]") {
  const MixedLab lab;
  const auto json = to_json(build_ablation(small_table(), lab.read(), {"", small_published()}));
  REQUIRE(json["table"] == "small");
  REQUIRE(json["profile"] == "quick");
  REQUIRE(json["setup"]["Seed"] == "42");
  const auto& llama = json["rows"][0];
  REQUIRE(llama["config"] == "llama");
  REQUIRE(llama["status"] == "completed");
  REQUIRE(llama["run_id"] == "llama-20");
  REQUIRE(llama["eval_loss"] == 3.25);
  REQUIRE(llama["peak_memory_bytes"] == int64_t{3} << 29);
  REQUIRE(llama["throughput_change"].is_null());
  REQUIRE(llama["published"]["eval_loss"] == 1.3011);
  const auto& failed = json["rows"][1];
  REQUIRE(failed["status"] == "failed");
  REQUIRE(failed["failure_reason"] == "worker killed by SIGKILL");
  REQUIRE(failed["progress_percent"] == 66);
  REQUIRE(failed["eval_loss"].is_null());
  const auto& missing = json["rows"][2];
  REQUIRE(missing["status"] == "missing");
  REQUIRE(missing["command"] == "forge run canon_b --set profile=quick");
  REQUIRE(missing["published"].is_null());
  REQUIRE(json["left_out"][0]["config"] == "canon_b");
  REQUIRE(json["left_out"][0]["runs"] == 1);
}

TEST_CASE("a loss that is no number is said so by machines too", "[report]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 20), {std::nan(""), 4000, 1000});
  REQUIRE(to_json(lab.table())["rows"][0]["eval_loss"] == "nan");
}

TEST_CASE("CSV has a header and a line a row with every field in its place", "[report]") {
  MixedLab lab;
  TableSpec table = small_table();
  table.rows[0].name = "Llama, \"4M\"";
  const std::string csv = to_csv(build_ablation(table, lab.read(), {"", small_published()}));
  const std::vector<std::string> lines = split(csv, '\n');
  REQUIRE(lines.size() == 5);
  REQUIRE(lines[0] ==
          "config,name,positions,status,run_id,eval_loss,train_loss,tokens_per_second,"
          "peak_memory_bytes,peak_resident_bytes,wall_seconds,parameters,throughput_change,"
          "memory_change,micro_batch_size,disturbance,seeds,eval_loss_sd,eval_loss_low,"
          "eval_loss_high,eval_loss_p,eval_loss_standing,tokens_per_second_sd,tokens_per_second_"
          "low,tokens_per_second_high,"
          "tokens_per_second_p,tokens_per_second_standing,breaks,published_eval_loss,published_"
          "tokens_per_second,"
          "published_peak_memory_gib\r");
  REQUIRE(lines[1] ==
          "llama,\"Llama, \"\"4M\"\"\",,completed,llama-20,3.25,3.5,4300.0,1610612736,1820327936,"
          "75.0,4434176,,,,,1,,,,,baseline,,,,,baseline,,1.3011,291000.0,1.5\r");
  REQUIRE(lines[2] ==
          "canon_a,Canon-A,A,failed,canon_a-20,,,,,,,,,,,,0,,,,,,,,,,,,1.2643,316000.0,1.56\r");
  REQUIRE(lines[3] == "canon_b,Canon-B,B,missing,,,,,,,,,,,,,0,,,,,,,,,,,,,,\r");
  REQUIRE(lines[4].empty());
}

}  // namespace
}  // namespace forge::report

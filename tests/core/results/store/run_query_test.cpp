#include <cmath>

#include "core/results/store/result_store.h"

#include "core/config/experiment.h"
#include "tests/support/catch.h"
#include "tests/support/fake_runs.h"
#include "tests/support/support.h"

namespace forge::store {
namespace {

using tests::error_of;
using Texts = std::vector<std::string>;

std::vector<RunSummary> some_runs() {
  std::vector<RunSummary> runs(4);
  const char* ids[] = {"train_llama-a1", "train_llama-b2", "train_nope-c3", "copy_x-d4"};
  const char* configs[] = {"train_llama", "train_llama", "train_nope", "copy/x"};
  const std::optional<double> losses[] = {0.5, 0.25, std::nullopt, 0.5};
  for (size_t i = 0; i < 4; ++i) {
    runs[i].id = ids[i];
    runs[i].config = configs[i];
    runs[i].seed = int64_t(i % 2);
    if (losses[i]) runs[i].metrics["eval_loss"] = *losses[i];
    runs[i].status = losses[i] ? run::RunState::completed : run::RunState::failed;
  }
  return runs;
}

Texts selected(const RunQuery& query) {
  Texts ids;
  for (const RunSummary& run : select(some_runs(), query))
    ids.push_back(run.id.substr(run.id.size() - 2));
  return ids;
}

TEST_CASE("runs are chosen by pattern or beginning of id or config", "[store][query]") {
  REQUIRE(selected({}) == Texts{"a1", "b2", "c3", "d4"});
  REQUIRE(selected({{"train_llama"}, {}, {}, 0}) == Texts{"a1", "b2"});
  REQUIRE(selected({{"*nope", "copy/*"}, {}, {}, 0}) == Texts{"c3", "d4"});
  REQUIRE(selected({{"train_llama-b"}, {}, {}, 0}) == Texts{"b2"});
  REQUIRE(selected({{"zzz"}, {}, {}, 0}).empty());
}

TEST_CASE("conditions compare columns and a missing value meets none", "[store][query]") {
  const auto where = [](const Texts& conditions) { return selected({{}, conditions, {}, 0}); };
  REQUIRE(where({"eval_loss<0.5"}) == Texts{"b2"});
  REQUIRE(where({"eval_loss<=0.5", "seed=0"}) == Texts{"a1"});
  REQUIRE(where({"eval_loss>0.25"}) == Texts{"a1", "d4"});
  REQUIRE(where({"eval_loss>=0.25"}) == Texts{"a1", "b2", "d4"});
  REQUIRE(where({"eval_loss!=0.5"}) == Texts{"b2"});
  REQUIRE(where({"status=failed"}) == Texts{"c3"});
  REQUIRE(where({"status!=failed", "config==copy/x"}) == Texts{"d4"});
  REQUIRE(where({"eval_loss<.5"}) == Texts{"b2"});
}

TEST_CASE("a value that a column cannot have is refused", "[store][query]") {
  const auto error = [](const std::string& condition) {
    return error_of([&] { select(some_runs(), {{}, {condition}, {}, 0}); });
  };
  CHECK(error("eval_loss<high") == "error: 'eval_loss' is a number, not 'high'");
  CHECK(error("eval_loss<7,97") == "error: 'eval_loss' is a number, not '7,97'");
  // Compared with these, no value would be less or more: all would be equal.
  for (const char* nan : {"nan", "NaN", "-nan", "nan(1)"}) {
    CHECK(error("eval_loss=" + std::string(nan)) ==
          "error: 'eval_loss' is a number, not '" + std::string(nan) + "'");
    CHECK(error("seed>=" + std::string(nan)).find("is a number") != std::string::npos);
  }
  CHECK(error("seed=forty") == "error: 'seed' is a number, not 'forty'");
  CHECK(error("seed=010").find("'010' is 8 in YAML") != std::string::npos);
  CHECK(error("seed=1:30") == "error: 'seed' is a number, not '1:30'");
  CHECK(error("status!=complete").find("'completed'") != std::string::npos);
  CHECK(error("created<yesterday").find("a time in UTC such as") != std::string::npos);
}

TEST_CASE("times are compared as far as they are written, and what is no time is refused",
          "[store][query][hostile]") {
  std::vector<RunSummary> runs = some_runs();
  runs[0].begun = "2026-09-30T23:59:59.500Z";
  runs[1].begun = "2026-11-28T20:16:06.123Z";
  runs[2].begun = "2026-11-28T23:30:00.000Z";  // the last one has not begun
  const auto with = [&](const std::string& condition) {
    Texts ids;
    for (const RunSummary& run : select(runs, {{}, {condition}, {}, 0}))
      ids.push_back(run.id.substr(run.id.size() - 2));
    return ids;
  };
  CHECK(with("begun<2026-11-01") == Texts{"a1"});
  CHECK(with("begun>2026-11-28 23:00") == Texts{"c3"});
  CHECK(with("begun>2026-11-28T23:00:00Z") == Texts{"c3"});
  CHECK(with("begun=2026-11-28") == Texts{"b2", "c3"});
  CHECK(with("begun!=2026-11-28") == Texts{"a1"});
  CHECK(with("begun<=2026-11-28") == Texts{"a1", "b2", "c3"});  // to the end of that day
  CHECK(with("begun<=2026-11-28T20") == Texts{"a1", "b2"});
  CHECK(with("begun<=2026-10") == Texts{"a1"});
  CHECK(with("begun>2026-11-28").empty());
  CHECK(with("begun>2026-10") == Texts{"b2", "c3"});
  CHECK(with("begun>=2026-11-28") == Texts{"b2", "c3"});
  CHECK(with("begun<2026-11-28") == Texts{"a1"});
  CHECK(with("begun=null") == Texts{"d4"});
  CHECK(with("begun!=null") == Texts{"a1", "b2", "c3"});
  runs[1].first_loss = runs[1].imported = "2026-11-28T20:16:06.123Z";
  CHECK(with("first_loss=2026-11-28") == Texts{"b2"});
  CHECK(with("imported=null") == Texts{"a1", "c3", "d4"});
  CHECK(with("imported>2026-11-27") == Texts{"b2"});
  CHECK(with("begun=2026-09-30T23:59:59.500Z") == Texts{"a1"});
  CHECK(with("begun<2027").size() == 3);
  for (const char* value : {"2026/11/01",
                            "20261101",
                            "2026-9-1",
                            "2026-1",
                            "2026-13-01",
                            "2026-11-32",
                            "2026-02-30",
                            "2026-11-28T21:00+03:00",
                            "2026-11-28T25:00",
                            "2026-11-28 23:30:00.",
                            "yesterday",
                            ""})
    CHECK(error_of([&] { with("begun<" + std::string(value)); }).find("a time in UTC such as") !=
          std::string::npos);
}

TEST_CASE("ids, configs and hashes are named in conditions as commands and tables name them",
          "[store][query]") {
  std::vector<RunSummary> runs = some_runs();
  for (RunSummary& run : runs) run.data_fingerprint = "8ce9af92ba96" + run.id;
  const auto count = [&](const std::string& condition) {
    return select(runs, {{}, {condition}, {}, 0}).size();
  };
  CHECK(count("id=train_llama-a") == 1);
  CHECK(count("id!=train_llama-a") == 3);
  CHECK(count("id!=*nope*") == 3);
  CHECK(count("config!=train_*") == 1);
  CHECK(count("config=train") == 0);  // a whole name, or a pattern
  CHECK(count("data_fingerprint=8ce9af92ba96") == 4);
  CHECK(count("data_fingerprint!=8ce9af92ba96") == 0);
  for (const char* condition : {"status<stopped", "profile>=quick"})
    CHECK(error_of([&] { count(condition); }).find("only be compared by = and !=") !=
          std::string::npos);
  CHECK(count("eval_loss=null") == 1);
  CHECK(count("eval_loss!=null") == 3);
}

TEST_CASE("the whole id of a run does not choose its repetition", "[store][query][hostile]") {
  std::vector<RunSummary> runs(3);
  const std::string id = "train_llama-s42-0123456789ab";
  runs[0].id = id;
  runs[1].id = id + "-2";
  runs[2].id = id + "-20";
  const auto count = [&](const RunQuery& query) { return select(runs, query).size(); };
  CHECK(count({{}, {"id=" + id}, {}, 0}) == 1);
  CHECK(count({{}, {"id!=" + id}, {}, 0}) == 2);
  CHECK(count({{id}, {}, {}, 0}) == 1);
  CHECK(count({{id + "-2"}, {}, {}, 0}) == 1);
  CHECK(count({{id + "*"}, {}, {}, 0}) == 3);
  CHECK(count({{id.substr(0, id.size() - 1)}, {}, {}, 0}) == 3);
}

TEST_CASE("a list is compared as a whole, however it is written", "[store][query]") {
  std::vector<ConfiguredRun> runs;
  for (const double beta : {0.95, 0.99}) {
    config::Experiment experiment = tests::MadeRun().experiment;
    experiment.optimizer.betas = {0.9, beta};
    RunSummary summary;
    summary.id = "run" + std::to_string(runs.size());
    runs.push_back({summary, config::to_json(experiment), {}});
  }
  const auto with = [&](const std::string& condition) {
    Texts ids;
    for (const ConfiguredRun& run : select(runs, Texts{condition})) ids.push_back(run.summary.id);
    return ids;
  };
  for (const char* list : {"[0.9,0.95]", "[0.9, 0.95]", "0.9, 0.95", "[.9,0.950]"}) {
    CHECK(with("optimizer.betas=" + std::string(list)) == Texts{"run0"});
    CHECK(with("optimizer.betas!=" + std::string(list)) == Texts{"run1"});
  }
  CHECK(with("optimizer.betas=[0.9]").empty());
  for (const char* condition : {"optimizer.betas!=0.95", "optimizer.betas="})
    CHECK(error_of([&] { with(condition); }).find("is a list such as [1,2]") != std::string::npos);
  CHECK(error_of([&] { with("optimizer.betas<[1,2]"); }).find("only be compared by = and !=") !=
        std::string::npos);
}

TEST_CASE("a loss that is no number meets no condition on it", "[store][query]") {
  std::vector<RunSummary> runs = some_runs();
  for (RunSummary& run : runs) run.metrics["eval_loss"] = std::nan("");
  for (const char* condition : {"eval_loss=0.5", "eval_loss<=0.5", "eval_loss>=0", "eval_loss!=1"})
    CHECK(select(runs, {{}, {condition}, {}, 0}).empty());
}

TEST_CASE("a condition on tags asks for one of them", "[store][query]") {
  std::vector<RunSummary> runs = some_runs();
  runs[0].tags = {"a", "paper"};
  runs[1].tags = {"paper/v2"};
  const auto with = [&](const std::string& condition) {
    Texts ids;
    for (const RunSummary& run : select(runs, {{}, {condition}, {}, 0}))
      ids.push_back(run.id.substr(run.id.size() - 2));
    return ids;
  };
  REQUIRE(with("tag=paper") == Texts{"a1"});
  REQUIRE(with("tags=paper/v2") == Texts{"b2"});
  REQUIRE(with("tag!=paper") == Texts{"b2", "c3", "d4"});
  CHECK(with("tag=null") == Texts{"c3", "d4"});
  CHECK(with("tag!=null") == Texts{"a1", "b2"});
  runs[2].note = "kept apart";
  CHECK(with("note!=null") == Texts{"c3"});
  CHECK(with("note=null") == Texts{"a1", "b2", "d4"});
  REQUIRE(error_of([&] { with("tag<x"); }).find("only be compared by = and !=") !=
          std::string::npos);
}

TEST_CASE("a loss that is no number comes behind all others in either order",
          "[store][query][hostile]") {
  std::vector<RunSummary> runs(9);
  const double nan = std::nan("");
  const double losses[] = {2, nan, 0.5, 3, nan, 0.1, 1, nan, 0.2};
  for (size_t i = 0; i < runs.size(); ++i) {
    runs[i].id = "train_x-" + std::to_string(i);
    runs[i].metrics["eval_loss"] = losses[i];
  }
  const auto ordered = [&](const std::string& by) {
    std::string ids;
    for (const RunSummary& run : select(runs, {{}, {}, {by}, 0})) ids += run.id.back();
    return ids;
  };
  CHECK(ordered("eval_loss") == "582603147");
  CHECK(ordered("-eval_loss") == "306285147");
}

TEST_CASE("runs are ordered by columns with missing values last", "[store][query]") {
  const auto by = [](const Texts& order) { return selected({{}, {}, order, 0}); };
  REQUIRE(by({"eval_loss"}) == Texts{"b2", "a1", "d4", "c3"});
  REQUIRE(by({"-eval_loss"}) == Texts{"a1", "d4", "b2", "c3"});
  REQUIRE(by({"-eval_loss", "config"}) == Texts{"d4", "a1", "b2", "c3"});
  REQUIRE(selected({{}, {}, {"-id"}, 2}) == Texts{"c3", "b2"});
}

TEST_CASE("an unknown column and what is no condition are refused", "[store][query]") {
  REQUIRE(error_of([] {
            select(some_runs(), {{}, {"eval_los<1"}, {}, 0});
          }).find("no column 'eval_los'") != std::string::npos);
  REQUIRE(error_of([] {
            select(some_runs(), {{}, {}, {"-speed"}, 0});
          }).find("no column 'speed'") != std::string::npos);
  for (const char* text : {"seed", "=3", "seed!3", ""})
    REQUIRE(error_of([&] {
              select(some_runs(), {{}, {text}, {}, 0});
            }).find("is no condition") != std::string::npos);
  REQUIRE(columns_of(some_runs()[2]).at("eval_loss").is_null());
  REQUIRE(column_names().front() == "id");
}

TEST_CASE("runs are chosen and sorted by keys of their configs, and show those that vary",
          "[store][query]") {
  std::vector<ConfiguredRun> runs;
  for (const double lr : {1e-3, 3e-3, 3e-4}) {
    config::Experiment experiment = tests::MadeRun().experiment;
    experiment.optimizer.lr = lr;
    experiment.seed = static_cast<int64_t>(lr * 1e4);
    RunSummary summary;
    summary.id = "run" + std::to_string(runs.size());
    summary.config = "train_llama";
    runs.push_back({summary, config::to_json(experiment), {}});
  }
  REQUIRE(varied_keys(runs, 4) == Texts{"optimizer.lr"});
  REQUIRE(varied_keys(runs, 0).empty());
  RunQuery query;
  query.conditions = {"optimizer.lr=0.001"};
  REQUIRE(select(runs, query).size() == 1);
  query = {};
  query.order = {"-optimizer.lr"};
  REQUIRE(select(runs, query).front().summary.id == "run1");
  REQUIRE_FALSE(names_columns_only(query));
  REQUIRE(names_columns_only({{"run*"}, {"seed>1"}, {"-eval_loss", "id"}, 3}));
  REQUIRE_FALSE(names_columns_only({{}, {"optimizer.lr=0.001"}, {}, 0}));
  runs[0].summary.profile = "full";  // whose other keys say nothing about a sweep
  runs[2].config["optimizer"]["lr"] = 3e-3;
  REQUIRE(varied_keys(runs, 4).empty());
}

TEST_CASE("a file varies where its content does", "[store][query]") {
  std::vector<ConfiguredRun> runs(2);
  for (size_t i = 0; i < runs.size(); ++i) {
    runs[i].config = config::to_json(tests::MadeRun().experiment);
    runs[i].config["data"]["path"] = "/texts/" + std::to_string(i);
    runs[i].summary.data_fingerprint = "one text";
  }
  REQUIRE(varied_keys(runs, 4).empty());  // it was moved
  runs[1].summary.data_fingerprint = "another";
  REQUIRE(varied_keys(runs, 4) == Texts{"data.path"});
  runs[1].config["data"]["path"] = "/texts/0";  // and other settings of data
  REQUIRE(varied_keys(runs, 4).empty());
}

TEST_CASE("a list that varies is one column, which can be asked for", "[store][query]") {
  std::vector<ConfiguredRun> runs(2);
  for (ConfiguredRun& run : runs) {
    run.config = config::to_json(tests::MadeRun().experiment);
    run.config["external"]["command"] = {"python3", "worker.py"};
  }
  runs[1].config["external"]["command"] = {"python3", "worker.py", "slow"};
  runs[1].config["optimizer"]["betas"] = {0.5, 0.75};
  REQUIRE(varied_keys(runs, 4) == Texts{"external.command", "optimizer.betas"});
  require_names(varied_keys(runs, 4));
  REQUIRE(value_of(runs[1], "optimizer.betas") == nlohmann::json{0.5, 0.75});
}

}  // namespace
}  // namespace forge::store

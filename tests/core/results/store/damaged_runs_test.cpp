// What a store says of files that are not what forge wrote.

#include "core/results/store/result_store.h"

#include <filesystem>
#include <fstream>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/results/store/compare_store.h"
#include "core/run/annotations.h"
#include "core/run/needed_checkpoints.h"
#include "core/run/runs_dir.h"
#include "tests/core/results/store/store_dump.h"
#include "tests/core/results/store/workplace.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/odd_json.h"
#include "tests/support/other_user.h"

namespace forge::store {
namespace {

TEST_CASE("damaged lines are skipped with a warning", "[store]") {
  Workplace place;
  const MadeRun run = made("x");
  const run::RunFolder folder = make_queued_run(place.runs, run);
  append_attempt(folder, 1);
  const auto offset = std::filesystem::file_size(folder.events_file());
  append_line(folder, "Segmentation fault\n");
  append_line(folder,
              R"({"event":"train","step":"ten","time":1,"attempt":1})"
              "\n");
  append_line(folder,
              R"({"event":"telepathy","time":1,"attempt":1})"
              "\n");
  append_line(folder, std::string("\0\xff\x01[[[[", 7) + "\n");
  append_line(folder, std::string(200'000, '[') + "\n");
  append_event(folder, metrics_at(10));
  const SyncReport report = place.store.sync(place.runs);
  REQUIRE(report.warnings.size() == 5);
  REQUIRE(contains(report.warnings[0], "byte " + std::to_string(offset)));
  REQUIRE(contains(report.warnings[0], folder.events_file().string()));
  REQUIRE(place.store.train_metrics(run.id).size() == 1);
  REQUIRE(place.store.sync(place.runs).warnings.empty());  // each object says it once
}

TEST_CASE("a config that is edited later is read again", "[store][hostile]") {
  Workplace place;
  const run::RunFolder folder = make_completed_run(place.runs, made("x"));
  REQUIRE(place.store.sync(place.runs).warnings.empty());
  const std::string config = read_file(folder.config_file());
  std::string edited = config;
  edited.insert(edited.find("\"lr\": ") + 6, "7");
  for (const std::string& damaged : {edited, std::string("my thesis")}) {
    write_file_atomic(folder.config_file(), damaged);
    const SyncReport report = ResultStore(place.database).sync(place.runs);
    REQUIRE(report.warnings.size() == 1);
    CHECK(contains(report.warnings[0], "config.json"));
    CHECK(place.store.runs().empty());
  }
  write_file_atomic(folder.config_file(), config);
  CHECK(place.store.sync(place.runs).warnings.empty());
  CHECK(place.store.runs().size() == 1);
}

TEST_CASE("damage is told as long as it is there", "[store][hostile]") {
  Workplace place;
  const run::RunFolder folder = make_completed_run(place.runs, made("x"));
  const std::string whole = read_file(folder.events_file());
  write_file_atomic(folder.events_file(), "rubbish\n" + whole);
  write_file_atomic(folder.annotations_file(), "{");
  write_file_atomic(folder.environment_file(), "[]");
  const auto warnings = [&] {
    return join(ResultStore(place.database).sync(place.runs).warnings, "\n");
  };
  for (int look = 0; look < 2; ++look) {
    const std::string told = warnings();
    CHECK(contains(told, "events.jsonl', byte 0: "));
    CHECK(contains(told, "remarks.json"));
    CHECK(contains(told, "what the run ran on is unknown"));
  }
  write_file_atomic(folder.annotations_file(), "{}");
  CHECK_FALSE(contains(warnings(), "remarks.json"));
  write_file_atomic(folder.environment_file(), "{}");
  write_file_atomic(folder.events_file(), whole);
  CHECK(warnings().empty());
}

TEST_CASE("a log that is written anew in place is read anew", "[store][hostile]") {
  Workplace place;
  const run::RunFolder folder = make_completed_run(place.runs, made("x"));
  place.store.sync(place.runs);
  const std::string whole = read_file(folder.events_file());
  std::ofstream(folder.events_file()) << "rubbish\n" << whole;  // the same file, and longer
  const std::vector<std::string> warnings = place.store.sync(place.runs).warnings;
  REQUIRE(warnings.size() == 1);
  REQUIRE(contains(warnings[0], "events.jsonl', byte 0: "));
}

TEST_CASE("a link in the place of a run folder is told and no run", "[store][hostile]") {
  Workplace place;
  const run::RunFolder own = make_completed_run(place.runs, made_as_forge("x"));
  const run::RunFolder elsewhere = make_completed_run(place.folder / "others", made("y"));
  fs::create_directory_symlink(elsewhere.path(), place.runs / "z-1");
  fs::create_directory_symlink(place.folder.path(), place.runs / "no-run");
  const std::vector<std::string> warnings = place.store.sync(place.runs).warnings;
  REQUIRE(warnings.size() == 1);
  CHECK(contains(warnings[0], "run 'z-1' is left out: a symbolic link stands in the place"));
  CHECK(place.store.runs({}).size() == 1);
  CHECK(compare_store(place.database, place.runs).differences.empty());
  // What was a run of its own is none any more.
  fs::rename(own.path(), place.folder / "moved");
  fs::create_directory_symlink(place.folder / "moved", own.path());
  place.store.sync(place.runs);
  CHECK(place.store.runs({}).empty());
}

TEST_CASE("a log of rubbish is told in a few lines", "[store][hostile]") {
  Workplace place;
  const run::RunFolder folder = make_completed_run(place.runs, made("x"));
  std::string rubbish;
  for (int line = 0; line < 100; ++line) rubbish += "rubbish\n";
  write_file_atomic(folder.events_file(), rubbish + read_file(folder.events_file()));
  const std::vector<std::string> warnings = place.store.sync(place.runs).warnings;
  REQUIRE(warnings.size() == 21);
  REQUIRE(contains(warnings.back(), "has more such lines from byte 160 on"));
}

TEST_CASE("numbers beyond all bounds in an event do no harm", "[store]") {
  Workplace place;
  const run::RunFolder folder = make_queued_run(place.runs, made("x"));
  constexpr int64_t largest = int64_t{1} << 53;
  append_event(folder, worker::Started{1, largest, largest, largest});
  append_line(folder,
              R"({"event":"attempt","attempt":1,"time":1e300})"
              "\n");
  append_line(folder,
              R"({"event":"ended","attempt":1,"exit_status":18446744073709551615,"time":-5})"
              "\n");
  place.store.sync(place.runs);
  REQUIRE(place.store.run("x-20")->tokens == INT64_MAX);
  REQUIRE(progress_percent(*place.store.run("x-20")) == 100);
}

TEST_CASE("a run that was damaged after it was listed is listed no more until it is mended",
          "[store][hostile]") {
  TemporaryFolder folder;
  const fs::path runs = folder / "runs";
  const run::RunFolder run = make_completed_run(runs, {});
  ResultStore store(folder / "forge.sqlite");
  store.sync(runs);
  REQUIRE(store.runs().size() == 1);
  const std::string record = read_file(run.record_file());
  write_file_atomic(run.record_file(), "{");
  for (int look = 0; look < 2; ++look) {
    const SyncReport report = store.sync(runs);
    CHECK(report.left_out.size() == 1);
    CHECK(store.runs().empty());
  }
  write_file_atomic(run.record_file(), record);
  CHECK(store.sync(runs).left_out.empty());
  CHECK(store.runs().size() == 1);
}

TEST_CASE("a completed run whose log was cut is told each time and counts as failed",
          "[store][hostile]") {
  TemporaryFolder folder;
  const fs::path runs = folder / "runs";
  const run::RunFolder run = make_completed_run(runs, {});
  ResultStore(folder / "forge.sqlite").sync(runs);
  const std::string log = read_file(run.events_file());
  write_file_atomic(run.events_file(), log.substr(0, log.rfind('{')));
  for (int look = 0; look < 2; ++look) {
    ResultStore store(folder / "forge.sqlite");
    const SyncReport report = store.sync(runs);
    REQUIRE(report.warnings.size() == 1);
    INFO(report.warnings[0]);
    CHECK(contains(report.warnings[0], "tables leave out run '" + run.id()));
    CHECK(contains(report.warnings[0], "events.jsonl' is damaged"));
    CHECK(store.run(run.id())->status == run::RunState::failed);
  }
  write_file_atomic(run.events_file(), log);
  ResultStore store(folder / "forge.sqlite");
  CHECK(store.sync(runs).warnings.empty());
  CHECK(store.run(run.id())->status == run::RunState::completed);
}

TEST_CASE("many damaged runs share one warning", "[store]") {
  Workplace place;
  for (const char* config : {"a", "b", "c", "d"})
    write_file_atomic(make_completed_run(place.runs, made(config)).events_file(), "");
  const SyncReport report = place.store.sync(place.runs);
  REQUIRE(report.damaged.size() == 4);
  REQUIRE(report.warnings.size() == 1);
  CHECK(contains(report.warnings[0], "tables leave out 4 runs"));
  CHECK(contains(report.warnings[0], "(a-20, b-20, c-20, …)"));
}

TEST_CASE("a run folder without run.json is told", "[store]") {
  Workplace place;
  const run::RunFolder run = make_completed_run(place.runs, made("good"));
  fs::remove(run.record_file());
  const SyncReport report = place.store.sync(place.runs);
  REQUIRE(report.warnings.size() == 1);
  CHECK(contains(report.warnings[0], "run 'good-20' is left out: the folder has no run.json"));
}

TEST_CASE("a run folder that this user may not read is left out and told by name",
          "[store][closed]") {
  TemporaryFolder folder;
  const fs::path runs = folder / "runs";
  make_completed_run(runs, made_as_forge("good"));
  const run::RunFolder closed = make_completed_run(runs, made("closed"));
  for (const fs::path& path : {folder.path(), runs}) fs::permissions(path, fs::perms::all);
  fs::permissions(closed.path(), fs::perms::none);
  const std::string warning =
      "run 'closed-20' is left out: its folder cannot be read: Permission denied";
  const std::string said = words_of_other_user([&] {
    ResultStore store(folder / "forge.sqlite");
    std::string text = join(store.sync(runs).warnings, "\n") + "\n";
    text += std::to_string(store.runs().size()) + " listed\n";
    const StoreComparison compared = compare_store(folder / "forge.sqlite", runs);
    text += join(compared.warnings, "\n") + "\n";
    text += std::to_string(compared.differences.size()) + " differences\n";
    text += std::to_string(run::list_runs(runs).size()) + " folders\n";
    return text + error_of([&] { run::find_run(runs, "closed-20"); }) + "\n" +
           error_of([&] { run::find_run(runs, "clo"); });
  });
  fs::permissions(closed.path(), fs::perms::owner_all);
  CHECK(starts_with(said, warning + "\n1 listed\n" + warning + "\n0 differences\n1 folders\n"));
  const size_t first = said.find("cannot read the run folder '");
  REQUIRE(first != std::string::npos);
  CHECK(contains(said, "closed-20': Permission denied\nhint: its owner can make it readable"));
  CHECK(said.find("cannot read the run folder '", first + 1) != std::string::npos);
}

TEST_CASE("what cannot be read for a while is not kept as if there were nothing",
          "[store][closed]") {
  TemporaryFolder folder;
  const fs::path runs = folder / "runs";
  const run::RunFolder run = make_completed_run(runs, made_as_forge("x"));
  run::write_annotations(run, {true, "kept apart", {}});
  write_file_atomic(run.environment_file(), R"({"device_name": "Test CPU"})");
  fs::permissions(folder.path(), fs::perms::all);
  for (const auto& each : fs::recursive_directory_iterator(folder.path()))
    fs::permissions(each, fs::perms::all);
  const auto look = [&] {
    return words_of_other_user([&] {
      ResultStore store(folder / "forge.sqlite");
      std::string text = join(store.sync(runs).warnings, "\n") + "\n";
      RunFilter archived;
      archived.archived = true;
      for (const ConfiguredRun& each : store.configured_runs(archived))
        text += each.summary.note + " " + std::to_string(each.summary.archived) + " " +
                run::name_of(each.summary.status) + " " + json_text(each.environment);
      return text;
    });
  };
  const std::string whole = "\nkept apart 1 completed {\"device_name\":\"Test CPU\"}";
  for (const fs::path& file : {run.annotations_file(), run.environment_file(), run.events_file()}) {
    for (const bool is_known : {false, true}) {
      if (is_known && file == run.environment_file()) continue;  // it was read with the events
      INFO(file << ", known: " << is_known);
      if (!is_known) fs::remove(folder / "forge.sqlite");
      if (is_known) CHECK(look() == whole);
      write_file_atomic(file, read_file(file) + (file == run.events_file() ? "" : " "));
      fs::permissions(file, fs::perms::none);
      const std::string said = look();
      CHECK(contains(said, "is left out: "));
      CHECK(contains(said, "cannot read '" + file.string() + "': Permission denied"));
      CHECK_FALSE(contains(said, "completed"));
      fs::permissions(file, fs::perms::all);
      CHECK(look() == whole);
    }
  }
}

TEST_CASE("a folder with a name that no run can have is left out and told", "[store][hostile]") {
  Workplace place;
  make_completed_run(place.runs, made("good"));
  const std::vector<std::string> names = {
      "--help", "-rf", "*", "forge.sqlite-x", "a\nb", "\x1b[31mX"};
  for (const std::string& name : names)
    fs::copy(place.runs / "good-20", place.runs / name, fs::copy_options::recursive);
  const SyncReport report = place.store.sync(place.runs);
  REQUIRE(place.store.runs().size() == 1);
  REQUIRE(report.warnings.size() == 1);
  REQUIRE(contains(report.warnings[0], "6 runs are left out ("));
  REQUIRE(contains(report.warnings[0], "): no run can have such a name"));
  REQUIRE(place.store.sync(place.runs).warnings.empty());
  REQUIRE(run::list_runs(place.runs).size() == 1);
  for (const std::string& name : names) REQUIRE_FALSE(run::find_run(place.runs, name));
  REQUIRE(run::find_run(place.runs, "g"));
}

TEST_CASE("a run that cannot be read is left out and told", "[store]") {
  Workplace place;
  make_completed_run(place.runs, made("good"));
  make_queued_run(place.runs, made("bad"));
  write_file_atomic(place.runs / "bad-20" / "config.json", "{\"train\":");
  const SyncReport report = place.store.sync(place.runs);
  REQUIRE(report.added == 1);
  REQUIRE(report.warnings.size() == 1);
  REQUIRE(contains(report.warnings[0], "bad-20"));
  REQUIRE(contains(report.warnings[0], "config.json"));
  REQUIRE_FALSE(place.store.run("bad-20").has_value());
  REQUIRE(place.store.run("good-20").has_value());
}

TEST_CASE("a run stays in the tables without what it ran on, and leaves them with another config",
          "[store][hostile]") {
  Workplace place;
  const run::RunFolder kept = make_completed_run(place.runs, made("train_a"));
  write_file_atomic(kept.environment_file(), "\x1b{");
  const run::RunFolder changed = make_completed_run(place.runs, made("train_b"));
  nlohmann::json config = changed.config();
  config["optimizer"]["lr"] = 0.5;
  write_file_atomic(changed.config_file(), config.dump());
  const SyncReport report = place.store.sync(place.runs);
  REQUIRE(report.warnings.size() == 2);
  REQUIRE(place.store.run(kept.id()).has_value());
  REQUIRE_FALSE(place.store.run(changed.id()).has_value());
}

TEST_CASE("runs of another version of forge share one sentence and hold nothing up", "[store]") {
  Workplace place;
  make_completed_run(place.runs, made("good"));
  for (const char* name : {"a", "b", "c", "d"}) {
    make_completed_run(place.runs, made(name));
    const run::RunFolder folder(place.runs / (std::string(name) + "-20"));
    nlohmann::json config = folder.config();
    config["model"]["family"] = "llama";
    rewrite_config(folder, config);
  }
  const SyncReport report = place.store.sync(place.runs);
  REQUIRE(report.added == 1);
  REQUIRE(report.warnings.size() == 1);
  REQUIRE(report.warnings[0] ==
          "4 runs are left out (a-20, b-20, c-20, …): another version of forge wrote the config: "
          "unknown key 'model.family'");
  REQUIRE(place.store.run("good-20").has_value());
  REQUIRE(place.store.sync(place.runs).warnings.empty());  // said once
}

TEST_CASE("a run whose config holds anything at all ends no command", "[store][hostile]") {
  Workplace place;
  const run::RunFolder folder = make_completed_run(place.runs, made("a"));
  nlohmann::json config = folder.config();
  config["external"] = {
      {"command", {"a"}}, {"environment", {{"A", "1"}}}, {"working_directory", "b"}};
  config["data"]["sources"] = {{"one", {{"weight", 0.5}, {"path", "p"}, {"source", "text"}}}};
  config["model"]["blocks"] = {
      {"own", {{"source", "x"}, {"file", "f"}, {"described", {{"weights", {{"w", 1}}}}}}}};
  const std::string record = read_file(folder.record_file());
  for_each_odd(config, [&](const nlohmann::json& odd, const std::string& words) {
    INFO(words);
    write_file_atomic(folder.record_file(), record);
    error_of([&] { rewrite_config(folder, odd); });
    REQUIRE_NOTHROW(place.store.sync(place.runs));
    REQUIRE_NOTHROW(run::needed_checkpoints(place.runs));
  });
}

}  // namespace
}  // namespace forge::store

#include "core/manage/written_files.h"

#include "core/base/files.h"
#include "core/base/own_hash.h"
#include "core/model/weights/safetensors.h"
#include "core/results/tables/run_metrics.h"
#include "core/results/tables/sheet.h"
#include "core/run/saved_plan.h"
#include "tests/core/results/tables/lab.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

bool is_as_written(const std::string& text) {
  const TemporaryFolder folder;
  return manage::is_as_written(folder.write("file", text));
}

TEST_CASE("what forge wrote is known by the hash that it has of itself") {
  const std::string text = with_own_hash("# Results\n<!-- " + own_hash_mark() + " -->\n");
  CHECK(is_as_written(text));
  CHECK(is_as_written(""));
  CHECK_FALSE(is_as_written("My results" + text.substr(9)));
  CHECK_FALSE(is_as_written(text + "My conclusions.\n"));
  CHECK_FALSE(is_as_written(text + text));
  const std::string long_text = with_own_hash(own_hash_mark() + std::string(1 << 18, '.'));
  CHECK(is_as_written(long_text));
  CHECK(is_as_written(with_own_hash(std::string(1 << 18, '.') + own_hash_mark())));
  CHECK_FALSE(is_as_written(long_text + "."));
}

TEST_CASE("a plan of runs is known until it is edited") {
  const TemporaryFolder folder;
  const auto file = folder / "plan.json";
  run::write_plan(file, {});
  CHECK(manage::is_as_written(file));
  CHECK_NOTHROW(run::read_plan(file));
  CHECK_FALSE(is_as_written(read_file(file) + "\n"));
}

TEST_CASE("CSV that forge wrote is known by its header, its fields and the ends of its lines") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 20));
  const std::string table = tables::to_csv(lab.table());
  CHECK(is_as_written(table));
  CHECK_FALSE(is_as_written(table + "llama,\"my own note\",,,,,,,\n"));
  CHECK_FALSE(is_as_written(table + "llama,\"my own note\",,,,,,,\r\n"));
  CHECK_FALSE(is_as_written(table + "seen"));
  const std::string metrics = tables::metrics_csv_header();
  const std::string line = "llama-1,\"a \"\"b\"\", c\",1,2,3,4,5,eval_loss,3.1";
  CHECK(is_as_written(metrics));
  CHECK(is_as_written(metrics + line + "\r\n"));
  CHECK_FALSE(is_as_written(metrics + line + "\n"));
  CHECK_FALSE(is_as_written(metrics + line + "\r\nx,y\r\n"));
}

TEST_CASE("logits are known by their tensors, and weights are none") {
  const TemporaryFolder folder;
  const float number = 1;
  const weights::TensorView tensor{
      weights::Dtype::f32, {1}, reinterpret_cast<const std::byte*>(&number), sizeof number};
  const auto file = folder / "file.safetensors";
  weights::write_safetensors(file, {{"input_ids", tensor}, {"logits", tensor}});
  CHECK(manage::is_as_written(file));
  weights::write_safetensors(file, {{"lm_head.weight", tensor}, {"logits", tensor}});
  CHECK_FALSE(manage::is_as_written(file));
}

TEST_CASE("what people wrote or edited is not replaced") {
  const TemporaryFolder folder;
  for (const std::string text : {"# Results\n\n```\nforge export-markdown\n```\n",
                                 "<!DOCTYPE html>\n<meta name=\"generator\" content=\"forge\">\n",
                                 "{\"table\": \"t\", \"baseline\": \"a\"}\n",
                                 "% Written by 'forge export --format latex'\n",
                                 "% forge-hash:0123\n",
                                 "config,loss\nllama,3\n",
                                 "\n"}) {
    CAPTURE(text);
    const auto file = folder.write("mine", text);
    const std::string error = error_of([&] { manage::require_replaceable(file, "give --force"); });
    CHECK(contains(error, "was not written by forge, or was edited since: it is not replaced"));
    CHECK(contains(error, "give --force"));
  }
  std::filesystem::create_symlink(folder / "none", folder / "link");
  CHECK(contains(error_of([&] { manage::require_replaceable(folder / "link", "give --force"); }),
                 "is a link to a file that is not there"));
  const auto empty = folder.write("empty", "");
  CHECK_NOTHROW(manage::require_replaceable(empty, ""));
  std::filesystem::create_symlink(empty, folder / "link to it");
  CHECK(contains(
      error_of([&] { manage::require_replaceable(folder / "link to it", "give --force"); }),
      "is a link to an empty file"));
  CHECK_NOTHROW(manage::require_replaceable(folder / "none", ""));
  CHECK_NOTHROW(manage::require_replaceable(folder.path(), ""));
  CHECK_NOTHROW(manage::require_replaceable("/dev/null", ""));
}

TEST_CASE("a text without a mark replaces nothing that holds something", "[manage][hostile]") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& name) {
    return error_of([&] { manage::require_new(folder / name, "give --force"); });
  };
  const auto file = folder.write("mine", with_own_hash("# " + own_hash_mark() + "\n"));
  CHECK(contains(refused("mine"), "exists already: it is not replaced"));
  std::filesystem::create_symlink(file, folder / "link");
  CHECK(contains(refused("link"), "exists already: it is not replaced"));
  std::filesystem::create_symlink(folder / "none", folder / "dangling");
  CHECK(contains(refused("dangling"), "is a link to a file that is not there"));
  folder.write("empty", "");
  CHECK(refused("empty").empty());
  CHECK(refused("none").empty());
  CHECK_NOTHROW(manage::require_new("/dev/stdout", ""));
}

TEST_CASE("an empty file of a run is the run's", "[manage]") {
  const tests::TemporaryFolder folder;
  const fs::path file = folder.write("supervisor.log", "");
  CHECK(manage::is_as_written(file));
  folder.write("run.json", "{}");
  CHECK_FALSE(manage::is_as_written(file));
}

}  // namespace
}  // namespace forge::tests

#include "core/run/import_run.h"

#include <nlohmann/json.hpp>

#include "core/base/fs.h"
#include "core/data/tokenizer_json.h"
#include "core/hf/export_model.h"
#include "core/run/open_model.h"
#include "core/store/location.h"
#include "core/store/result_store.h"
#include "tests/core/hf/sample_model.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"

namespace forge::run {
namespace {

using tests::contains;
using tests::error_of;
using tests::TemporaryFolder;

/// An exported model and a folder for runs.
struct ImportPlace {
  explicit ImportPlace(int vocab_size = tests::small_model().vocab_size) {
    hf::ExportSource source;
    source.model = tests::small_model();
    source.model.vocab_size = vocab_size;
    source.max_positions = 128;
    source.checkpoint = tests::write_sample_checkpoint(folder.path(), source.model);
    source.tokenizer = tests::write_sample_tokenizer(folder.path());
    hf::export_model(source, model_folder(), {});
    hash = weights::content_hash(weights::ModelFiles(source.checkpoint).tensors());
  }
  fs::path model_folder() const { return folder / "My Model"; }
  fs::path runs() const { return folder / "runs"; }
  ImportedRun import(const std::string& name = "") const {
    return import_run(
        hf::import_model(model_folder()), runs(), {model_folder(), name, "forge import-hf"});
  }
  TemporaryFolder folder;
  std::string hash;
};

TEST_CASE("an imported model is a completed run with a checkpoint", "[run]") {
  const ImportPlace place;
  const ImportedRun imported = place.import();
  REQUIRE(imported.made);
  REQUIRE(tests::contains(imported.folder.id(), "My_Model-"));
  REQUIRE(imported.folder.state() == RunState::completed);
  const RunRecord record = imported.folder.record();
  REQUIRE(record.id == imported.folder.id());
  REQUIRE(record.imported_from == place.model_folder().string());
  REQUIRE(record.command == "forge import-hf");
  const RunModel model = open_run(imported.folder);
  REQUIRE(model.step == 0);
  REQUIRE(model.experiment.profile == "imported");
  REQUIRE(model.experiment.model.intermediate_size == 12);
  REQUIRE(model.experiment.train.seq_len == 128);
  REQUIRE(model.tokenizer == imported.folder.tokenizer_file());
  REQUIRE(weights::content_hash(weights::ModelFiles(model.checkpoint).tensors()) == place.hash);
  REQUIRE(list_runs(place.runs()).size() == 1);
}

TEST_CASE("the same model is imported once under a name", "[run]") {
  const ImportPlace place;
  const ImportedRun first = place.import("llama");
  const ImportedRun second = place.import("llama");
  REQUIRE_FALSE(second.made);
  REQUIRE(second.folder.path() == first.folder.path());
  REQUIRE(place.import("other").made);
}

TEST_CASE("the store lists an imported run with its parameters and without warnings", "[run]") {
  const ImportPlace place;
  const ImportedRun imported = place.import("llama");
  store::ResultStore store(place.folder / "store.sqlite");
  REQUIRE(store.sync(place.runs()).warnings.empty());
  const auto run = store.run(imported.folder.id());
  REQUIRE(run);
  REQUIRE(run->status == RunState::completed);
  REQUIRE(run->config == "llama");
  REQUIRE(run->profile == "imported");
  REQUIRE(run->parameters == 5320);
  REQUIRE_FALSE(run->eval_loss);
}

TEST_CASE("a name must do for a folder", "[run]") {
  const ImportPlace place;
  for (const char* name : {"a/b", "..", ".x", "-x", "a b", "é"}) {
    INFO(name);
    REQUIRE(contains(error_of([&] { place.import(name); }), "is no name for a run"));
  }
  REQUIRE_FALSE(fs::exists(place.runs()));
}

TEST_CASE("a model without a tokenizer is a run without one", "[run]") {
  const ImportPlace place;
  fs::remove(place.model_folder() / "tokenizer.json");
  const RunModel model = open_run(place.import().folder);
  REQUIRE(model.tokenizer.empty());
  REQUIRE(model.tokenizer_fingerprint.empty());
}

TEST_CASE("a SentencePiece model is imported as tokenizer json", "[run]") {
  const ImportPlace place(560);
  fs::remove(place.model_folder() / "tokenizer.json");
  fs::copy_file(tests::tests_dir() / "golden" / "tokenizers" / "llama_like.model",
                place.model_folder() / "tokenizer.model");
  const RunModel model = open_run(place.import().folder);
  REQUIRE(data::load_tokenizer(model.tokenizer).vocab_size() == 560);
  // Opened as it lies there it has none: a worker reads tokenizer.json alone.
  REQUIRE(open_model(place.runs(), place.model_folder().string()).tokenizer.empty());
}

TEST_CASE("a model folder is opened as it lies there", "[run]") {
  const ImportPlace place;
  const RunModel model = open_model(place.runs(), place.model_folder().string());
  REQUIRE(model.checkpoint == place.model_folder());
  REQUIRE(model.experiment.model.hidden_size == 8);
  REQUIRE(model.tokenizer == place.model_folder() / "tokenizer.json");
}

}  // namespace
}  // namespace forge::run

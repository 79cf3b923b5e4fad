#include <fcntl.h>
#include <sys/resource.h>

#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/base/text.h"
#include "core/data/tokenizer/tokenizer_json.h"
#include "core/huggingface/export_model.h"
#include "core/results/store/result_store.h"
#include "core/run/import_run.h"
#include "core/run/open_model.h"
#include "core/run/runs_dir.h"
#include "tests/core/huggingface/sample_model.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/fake_runs.h"

namespace forge::run {
namespace {

using tests::contains;
using tests::error_of;
using tests::TemporaryFolder;

InitialModels initial_models(const fs::path& runs_dir) {
  return InitialModels([=](const std::string& name) { return open_model(runs_dir, name); });
}

/// A runs folder with one run of the sample model under each id.
class Runs {
 public:
  explicit Runs(const std::vector<std::string>& ids) {
    for (const std::string& id : ids) {
      tests::MadeRun made;
      made.id = id;
      made.experiment.model = tests::small_model();
      made.tokenizer_fingerprint = data::Tokenizer(data::initial_vocabulary()).fingerprint();
      const RunFolder folder = tests::make_completed_run(path(), made);
      tests::write_sample_checkpoint(folder.path(), made.experiment.model);
      tests::write_sample_tokenizer(folder.path());
    }
  }
  fs::path path() const { return folder_ / "runs"; }
  RunFolder find(const std::string& name) const { return find_run_by_name_or_path(path(), name); }
  std::string fault(const std::string& name) const {
    return error_of([&] { find(name); });
  }
  RunFolder only() const { return list_runs(path()).at(0); }

 private:
  TemporaryFolder folder_;
};

TEST_CASE("a run is found by its id and by its beginning and by its folder", "[run]") {
  const Runs runs({"train_a-1234", "train_a-1299", "train_a-1299-2", "train_b-1234"});
  REQUIRE(runs.find("train_b").id() == "train_b-1234");
  REQUIRE(runs.find("train_a-1234").id() == "train_a-1234");
  REQUIRE(runs.find("train_a-1299").id() == "train_a-1299");  // though another one begins so
  REQUIRE(runs.find((runs.path() / "train_b-1234").string()).id() == "train_b-1234");
  REQUIRE(runs.find((runs.path() / "train_b-1234/").string()).id() == "train_b-1234");
}

TEST_CASE("a folder here with the id of a run is not taken for it", "[run][hostile]") {
  const Runs runs({"train_a-1234"});
  const TemporaryFolder here;
  fs::copy(runs.only().path(), here / "train_a-1234", fs::copy_options::recursive);
  const fs::path before = fs::current_path();
  fs::current_path(here.path());
  const fs::path found = runs.find("train_a-1234").path(),
                 named = runs.find("./train_a-1234").path();
  fs::current_path(before);
  CHECK(fs::equivalent(found, runs.only().path()));
  CHECK(fs::equivalent(named, here / "train_a-1234"));
}

TEST_CASE("a name that is none or too short says what there is", "[run]") {
  const Runs runs({"train_a-1234", "train_a-1299"});
  REQUIRE(contains(runs.fault("train_a"), "'train_a' may mean several runs"));
  REQUIRE(contains(runs.fault("train_a"), "train_a-1234, train_a-1299"));
  REQUIRE(contains(runs.fault("train_a-1243"), "did you mean 'train_a-1234'"));
  REQUIRE(contains(runs.fault("else"), "'forge runs' lists them"));
  REQUIRE(contains(runs.fault(""), "is empty"));
  REQUIRE(
      contains(error_of([] { find_run_by_name_or_path("/nowhere/at/all", "x"); }), "no run 'x'"));
}

TEST_CASE("a run opens at its newest checkpoint or at a named one", "[run]") {
  const Runs runs({"train_a-1234"});
  const RunFolder folder = runs.only();
  tests::save_checkpoint(folder.checkpoints(), 10);
  const RunModel newest = open_run(folder);
  REQUIRE(newest.step == 30);
  REQUIRE(newest.experiment.model.hidden_size == 8);
  REQUIRE(newest.tokenizer == folder.tokenizer_file());
  REQUIRE(open_run(folder, 10).checkpoint == folder.checkpoints() / "000000010");
  REQUIRE(contains(error_of([&] { open_run(folder, 11); }),
                   "run 'train_a-1234' has no checkpoint of step 11"));
  REQUIRE(contains(error_of([&] { open_run(folder, 11); }), "it has those of 10, 30"));
}

TEST_CASE("the checkpoint of an open model stays though its run trains on", "[run]") {
  const Runs runs({"train_a"});
  const RunFolder folder = runs.only();
  {
    const RunModel model = open_model(runs.path(), "train_a");
    REQUIRE(model.hold);
    weights::remove_surplus_checkpoints(folder.checkpoints(), {0, false}, model.step);
    REQUIRE(path_exists(model.checkpoint));
  }
  weights::remove_surplus_checkpoints(folder.checkpoints(), {0, false}, 1000);
  REQUIRE(weights::list_checkpoints(folder.checkpoints()).empty());
}

TEST_CASE("a checkpoint's path says that runs are named", "[run]") {
  const Runs runs({"train_a"});
  const fs::path checkpoint = weights::list_checkpoints(runs.only().checkpoints()).at(0);
  CHECK(contains(runs.fault(checkpoint.string()), "is a checkpoint of run 'train_a'"));
  CHECK(contains(runs.fault(checkpoint.string()), "'forge export-hf train_a DIR --step N'"));
  CHECK(contains(runs.fault("no/such"), "a path is that of a run's folder or of a model folder"));
}

TEST_CASE("a damaged checkpoint is passed over for an older one", "[run]") {
  const Runs runs({"train_a-1234"});
  const RunFolder folder = runs.only();
  const fs::path newer = tests::save_checkpoint(folder.checkpoints(), 40);
  write_file_atomic(newer / "weights.safetensors", "x");
  REQUIRE(open_run(folder).step == 30);
  remove_tree(folder.checkpoints() / "000000030");
  REQUIRE(contains(error_of([&] { open_run(folder); }), "has damaged checkpoints only"));
  remove_tree(folder.checkpoints());
  REQUIRE(contains(error_of([&] { open_run(folder); }), "has no checkpoint"));
}

TEST_CASE(
    "a run with more checkpoints than files may be opened is opened, and its checkpoint stays",
    "[run][hostile][no_sanitizers]") {
  const Runs runs({"train_a"});
  const RunFolder folder = runs.only();
  for (int step = 31; step <= 80; ++step) tests::save_checkpoint(folder.checkpoints(), step);
  struct rlimit before {};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  struct rlimit few = before;
  few.rlim_cur = static_cast<rlim_t>(FileDescriptor(::open("/dev/null", O_RDONLY)).get() + 30);
  const auto opened = [&](std::optional<int64_t> step) {
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
    std::string problem;
    RunModel model;
    try {
      model = open_run(folder, step);
    } catch (const Error& error) {
      problem = error.message();
    }
    ::setrlimit(RLIMIT_NOFILE, &before);
    CHECK(problem == "");
    return model;
  };
  const auto stays = [&](const RunModel& model) {
    weights::remove_surplus_checkpoints(folder.checkpoints(), {0, false}, model.step);
    return path_exists(model.checkpoint);
  };
  {
    const RunModel old = opened(35);
    CHECK(old.step == 35);
    CHECK(opened({}).step == 80);
    CHECK(stays(old));
  }
  for (int step = 36; step <= 80; ++step) {
    tests::save_checkpoint(folder.checkpoints(), step);
    const fs::path saved = folder.checkpoints() / weights::checkpoint_name(step);
    if (step > 40) write_file_atomic(saved / "weights.safetensors", "x");
  }
  const RunModel oldest = opened({});
  CHECK(oldest.step == 40);
  CHECK(oldest.skipped_checkpoints.size() == 40);
  CHECK(stays(oldest));
}

TEST_CASE("weights that stand for damaged newer ones are told of", "[run][hostile]") {
  const Runs runs({"train_a"});
  const fs::path newer = tests::save_checkpoint(runs.only().checkpoints(), 40);
  write_file_atomic(newer / "weights.safetensors", "x");
  RunModel model = open_run(runs.only());
  CHECK(model.step == 30);
  config::Experiment experiment = model.experiment;
  experiment.train.initial_weights = "train_a";
  InitialModels models = initial_models(runs.path());
  std::string said;
  try {
    said = join(models.find(experiment).notes, "; ");
  } catch (const Error& problem) {
    FAIL(problem.message());
  }
  CHECK(contains(said, "weights.safetensors has 1 bytes"));
  CHECK(contains(said, "those of step 30 are taken"));
}

TEST_CASE("a checkpoint under the name of another step is refused", "[run][hostile]") {
  const Runs runs({"train_a-1234"});
  const RunFolder folder = runs.only();
  const fs::path copy = folder.checkpoints() / "000000010";
  fs::copy(folder.checkpoints() / "000000030", copy);
  CHECK(open_run(folder, 30).step == 30);
  const std::string said = error_of([&] { open_run(folder, 10); });
  CHECK(contains(said, "is the one of step 30, under the name of step 10"));
  CHECK(contains(said, "rename the folder to 000000030"));
  // The newest of the run is not taken by its name alone, either.
  fs::rename(copy, folder.checkpoints() / "000000050");
  const RunModel newest = open_run(folder);
  CHECK(newest.step == 30);
  REQUIRE(newest.skipped_checkpoints.size() == 1);
  CHECK(contains(newest.skipped_checkpoints[0], "under the name of step 50"));
}

TEST_CASE("a checkpoint that is named must be whole", "[run][hostile]") {
  const Runs runs({"train_a-1234"});
  const fs::path weights = runs.only().checkpoints() / "000000030/weights.safetensors";
  write_file_atomic(weights, "x");
  CHECK(contains(error_of([&] { open_run(runs.only(), 30); }), "weights.safetensors has 1 bytes"));
}

TEST_CASE("what is opened in the place of a newer checkpoint is told with the reason",
          "[run][hostile]") {
  const Runs runs({"train_a-1234"});
  const RunFolder folder = runs.only();
  REQUIRE(open_run(folder).skipped_checkpoints.empty());
  tests::append_event(folder, worker::CheckpointSaved{30, "checkpoints/000000030", 1, 0});
  tests::append_event(folder, worker::CheckpointSaved{40, "checkpoints/000000040", 1, 0});
  const RunModel model = open_run(folder);
  REQUIRE(model.step == 30);
  REQUIRE(model.skipped_checkpoints.size() == 1);
  REQUIRE(contains(model.skipped_checkpoints[0], "the newest checkpoint, of step 40, is gone"));
  remove_tree(folder.checkpoints());
  REQUIRE(contains(error_of([&] { open_run(folder); }), "has no checkpoint: the newest"));
}

TEST_CASE("the tokenizer must be the one of the training", "[run]") {
  const Runs runs({"train_a-1234"});
  const RunFolder folder = runs.only();
  data::Vocabulary other = data::initial_vocabulary();
  other.prefix_space = data::PrefixSpace::none;
  data::save_tokenizer(data::Tokenizer(other), folder.tokenizer_file());
  REQUIRE(contains(error_of([&] { open_run(folder); }), "is not the tokenizer that run"));
  fs::remove(folder.tokenizer_file());
  REQUIRE(contains(error_of([&] { open_run(folder); }), "is gone"));
}

TEST_CASE("a run whose config is damaged names the file", "[run]") {
  const Runs runs({"train_a-1234"});
  write_file_atomic(runs.only().config_file(), "{");
  REQUIRE(contains(error_of([&] { open_run(runs.only()); }), "config.json' is not a JSON object"));
}

TEST_CASE("a model is opened from a run", "[run]") {
  const Runs runs({"train_a-1234"});
  REQUIRE(open_model(runs.path(), "train_a").step == 30);
  REQUIRE(contains(error_of([&] { open_model(runs.path(), "no/such/folder"); }), "no run"));
}

using tests::contains;
using tests::error_of;
using tests::TemporaryFolder;

/// A model folder and a run imported from it.
struct WeightsPlace {
  WeightsPlace() {
    huggingface::ExportSource source;
    source.model = experiment.model = tests::small_model();
    source.max_positions = 128;
    source.checkpoint = tests::write_sample_checkpoint(folder.path(), source.model);
    source.tokenizer = tests::write_sample_tokenizer(folder.path());
    huggingface::export_model(source, folder / "model", {});
    import_run(
        huggingface::import_model(folder / "model"), runs(), {folder / "model", "llama", ""});
  }
  fs::path runs() const { return folder / "runs"; }
  InitialWeights find(const std::string& name) {
    experiment.train.initial_weights = name;
    return initial_models(runs()).find(experiment);
  }
  std::string fault(const std::string& name) {
    return error_of([&] { find(name); });
  }
  TemporaryFolder folder;
  config::Experiment experiment;
};

TEST_CASE("without a name the weights are drawn", "[run]") {
  WeightsPlace place;
  const InitialWeights weights = place.find("");
  REQUIRE(weights.folder.empty());
  REQUIRE(weights.hash.empty());
}

TEST_CASE("the same weights have the same hash wherever they lie", "[run]") {
  WeightsPlace place;
  const InitialWeights of_folder = place.find((place.folder / "model").string());
  const InitialWeights of_run = place.find("llama");
  REQUIRE(of_folder.hash == of_run.hash);
  REQUIRE(of_folder.folder == place.folder / "model");
  REQUIRE(weights::ModelFiles(of_run.folder).tensors().size() == 21);
  REQUIRE(of_run.notes.empty());
  REQUIRE(of_run.tokenizer_fingerprint == of_folder.tokenizer_fingerprint);
}

TEST_CASE("weights of another shape are refused with the key", "[run]") {
  WeightsPlace place;
  place.experiment.model.hidden_size = 16;
  const std::string fault = place.fault("llama");
  REQUIRE(contains(fault, "train.initial_weights 'llama': the weights are not those of the model"));
  REQUIRE(contains(fault, "'model.embed_tokens.weight' [270, 8] instead of [270, 16]"));
  REQUIRE(contains(place.fault("nothing"), "train.initial_weights 'nothing': no run 'nothing'"));
}

TEST_CASE("what marks the run that weights come from is noted", "[run]") {
  WeightsPlace place;
  const RunFolder run = list_runs(place.runs()).at(0);
  tests::append_attempt(run, 1);
  tests::append_ended(run, "stopped", "", 0, {"train.tokens"});
  const FileLock lock = FileLock::acquire(run.lock_file());
  const InitialWeights weights = place.find("llama");
  REQUIRE(weights.notes.size() == 2);
  CHECK(contains(weights.notes[0], "still trains: those of step 0 are taken"));
  CHECK(contains(weights.notes[1], "files that it reads were changed while it trained: train.t"));
}

TEST_CASE("all configs of a command begin from the same checkpoint", "[run]") {
  const Runs runs({"train_a"});
  const RunFolder folder = runs.only();
  config::Experiment experiment = folder.experiment();
  experiment.train.initial_weights = "train_a";
  InitialModels models = initial_models(runs.path());
  const InitialWeights first = models.find(experiment);
  tests::save_checkpoint(folder.checkpoints(), 1000);
  CHECK(models.find(experiment).folder == first.folder);
}

TEST_CASE("what makes another function of the same weights is noted", "[run]") {
  WeightsPlace place;
  place.experiment.model.attention.position.theta = 1e6;
  place.experiment.model.init = model::ModelInit::lingua;
  const InitialWeights weights = place.find("llama");
  REQUIRE(weights.notes.size() == 1);
  REQUIRE(contains(weights.notes[0], "model.attention.position.theta is 1000000.0"));
  REQUIRE(contains(weights.notes[0], "with 10000.0"));
}

using tests::contains;
using tests::error_of;
using tests::TemporaryFolder;

/// An exported model and a folder for runs.
struct ImportPlace {
  explicit ImportPlace(int vocab_size = tests::small_model().vocab_size) {
    huggingface::ExportSource source;
    source.model = tests::small_model();
    source.model.vocab_size = vocab_size;
    source.max_positions = 128;
    source.checkpoint = tests::write_sample_checkpoint(folder.path(), source.model);
    source.tokenizer = tests::write_sample_tokenizer(folder.path());
    huggingface::export_model(source, model_folder(), {});
    hash = weights::content_hash(weights::ModelFiles(source.checkpoint).tensors());
  }
  fs::path model_folder() const { return folder / "My Model"; }
  fs::path runs() const { return folder / "runs"; }
  ImportedRun import(const std::string& name = "") const {
    return import_run(huggingface::import_model(model_folder()),
                      runs(),
                      {model_folder(), name, "forge import-hf"});
  }
  TemporaryFolder folder;
  std::string hash;
};

TEST_CASE("an imported model is a completed run with a checkpoint", "[run]") {
  const ImportPlace place;
  const ImportedRun imported = place.import();
  REQUIRE(imported.created);
  REQUIRE(tests::contains(imported.folder.id(), "My_Model-"));
  REQUIRE(imported.folder.state() == RunState::completed);
  const RunRecord record = imported.folder.record();
  REQUIRE(record.id == imported.folder.id());
  REQUIRE(record.imported_from == place.model_folder().string());
  REQUIRE(record.command == "forge import-hf");
  const RunModel model = open_run(imported.folder);
  REQUIRE(model.step == 0);
  REQUIRE(model.experiment.profile == "imported");
  REQUIRE(model.experiment.model.mlp.intermediate_size == 12);
  REQUIRE(model.experiment.train.seq_len == 128);
  REQUIRE(model.tokenizer == imported.folder.tokenizer_file());
  REQUIRE(weights::content_hash(weights::ModelFiles(model.checkpoint).tensors()) == place.hash);
  REQUIRE(list_runs(place.runs()).size() == 1);
}

TEST_CASE("the same model is imported once under a name", "[run]") {
  const ImportPlace place;
  const ImportedRun first = place.import("llama");
  const ImportedRun second = place.import("llama");
  REQUIRE_FALSE(second.created);
  REQUIRE(second.folder.path() == first.folder.path());
  REQUIRE(place.import("other").created);
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
  REQUIRE_FALSE(run->metric("eval_loss"));
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

TEST_CASE("a program of one's own does not begin from other weights than were planned", "[run]") {
  const Runs runs({"train_a-1234"});
  InitialModels models = initial_models(runs.path());
  config::Experiment experiment = open_model(runs.path(), "train_a-1234").experiment;
  experiment.train.initial_weights = "train_a-1234";
  const InitialWeights weights = models.find(experiment);
  RunRecord record = runs.only().record();
  record.identity.initial_weights = weights.hash;
  record.identity.program = "of files";
  worker::Request request;
  request.initial_weights = weights.folder.string();
  const auto fault = [&] {
    return error_of([&] { require_planned_weights(record, request, experiment.model); });
  };
  CHECK(fault().empty());
  record.identity.initial_weights = "other";
  CHECK(contains(fault(), "no longer those that it was planned with"));
  request.initial_weights += "-gone";
  CHECK_FALSE(fault().empty());
  request.resume_from = "a checkpoint of its own";
  CHECK(fault().empty());
}

}  // namespace
}  // namespace forge::run

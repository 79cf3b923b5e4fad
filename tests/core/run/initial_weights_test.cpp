#include "core/run/initial_weights.h"

#include "core/base/fs.h"
#include "core/hf/export_model.h"
#include "core/run/import_run.h"
#include "tests/core/hf/sample_model.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"

namespace forge::run {
namespace {

using tests::contains;
using tests::error_of;
using tests::TemporaryFolder;

/// A model folder and a run imported from it.
struct WeightsPlace {
  WeightsPlace() {
    hf::ExportSource source;
    source.model = experiment.model = tests::small_model();
    source.max_positions = 128;
    source.checkpoint = tests::write_sample_checkpoint(folder.path(), source.model);
    source.tokenizer = tests::write_sample_tokenizer(folder.path());
    hf::export_model(source, folder / "model", {});
    import_run(hf::import_model(folder / "model"), runs(), {folder / "model", "llama", ""});
  }
  fs::path runs() const { return folder / "runs"; }
  InitialWeights find(const std::string& name) {
    experiment.train.initial_weights = name;
    return find_initial_weights(experiment, runs());
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

TEST_CASE("what makes another function of the same weights is noted", "[run]") {
  WeightsPlace place;
  place.experiment.model.position.theta = 1e6;
  place.experiment.model.init = config::ModelInit::lingua;
  const InitialWeights weights = place.find("llama");
  REQUIRE(weights.notes.size() == 1);
  REQUIRE(contains(weights.notes[0], "model.position.theta is 1000000.0"));
  REQUIRE(contains(weights.notes[0], "with 10000.0"));
}

}  // namespace
}  // namespace forge::run

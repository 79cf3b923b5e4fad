#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/files.h"
#include "core/config/experiment.h"
#include "core/data/tokenizer/tokenizer.h"
#include "core/run/run_folder.h"
#include "core/worker/messages.h"

namespace forge::run {

/// The run that a user means: a run of `runs_dir` by its whole id, whatever stands here under that
/// name, then the path of a run's folder, else as find_run finds it in `runs_dir`. Throws Error
/// naming near misses where there is none.
RunFolder find_run_by_name_or_path(const std::filesystem::path& runs_dir, const std::string& name);

/// The model of a run at one of its checkpoints, or of a model folder.
struct RunModel {
  std::string name;                  ///< the run's id, or the name of the folder
  std::optional<Identity> identity;  ///< of the run, none for a folder
  std::string workspace, project;    ///< of the run's record, "" for a folder
  config::Experiment experiment;
  int64_t step = 0;
  std::filesystem::path checkpoint;   ///< its folder; weights::ModelFiles opens it
  std::filesystem::path tokenizer;    ///< tokenizer.json, "" where an imported run has none
  std::string tokenizer_fingerprint;  ///< "" where there is none
  std::string data_fingerprint;       ///< of the text that a run was trained on, "" for a folder
  /// What is wrong with each checkpoint of the run that is newer than the one taken.
  std::vector<std::string> skipped_checkpoints = {};
  /// Of a checkpoint of a run: it stays while a copy of this is there, though the run trains on.
  std::shared_ptr<const FileLock> hold = {};
};

/// Throws Error where the files of an external backend's command are not those that trained the
/// run: they would compute something else with its weights.
void require_program_of(const RunModel& model);

/// Reads what a run is made of. `step` names a checkpoint; without it the newest sound one is
/// taken, and held. Every byte of it is read. The tokenizer is the run folder's copy. Throws Error
/// where the run has no such checkpoint, or it is not sound.
RunModel open_run(const RunFolder& folder, std::optional<int64_t> step = std::nullopt);

/// Throws Error unless the run folder's copy of the tokenizer is that of the run's identity.
void require_recorded_tokenizer(const RunFolder& folder);

/// The model that a user means by RUN|DIR: a model folder of Hugging Face, else a run as
/// find_run_by_name_or_path finds it, at the checkpoint of `step`, else its newest. Throws Error
/// where there is neither.
RunModel open_model(const std::filesystem::path& runs_dir,
                    const std::string& run_or_folder,
                    std::optional<int64_t> step = std::nullopt);

/// The request of a job that reads the model.
worker::Request model_request(worker::Job job,
                              const RunModel& model,
                              const std::string& device,
                              int threads);

/// Throws Error for an answer of a worker that cannot be right.
[[noreturn]] void refuse_answer(const std::string& problem);

/// The model's tokenizer. Throws Error for a model that reads the ids of a task, or whose
/// tokenizer forge cannot read.
data::Tokenizer model_tokenizer(const RunModel& model);

/// Weights of a run or of a model folder that a new run begins from (train.initial_weights).
struct InitialWeights {
  std::filesystem::path folder;       ///< a checkpoint's or the model's, "": they are drawn
  std::string hash;                   ///< weights::content_hash of the model's weights, or ""
  std::string tokenizer_fingerprint;  ///< that they were trained with, "" where that is not known
  std::vector<std::string> notes;     ///< in what the model they come from differs
};

/// Throws Error where the weights that the run begins from are not those that it was planned with.
/// Of forge's own backends the worker says so: reading large weights twice would take long.
void require_planned_weights(const RunRecord& record,
                             const worker::Request& request,
                             const model::ModelConfig& model);

/// The models that the configs of one command name, each opened once: all seeds begin from the same
/// checkpoint, also of a run that trains on, which is held as long as this object lives.
class InitialModels {
 public:
  /// `open`: open_model in a runs folder.
  explicit InitialModels(std::function<RunModel(const std::string& run_or_folder)> open)
      : open_(std::move(open)) {}

  /// Finds the weights that the config names, as `open` finds its model, and checks that they are
  /// those of `experiment.model`. Throws Error naming the key.
  InitialWeights find(const config::Experiment& experiment);

 private:
  const RunModel& opened(const std::string& name);

  std::function<RunModel(const std::string&)> open_;
  std::map<std::string, RunModel> opened_;
};

}  // namespace forge::run

#pragma once

#include <filesystem>
#include <string>

#include "core/huggingface/import_model.h"
#include "core/run/run_folder.h"

namespace forge::run {

struct ImportRequest {
  std::filesystem::path origin;  ///< the folder that `model` was read from
  std::string name;              ///< what the run is called; "": as the folder
  std::string command;           ///< as typed
};

struct ImportedRun {
  RunFolder folder;
  bool created = false;  ///< false: the same model was imported under this name before
};

/// The config of a run that is only a model: everything but the section `model`, the length of rows
/// and the size of the vocabulary is the schema's default.
config::Experiment experiment_of(const huggingface::ImportedModel& model,
                                 const std::string& name,
                                 const std::filesystem::path& origin);

/// Makes a completed run of a model that was trained elsewhere: its folder holds a checkpoint of
/// step 0 with the weights in their own dtype, the tokenizer where there is one, and a record of
/// where it came from. Written aside and renamed. Its id is `name` and the hash of what it is made
/// of, so the same model is imported once. Throws Error for a name that is none for a folder.
ImportedRun import_run(const huggingface::ImportedModel& model,
                       const std::filesystem::path& runs_dir,
                       const ImportRequest& request);

}  // namespace forge::run

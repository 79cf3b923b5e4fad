#include "core/run/open_model.h"

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/hf/import_model.h"
#include "core/run/import_run.h"

namespace forge::run {

RunModel open_model(const fs::path& runs_dir,
                    const std::string& run_or_folder,
                    std::optional<int64_t> step) {
  if (!hf::is_model_folder(run_or_folder))
    return open_run(named_run(runs_dir, run_or_folder), step);
  if (step) {
    throw Error("'" + run_or_folder + "' is a model folder: it holds one model and no step " +
                std::to_string(*step));
  }
  const fs::path folder = fs::weakly_canonical(fs::absolute(run_or_folder));
  const hf::ImportedModel imported = hf::import_model(folder);
  RunModel model;
  model.name = folder.filename().string();
  model.experiment = experiment_of(imported, model.name, folder);
  model.checkpoint = folder;
  // A worker reads tokenizer.json alone; a file of another kind becomes one by 'forge import-hf'.
  if (imported.tokenizer.extension() == ".json") {
    model.tokenizer = imported.tokenizer;
    model.tokenizer_fingerprint = imported.tokenizer_fingerprint;
  }
  return model;
}

}  // namespace forge::run

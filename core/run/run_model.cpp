#include "core/run/run_model.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/json_text.h"
#include "core/base/text.h"
#include "core/config/json.h"
#include "core/data/tokenizer_json.h"
#include "core/protocol/messages.h"
#include "core/weights/checkpoint.h"

namespace forge::run {
namespace {

std::vector<std::string> ids_in(const fs::path& runs_dir) {
  std::vector<std::string> ids;
  for (const RunFolder& folder : list_runs(runs_dir)) ids.push_back(folder.id());
  return ids;
}

config::Experiment experiment_of(const RunFolder& folder) {
  try {
    return config::experiment_from_json(parse_json(read_file(folder.config_file())));
  } catch (const nlohmann::json::exception& problem) {
    throw Error("'" + shown_path(folder.config_file()) + "' is damaged: " + problem.what(),
                {},
                "",
                ExitCode::failed);
  }
}

fs::path checkpoint_of(const RunFolder& folder, std::optional<int64_t> step) {
  std::vector<std::string> steps;
  for (const fs::path& checkpoint : weights::list_checkpoints(folder.checkpoints())) {
    const int64_t at = std::stoll(checkpoint.filename().string());
    if (step == at) return checkpoint;
    steps.push_back(std::to_string(at));
  }
  const std::string run = "run '" + folder.id() + "'";
  if (step) {
    throw Error(run + " has no checkpoint of step " + std::to_string(*step),
                {},
                steps.empty() ? "it has none at all" : "it has those of " + join(steps, ", "));
  }
  const fs::path newest = folder.newest_checkpoint();
  if (!newest.empty()) return newest;
  throw Error(run + (steps.empty() ? " has no checkpoint" : " has damaged checkpoints only"),
              {},
              "a run saves one when it ends or is stopped",
              ExitCode::failed);
}

/// The run's own copy, else the one beside its token files.
fs::path tokenizer_file_of(const RunFolder& folder) {
  if (fs::exists(folder.tokenizer_file()) || !fs::exists(folder.request_file())) {
    return folder.tokenizer_file();
  }
  const protocol::Request request = protocol::request_from_line(read_file(folder.request_file()));
  if (request.train_tokens.empty()) return folder.tokenizer_file();
  return fs::path(request.train_tokens[0].path).parent_path() / "tokenizer.json";
}

void read_tokenizer(const RunFolder& folder, RunModel& model) {
  const Identity identity = folder.record().identity;
  model.tokenizer_fingerprint = identity.tokenizer_fingerprint;
  model.data_fingerprint = identity.data_fingerprint;
  if (model.tokenizer_fingerprint.empty()) return;
  model.tokenizer = tokenizer_file_of(folder);
  if (!fs::exists(model.tokenizer)) {
    throw Error("the tokenizer of run '" + folder.id() + "' is gone: no file '" +
                    shown_path(model.tokenizer) + "'",
                {},
                "'forge run' of its config prepares the data, and with it the tokenizer, again",
                ExitCode::failed);
  }
  const data::Tokenizer tokenizer = data::load_tokenizer(model.tokenizer);
  if (tokenizer.fingerprint() == model.tokenizer_fingerprint) return;
  throw Error("'" + shown_path(model.tokenizer) + "' is not the tokenizer that run '" +
                  folder.id() + "' was trained with",
              {},
              "",
              ExitCode::failed);
}

}  // namespace

RunFolder named_run(const fs::path& runs_dir, const std::string& name) {
  if (name.empty()) throw Error("the name of the run is empty", {}, "'forge runs' lists them");
  std::error_code unreadable;
  const RunFolder as_path(fs::weakly_canonical(fs::absolute(name), unreadable));
  if (fs::exists(as_path.record_file(), unreadable)) {
    const fs::path& path = as_path.path();
    return RunFolder(path.has_filename() ? path : path.parent_path());
  }
  if (auto found = find_run(runs_dir, name)) return *found;
  const std::string meant = did_you_mean(name, ids_in(runs_dir));
  throw Error("no run '" + name + "' in " + shown_path(runs_dir),
              {},
              meant.empty() ? "'forge runs' lists them" : meant);
}

RunModel open_run(const RunFolder& folder, std::optional<int64_t> step) {
  RunModel model;
  model.name = folder.id();
  model.experiment = experiment_of(folder);
  model.checkpoint = checkpoint_of(folder, step);
  model.step = std::stoll(model.checkpoint.filename().string());
  read_tokenizer(folder, model);
  return model;
}

}  // namespace forge::run

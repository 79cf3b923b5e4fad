#include "core/run/import_run.h"

#include <unistd.h>

#include <algorithm>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/staging.h"
#include "core/config/experiment.h"
#include "core/data/tokenizer/tokenizer_file.h"
#include "core/data/tokenizer/tokenizer_json.h"
#include "core/model/parameters.h"
#include "core/model/weights/checkpoint.h"
#include "core/run/event_log.h"
#include "core/run/host.h"

namespace forge::run {
namespace {

using Json = nlohmann::json;

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
}

/// The given name, or one made of the folder's.
std::string run_name(const ImportRequest& request) {
  std::string name = request.name;
  if (name.empty()) {
    const fs::path folder = fs::weakly_canonical(fs::absolute(request.origin));
    name = (folder.has_filename() ? folder : folder.parent_path()).filename().string();
    std::replace_if(
        name.begin(), name.end(), [](char c) { return !is_plain(c); }, '_');
  }
  if (std::all_of(name.begin(), name.end(), is_plain) && is_run_name(name)) {
    return name;
  }
  throw Error("'" + name + "' is no name for a run",
              "letters, digits, '-', '_' and '.', not beginning with one of the signs");
}

RunRecord record_of(const huggingface::ImportedModel& model,
                    const config::Experiment& experiment,
                    const ImportRequest& request) {
  RunRecord record;
  record.config = experiment.name;
  record.created = utc_timestamp();
  record.command = request.command;
  record.imported_from = fs::absolute(request.origin).lexically_normal().string();
  record.identity.experiment = identity_config(config::to_json(experiment));
  record.identity.initial_weights = weights::content_hash(model.weights);
  record.identity.tokenizer_fingerprint = model.tokenizer_fingerprint;
  record.identity.backend = experiment.backend;
  record.key = run_key(record.identity);
  record.id = experiment.name + "-" + record.key;
  return record;
}

/// Every key of the model was set by config.json of the folder.
Json origins_of(const config::Experiment& experiment, const RunRecord& record) {
  Json origins = Json::object();
  for (const auto& [key, value] : dotted_leaves(config::to_json(experiment).at("model")))
    origins["model." + key] = {{"origin", record.imported_from + "/config.json"},
                               {"set_by", "import-hf"}};
  return origins;
}

void write_events(const RunFolder& folder,
                  const huggingface::ImportedModel& model,
                  const RunRecord& record,
                  int64_t checkpoint_bytes) {
  worker::Started started;
  started.parameters = model::parameter_count(model.config.model);
  worker::CheckpointSaved saved;
  saved.path = "checkpoints/000000000";
  saved.bytes = checkpoint_bytes;
  worker::Result result;
  result.values = {{"imported_from", record.imported_from},
                   {"architecture", huggingface::class_name(model.config.architecture)},
                   {"weights_hash", record.identity.initial_weights}};
  EventLog log(folder.events_file());
  log.append(AttemptStarted{::getpid(), host_name(), "", {}}, 1);
  log.append(worker::to_json(started), 1);
  log.append(worker::to_json(saved), 1);
  log.append(worker::to_json(result), 1);
  log.append(AttemptEnded{RunState::completed, 0, 0}, 1);
  log.sync();
}

void write_folder(const RunFolder& folder,
                  const huggingface::ImportedModel& model,
                  const config::Experiment& experiment,
                  const RunRecord& record) {
  write_file_atomic(folder.config_file(), json_text(config::to_json(experiment), 2) + "\n");
  write_file_atomic(folder.origin_file(), json_text(origins_of(experiment, record), 2) + "\n");
  if (model.tokenizer.extension() == ".json") {
    write_file_atomic(folder.tokenizer_file(), read_file(model.tokenizer));
  } else if (!model.tokenizer.empty()) {
    data::save_tokenizer(data::read_tokenizer_file(model.tokenizer), folder.tokenizer_file());
  }
  int64_t bytes = 0;
  weights::write_checkpoint(folder.checkpoints(), {}, model.weights, {}, &bytes);
  write_events(folder, model, record, bytes);
  write_file_atomic(folder.record_file(), json_text(to_json(record), 2) + "\n");
  write_file_atomic(folder.done_file(), "");
}

}  // namespace

config::Experiment experiment_of(const huggingface::ImportedModel& model,
                                 const std::string& name,
                                 const fs::path& origin) {
  config::Experiment experiment;
  experiment.name = name;
  experiment.description = "imported from " + fs::absolute(origin).lexically_normal().string();
  experiment.profile = "imported";
  experiment.model = model.config.model;
  experiment.tokenizer.vocab_size = model.config.model.vocab_size;
  constexpr int64_t longest = 1 << 24;  // that the schema allows
  experiment.train.deterministic = true;
  experiment.train.seq_len = static_cast<int>(std::min(model.config.max_positions, longest));
  return experiment;
}

ImportedRun import_run(const huggingface::ImportedModel& model,
                       const fs::path& runs_dir,
                       const ImportRequest& request) {
  const config::Experiment experiment = experiment_of(model, run_name(request), request.origin);
  const RunRecord record = record_of(model, experiment, request);
  ImportedRun imported{RunFolder(runs_dir / record.id), false};
  if (imported.folder.state() == RunState::completed) {
    require_identity(imported.folder.record(), record.identity);
    return imported;
  }
  FolderWriter writer(imported.folder.path());
  write_folder(RunFolder(writer.path()), model, experiment, record);
  writer.replace();
  imported.created = true;
  return imported;
}

}  // namespace forge::run

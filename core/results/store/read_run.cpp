#include "core/results/store/read_run.h"

#include <unistd.h>

#include <vector>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/config/fields.h"
#include "core/model/cost.h"

namespace forge::store {
namespace fs = std::filesystem;

FileState file_state_of(const run::RunFolder& folder) {
  return {stamp_of(folder.record_file()),
          stamp_of(folder.config_file()),
          stamp_of(folder.events_file()),
          stamp_of(folder.annotations_file()),
          0};
}

namespace {

/// Whether a line ends in front of that byte.
bool ends_line(const fs::path& file, int64_t offset) {
  const FileDescriptor opened = open_if_exists(file);
  char last = '\0';
  return opened && ::pread(opened.get(), &last, 1, offset - 1) == 1 && last == '\n';
}

}  // namespace

bool continues(const FileState& before, const FileState& now, const fs::path& events_file) {
  if (before.record != now.record || before.config != now.config ||
      before.events_offset > now.events.size)
    return false;
  // Nothing was added: a line was edited, or the file restored from a copy.
  const bool is_rewritten = before.events.size == now.events.size && before.events != now.events;
  if (is_rewritten) return false;
  return before.events_offset == 0 ||
         (before.events.inode == now.events.inode && ends_line(events_file, before.events_offset));
}

Description describe(const run::RunFolder& folder) {
  const FileStamp of_record = stamp_of(folder.record_file());
  const FileStamp of_config = stamp_of(folder.config_file());
  const run::RunRecord record = folder.record();
  const nlohmann::json config_json = folder.config(record);
  const config::Experiment experiment = config::experiment_from_json(config_json);
  RunSummary run;
  run.id = folder.id();
  run.project = record.project;
  run.workspace = record.workspace;
  run.workspace_id = record.workspace_id;
  run.config = record.config;
  run.key = record.key;
  run.name = experiment.name;
  run.description = experiment.description;
  run.command = record.command;
  run.revision = record.revision;
  std::vector<std::string> planned_seeds;
  for (const int64_t seed : record.planned_seeds) planned_seeds.push_back(std::to_string(seed));
  run.planned_seeds = join(planned_seeds, ",");
  run.planned_claims = join(record.planned_claims, ",");
  if (record.planned_tables) run.planned_tables = json_text(nlohmann::json(*record.planned_tables));
  run.planned_config = record.planned_config;
  run.drawn_order = record.drawn_order;
  run.repeats = record.repeats;
  run.train_rows = record.train_rows;
  run.entropy_floor = record.entropy_floor;
  run.repeated_sentences = record.repeated_sentences;
  run.created = record.created;
  run.imported = record.imported;
  run.updated = record.created;
  run.profile = experiment.profile;
  run.backend = record.identity.backend;
  run.device_type = record.identity.device_type;
  run.threads = record.identity.threads;
  run.numerics_version = record.identity.numerics_version;
  run.recompute = config::name_of(experiment.train.recompute);
  run.seed = static_cast<int64_t>(experiment.seed);
  run.data_fingerprint = record.identity.data_fingerprint;
  run.tokenizer_fingerprint = record.identity.tokenizer_fingerprint;
  run.initial_weights_hash = record.identity.initial_weights;
  run.program = record.identity.program;
  const int64_t evaluated =
      record.evaluation_rows > 0 ? record.evaluation_rows : experiment.train.eval_rows;
  run.evaluation = std::to_string(evaluated) + " rows of " +
                   std::to_string(experiment.train.seq_len) + " tokens";
  run.max_steps = experiment.train.max_steps;
  const model::StateSize state = model::generation_state(experiment.model);
  run.state_per_token = state.per_token;
  run.fixed_state = state.fixed;
  run.tokens_per_step = int64_t{experiment.train.batch_size} * experiment.train.seq_len;
  return {of_record, of_config, std::move(run), json_text(config_json)};
}

NewEvents read_new_events(const run::RunFolder& folder, int64_t offset) {
  const FileStamp stamp = stamp_of(folder.events_file());
  return {stamp, run::read_event_lines(folder.events_file(), offset, max_event_bytes)};
}

}  // namespace forge::store

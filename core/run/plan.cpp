#include "core/run/plan.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/json_text.h"
#include "core/base/text.h"
#include "core/config/json.h"
#include "core/run/examiner.h"

namespace forge::run {
namespace {

Identity identity_of(const RunInputs& inputs) {
  const protocol::Environment& environment = inputs.backend.environment;
  Identity identity;
  identity.experiment = identifying_part(inputs.experiment);
  identity.data_fingerprint = inputs.data_fingerprint;
  identity.tokenizer_fingerprint = inputs.tokenizer_fingerprint;
  identity.backend = inputs.backend.hello.backend;
  identity.device_type = environment.device_type;
  identity.threads = environment.device_type == "cpu" ? environment.threads : 0;
  identity.numerics_version = inputs.backend.hello.numerics_version;
  identity.initial_weights = inputs.initial_weights.hash;
  return identity;
}

std::string with_suffix(const std::string& id, int number) {
  return number == 1 ? id : id + "-" + std::to_string(number);
}

/// How many runs of this id there are: id, id-2, … without a gap.
int runs_of(const std::string& id, const fs::path& runs_dir) {
  int number = 0;
  while (fs::exists(RunFolder(runs_dir / with_suffix(id, number + 1)).record_file())) ++number;
  return number;
}

Action action_for(const RunFolder& folder) {
  if (!fs::exists(folder.record_file())) return Action::start;
  switch (folder.state()) {
    case RunState::completed: return Action::cached;
    case RunState::running: return Action::running;
    case RunState::queued: return Action::start;
    case RunState::stopped:
    case RunState::failed: return Action::resume;
  }
  return Action::start;
}

/// The run of these inputs, its id without a suffix.
RunRecord record_of(const RunInputs& inputs) {
  RunRecord record;
  record.project = inputs.project;
  record.config = inputs.config;
  record.created = utc_timestamp();
  record.command = inputs.command;
  record.revision = inputs.revision;
  record.identity = identity_of(inputs);
  record.key = run_key(record.identity);
  record.id = inputs.config + "-" + record.key;
  // Configs may lie in folders; runs lie side by side.
  std::replace(record.id.begin(), record.id.end(), '/', '_');
  return record;
}

PlannedRun in_folder(RunRecord record, const fs::path& runs_dir) {
  const RunFolder folder(runs_dir / record.id);
  return {std::move(record), folder, action_for(folder)};
}

/// The request of the run. Device and threads are those that its identity was made of: on another
/// machine "auto" might be something else.
protocol::Request request_of(const PlannedRun& planned, const RunInputs& inputs) {
  const protocol::Environment& environment = inputs.backend.environment;
  protocol::Request request;
  request.job = protocol::Job::train;
  request.run_dir = fs::absolute(planned.folder.path()).string();
  request.identity = planned.record.key;
  request.experiment = inputs.experiment;
  request.train_tokens = inputs.train_tokens;
  request.evaluation_tokens = inputs.evaluation_tokens;
  request.selection_tokens = inputs.selection_tokens;
  ask_for_answers(config::experiment_from_json(inputs.experiment), request);
  request.resume_from = inputs.continuation.checkpoint.string();
  request.initial_weights = inputs.initial_weights.folder.string();
  request.initial_weights_hash = inputs.initial_weights.hash;
  request.device = inputs.device == "auto" ? environment.device_type : inputs.device;
  request.threads = environment.threads;
  return request;
}

std::string request_text(const PlannedRun& planned, const RunInputs& inputs) {
  return protocol::to_line(request_of(planned, inputs)) + "\n";
}

void write_new_folder(const PlannedRun& planned, const RunInputs& inputs) {
  const fs::path target = planned.folder.path();
  const fs::path aside =
      target.parent_path() / ("." + planned.record.id + ".tmp-" + std::to_string(::getpid()));
  const RunFolder folder(aside);
  remove_tree(aside);
  make_directories(aside);
  try {
    write_file_atomic(folder.config_file(), json_text(inputs.experiment, 2) + "\n");
    write_file_atomic(folder.origin_file(), json_text(inputs.origins, 2) + "\n");
    if (!inputs.tokenizer.empty()) {
      write_file_atomic(folder.tokenizer_file(), read_file(inputs.tokenizer));
    }
    write_file_atomic(folder.request_file(), request_text(planned, inputs));
    if (!inputs.continuation.checkpoint.empty()) {
      write_file_atomic(folder.events_file(), earlier_events(inputs.continuation));
    }
    write_file_atomic(folder.record_file(), json_text(to_json(planned.record), 2) + "\n");
    if (::rename(aside.c_str(), target.c_str()) != 0) {
      throw system_error("make the run folder '" + target.string() + "'", errno);
    }
  } catch (...) {
    std::error_code ignored;
    remove_tree(aside, ignored);
    // Another forge that planned the same run was faster: then the folder is as good as ours.
    if (fs::exists(planned.folder.record_file())) return;
    throw;
  }
  sync_path(target.parent_path());
}

}  // namespace

const std::string& name_of(Action action) {
  static const std::string names[] = {"new", "resumes", "running", "cached"};
  return names[static_cast<int>(action)];
}

PlannedRun plan_run(const RunInputs& inputs, const fs::path& runs_dir, bool force) {
  RunRecord record = record_of(inputs);
  const int existing = runs_of(record.id, runs_dir);
  record.id = with_suffix(record.id, force ? existing + 1 : std::max(existing, 1));
  return in_folder(std::move(record), runs_dir);
}

PlannedRun plan_under(const std::string& id, const RunInputs& inputs, const fs::path& runs_dir) {
  RunRecord record = record_of(inputs);
  const std::string& own = record.id;
  const bool has_suffix = id.size() > own.size() + 1 && starts_with(id, own + "-") &&
                          id.find_first_not_of("0123456789", own.size() + 1) == std::string::npos;
  if (id != own && !has_suffix)
    throw Error("the run '" + id + "' would be called '" + own + "' by what it is");
  record.id = id;
  return in_folder(std::move(record), runs_dir);
}

void write_run_folder(const PlannedRun& planned, const RunInputs& inputs) {
  if (!fs::exists(planned.folder.record_file())) {
    write_new_folder(planned, inputs);
  } else if (planned.action == Action::start || planned.action == Action::resume) {
    write_file_atomic(planned.folder.request_file(), request_text(planned, inputs));
  }
}

}  // namespace forge::run

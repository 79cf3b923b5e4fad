#include "core/run/request.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/json_file.h"
#include "core/base/owner.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/model/weights/checkpoint.h"
#include "core/project/workspace.h"
#include "core/run/inputs_hash.h"
#include "core/run/moved_files.h"
#include "core/run/needed_checkpoints.h"
#include "core/run/program_hash.h"
#include "core/run/queue/owners.h"

namespace forge::run {
std::vector<worker::TokenSource> token_sources(const data::PreparedData& prepared,
                                               const std::vector<data::PreparedRows>& files) {
  std::vector<worker::TokenSource> sources;
  for (const data::PreparedRows& file : files) {
    worker::TokenSource source;
    source.path = file.tokens.string();
    source.rows = file.rows;
    source.document_start = prepared.document_start;
    source.pad_id = prepared.pad_id;
    source.name = file.name;
    source.weight = file.weight;
    source.task = prepared.task;
    source.first_row = file.first_row;
    sources.push_back(std::move(source));
  }
  return sources;
}

namespace {

using Json = nlohmann::json;

/// Whether a word of a command is plain: a name, a number, or what a shell and forge take as it is.
bool is_plain_word(const std::string& word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char byte) {
    return std::isalnum(static_cast<unsigned char>(byte)) ||
           std::string_view("_.,:=+-").find(byte) != std::string_view::npos;
  });
}

/// Whether the setting of a `--set` names no program, folder or file, and no code.
bool is_plain_setting(const std::string& setting) {
  const std::string key = setting.substr(0, setting.find('='));
  const bool has_section = starts_with(key, "train.") || starts_with(key, "optimizer.") ||
                           (starts_with(key, "model.") && !starts_with(key, "model.blocks"));
  return setting.size() > key.size() && has_section;
}

/// Whether a command trains configs of the folder that it is typed in, and says no more than how
/// long, by which numbers and on what. Whoever wrote it can then make it start nothing of theirs.
bool says_numbers_alone(const std::string& typed) {
  const std::vector<std::string> words = split(typed, ' ');
  if (words.size() < 3 || words[0] != "forge" || words[1] != "run") return false;
  for (size_t i = 2; i < words.size(); ++i) {
    if (!is_plain_word(words[i])) return false;
    if (words[i][0] != '-') continue;  // the name of a config
    const std::string& option = words[i];
    const bool is_known = option == "--set" || option == "--seed" || option == "--profile" ||
                          option == "--threads" || option == "--device";
    if (!is_known || ++i == words.size() || !is_plain_word(words[i]) || words[i][0] == '-')
      return false;
    if (option == "--set" && !is_plain_setting(words[i])) return false;
  }
  return true;
}

}  // namespace

std::string rewriting_text(const RunRecord& record) {
  constexpr size_t longest = 200;
  const std::string& typed = record.command;
  const bool can_be_pasted =
      !record.is_imported() && typed.size() <= longest && says_numbers_alone(typed);
  if (can_be_pasted) return quoted_command(typed) + " writes it anew";
  const std::string plain = "forge run " + shell_quoted(record.config);
  const bool is_all = typed == plain;
  return quoted_command(plain) + " writes it anew" +
         (is_all ? ""
                 : ", with the options that the run was made with (" +
                       quoted_command("forge runs show " + shell_quoted(record.id)) +
                       " prints its command)");
}

namespace {

void require_same(const RunRecord& record,
                  const std::string& what,
                  const std::string& theirs,
                  const std::string& ours,
                  const std::string& hint) {
  if (theirs == ours) return;
  throw Error("run '" + record.id + "' cannot resume here: its " + what + " is " + theirs +
                  " and would be " + ours,
              hint);
}

worker::Request parse_request(const fs::path& file, const RunRecord& record) {
  try {
    return worker::request_from_line(read_file_within(file, 2 * worker::max_request_bytes));
  } catch (const Error& problem) {
    throw Error("'" + shown_path(file) + "': " + problem.message(),
                rewriting_text(record),
                ExitCode::failed)
        .with_cause(problem.cause());
  }
}

/// Throws Error where a request that was read is not one that forge made for this run.
void require_request_of(const RunRecord& record,
                        const worker::Request& request,
                        const fs::path& file) {
  require_config_of(record, request.experiment, file);
  const Identity& identity = record.identity;
  const bool on_cpu = identity.device_type == "cpu";
  const std::vector<std::tuple<std::string, bool>> parts = {
      {"job", request.job == worker::Job::train},
      {"identity", request.identity == record.key},
      {"initial_weights_hash", request.initial_weights_hash == identity.initial_weights},
      {"initial_weights", request.initial_weights.empty() == identity.initial_weights.empty()},
      {"device", starts_with(request.device, identity.device_type)},
      {"threads", !on_cpu || request.threads == identity.threads}};
  for (const auto& [key, is_same] : parts) {
    if (is_same) continue;
    throw Error("'" + shown_path(file) + "': " + key + " is not that of run '" + record.id + "'",
                "restore the file; " + rewriting_text(record),
                ExitCode::failed);
  }
}

/// The checkpoint of another run that was moved, or imported, into this runs folder since.
fs::path find_beside(const fs::path& checkpoint, const fs::path& runs_dir) {
  const fs::path run = run_of_checkpoint(checkpoint);
  if (run.empty() || path_exists(run)) return checkpoint;
  const RunFolder beside(runs_dir / run.filename());
  return path_exists(beside.path()) ? beside.checkpoints() / checkpoint.filename() : checkpoint;
}

}  // namespace

worker::Request read_request(const RunFolder& folder) {
  const fs::path file = folder.request_file();
  const RunRecord record = folder.record();
  if (!path_exists(file) && !record.imported_from.empty()) {
    throw Error("run '" + folder.id() + "' is a model that was imported: it has nothing to train",
                quoted_command("forge run CONFIG --set train.initial_weights=" +
                               shell_quoted(folder.id())) +
                    " trains on from its weights");
  }
  if (!path_exists(file)) {
    throw Error("'" + shown_path(file) + "' is missing", rewriting_text(record), ExitCode::failed);
  }
  worker::Request request;
  try {
    request = parse_request(file, record);
    require_request_of(record, request, file);
  } catch (const Json::exception& problem) {
    throw Error("'" + shown_path(file) + "' is damaged: " + json_problem(problem),
                rewriting_text(record),
                ExitCode::failed);
  }
  for (std::string* checkpoint : {&request.resume_from, &request.initial_weights})
    *checkpoint = find_beside(*checkpoint, fs::absolute(folder.path()).parent_path()).string();
  return request;
}

void require_same_program(const RunRecord& record, const config::Experiment& experiment) {
  const std::string& program = record.identity.program;
  if (program.empty() || program_hash(experiment.external) == program) return;
  throw Error("run '" + record.id + "' cannot go on: the files of its command '" +
                  join(experiment.external.command, " ") +
                  "' are not those that it was planned with",
              "restore them, or " + quoted_command("forge run " + shell_quoted(record.config)) +
                  " makes a new run of what is there now");
}

void require_same_backend(const RunRecord& record, const worker::BackendInfo& backend) {
  const Identity& identity = record.identity;
  const worker::Environment& environment = backend.environment;
  const std::string other = quoted_command("forge run " + shell_quoted(record.config)) +
                            " makes a new run for what is here";
  require_same(record, "backend", identity.backend, backend.hello.backend, other);
  require_same(record,
               "numerics version",
               std::to_string(identity.numerics_version),
               std::to_string(backend.hello.numerics_version),
               other);
  require_same(record, "device", identity.device_type, environment.device_type, other);
  require_same(record,
               "number of CPU threads",
               std::to_string(identity.threads),
               std::to_string(environment.device_type == "cpu" ? environment.threads : 0),
               other);
}

void remember_run_dir(const RunFolder& folder, const fs::path& path) try {
  worker::Request request = read_request(folder);
  const std::string now = fs::absolute(path).lexically_normal().string();
  if (std::exchange(request.run_dir, now) == now) return;
  queue::write_own_files(folder.path(),
                         {{folder.request_file().filename(), worker::to_line(request) + "\n"}});
} catch (const Error& problem) {
  if (may_pass(problem)) throw;
  // Without a request, or with one that is damaged, the run can still be looked at.
}

void refresh_request(const RunFolder& folder,
                     worker::Request request,
                     const data::PreparedData& data,
                     const std::string& workspace) {
  folder.require_own_files();
  const RunRecord record = folder.record();
  folder.config(record);  // it throws where the config is not the one that the run was begun with
  const std::string hint = "bring the text back that the run was begun with, or begin a new run";
  require_same(record, "data", record.identity.data_fingerprint, data.data_fingerprint, hint);
  require_same(
      record, "tokenizer", record.identity.tokenizer_fingerprint, data.tokenizer_fingerprint, hint);
  require_own_beginning(folder, request.resume_from);
  const std::string moved_to = moved_workspace(folder, record, request.run_dir);
  const bool is_moved = !moved_to.empty();
  // Before the request is written, which tells that the run was moved.
  remember_places(folder, request.experiment, is_moved ? moved_to : workspace, is_moved);
  request.run_dir = fs::absolute(folder.path()).string();
  request.train_tokens = token_sources(data, data.train);
  request.evaluation_tokens = token_sources(data, data.evaluation);
  request.validation_tokens = token_sources(data, data.validation);
  queue::write_own_files(folder.path(),
                         {{folder.request_file().filename(), worker::to_line(request) + "\n"}});
  mark_needed(folder);
}

fs::path run_of_checkpoint(const fs::path& checkpoint) {
  const fs::path run = checkpoint.parent_path().parent_path();
  return RunFolder(run).checkpoints() == checkpoint.parent_path() ? run : fs::path();
}

fs::path continued_checkpoint(const RunFolder& folder) {
  if (!path_exists(folder.request_file())) return "";
  try {
    return read_request(folder).resume_from;
  } catch (const Error& problem) {
    if (problem.exit_code() == ExitCode::storage) throw;
    return "";
  }
}

namespace {

/// Whether the checkpoint lies where its path says, and is of files alone: no link leads elsewhere.
bool is_without_links(const fs::path& checkpoint) {
  const fs::path run = run_of_checkpoint(checkpoint);
  if (run.empty()) return false;
  const fs::path runs_dir = fs::weakly_canonical(run.parent_path());
  if (fs::weakly_canonical(checkpoint) !=
      runs_dir / run.filename() / checkpoint.parent_path().filename() / checkpoint.filename())
    return false;
  const std::vector<fs::path> files = folder_entries(checkpoint);
  return std::none_of(files.begin(), files.end(), [](const fs::path& file) {
    std::error_code unknown;
    return fs::is_symlink(fs::symlink_status(file, unknown));
  });
}

/// Whether all of the checkpoint is of the user who wrote the file.
bool is_of_owner(const fs::path& checkpoint, const fs::path& file) {
  const std::string owner = owner_name(file);
  const std::vector<fs::path> files = folder_entries(checkpoint);
  return std::all_of(
      files.begin(), files.end(), [&](const fs::path& each) { return owner_name(each) == owner; });
}

}  // namespace

void require_own_beginning(const RunFolder& folder, const fs::path& checkpoint) {
  if (!is_folder(checkpoint)) return;
  if (project::lies_below(fs::absolute(checkpoint).lexically_normal(), fs::absolute(folder.path())))
    return;
  const fs::path file = folder.request_file();
  const std::string named =
      "run '" + folder.id() + "' would go on from checkpoint '" + shown_path(checkpoint) + "', ";
  if (!is_without_links(checkpoint))
    throw Error(named + "to which a link leads",
                "put the checkpoint itself in the place of the link",
                ExitCode::failed);
  if (queue::is_only_own(file)) return;
  if (queue::is_of_other_user(file)) {
    if (is_of_owner(checkpoint, file)) return;
    throw Error(named + "which is not of " + owner_name(file) + ", who wrote that",
                "'forge run CONFIG --continue RUN --force' makes a run of your own that does so",
                ExitCode::failed);
  }
  throw Error(named + "and others may have written that to '" + shown_path(file) + "'",
              "if it is right, " + quoted_command("chmod go-w " + shell_quoted(file.string())) +
                  " lets the run go on",
              ExitCode::failed);
}

void require_optimizer_state(const fs::path& checkpoint, const std::string& backend) {
  const bool is_own = backend == "libtorch" || backend == "pytorch";
  if (!is_own || path_exists(checkpoint / weights::optimizer_file)) return;
  throw Error("its checkpoint '" + shown_path(checkpoint) + "' has the weights alone",
              "'forge pack RUN --checkpoints', where it was trained, packs the optimizer's state, "
              "too; train.initial_weights starts a new run from the weights",
              ExitCode::failed);
}

namespace {

/// The first file of tokens that is gone, "". What a run was planned without is none.
std::string missing_tokens(const RunRecord& record, const worker::Request& request) {
  for (const auto* sources :
       {&request.train_tokens, &request.evaluation_tokens, &request.validation_tokens}) {
    for (const worker::TokenSource& source : *sources) {
      if (source.path.empty() || path_exists(source.path)) continue;
      return inputs_hash(request) == record.inputs_hash ? "" : source.path;
    }
  }
  return "";
}

}  // namespace

worker::Request restore_tokens(const RunFolder& folder,
                               worker::Request request,
                               const data::Progress& progress) {
  const RunRecord record = folder.record();
  const std::string missing = missing_tokens(record, request);
  if (missing.empty()) return request;
  worker::Request planned = read_request(folder);  // without what is of this attempt alone
  try {
    const data::PreparedData data =
        data::prepare(config::experiment_from_json(planned.experiment),
                      user_cache_dir(),
                      progress,
                      false,
                      {record.identity.data_fingerprint, record.identity.tokenizer_fingerprint});
    refresh_request(folder, planned, data);
  } catch (const Error& problem) {
    // Its hint may quote the text, and others may read what is recorded of this run.
    throw Error(
        "the run's tokens '" + shown_path(missing) +
            "' are gone and cannot be prepared anew: " + problem.message(),
        quoted_command("forge runs resume " + shell_quoted(record.id)) +
            " prepares them where the text is there, says what stands in the way, and goes on "
            "with the run",
        problem.exit_code())
        .with_cause(problem.cause());
  }
  planned = read_request(folder);
  request.train_tokens = planned.train_tokens;
  request.evaluation_tokens = planned.evaluation_tokens;
  request.validation_tokens = planned.validation_tokens;
  return request;
}

}  // namespace forge::run

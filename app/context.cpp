#include "app/context.h"

#include <nlohmann/json.hpp>

#include "app/terminal.h"
#include "backends/backends.h"
#include "core/base/clock.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/project/template_arguments.h"
#include "core/project/workspace_id.h"
#include "core/run/allowed_command.h"
#include "core/run/backend_support.h"
#include "core/run/moved_files.h"
#include "core/run/open_model.h"
#include "core/run/program_hash.h"
#include "core/run/request.h"
#include "core/run/run_folder.h"
#include "core/run/runs_dir.h"
#include "core/worker/tool.h"
#include "core/yaml/graph/read.h"

namespace forge::app {
namespace {

/// The folder that -p names, where it names one.
std::optional<fs::path> chosen_folder(const std::string& project, const fs::path& here) {
  if (project.empty()) return std::nullopt;
  const fs::path folder = project::absolute_folder(here / project);
  if (!is_folder(folder)) return std::nullopt;
  // A link to a project is that project, as it is where one goes there. One that lies in no
  // workspace is of the link's.
  std::error_code unreadable;
  const fs::path real = fs::canonical(folder, unreadable);
  return !unreadable && project::find_workspace(real) ? real : folder;
}

}  // namespace

Context::Context(std::string command_line, GlobalOptions globals)
    : command_line_(std::move(command_line)),
      globals_(std::move(globals)),
      here_(std::filesystem::current_path()),
      program_(program_path()),
      host_environment_(jinja::HostEnvironment::current()) {
  host_environment_.library_dir = project::library_folder(program_).string();
  if (!globals_.now.empty()) host_environment_.unix_time = parse_time(globals_.now);
}

std::string Context::project_option() const {
  return names_project() ? " -p " + shell_quoted(globals_.project) : "";
}

bool Context::names_workspace() const {
  const auto folder = chosen_folder(globals_.project, here_);
  return folder && is_same_path(*folder, workspace().root) && !project::is_project_folder(*folder);
}

const project::Workspace& Context::workspace() const {
  if (!workspace_) {
    if (const auto folder = chosen_folder(globals_.project, here_)) {
      workspace_ = project::find_workspace(*folder);
      if (workspace_) workspace_->shipped = project::is_shipped(*workspace_, here_, program_);
    }
    if (!workspace_) workspace_ = project::locate_workspace(here_, program_);
  }
  return *workspace_;
}

std::optional<std::filesystem::path> Context::project_folder() const {
  if (globals_.project.empty()) return project::enclosing_project_folder(workspace(), here_);
  if (const auto folder = chosen_folder(globals_.project, here_)) {
    return project::enclosing_project_folder(workspace(), *folder);
  }
  return project::find_project(
             workspace(), globals_.project, here_, host_environment_, render_cache_)
      .folder;
}

project::ProjectList Context::all_projects(bool search_here) const {
  if (const auto folder = chosen_folder(globals_.project, here_)) {
    return project::load_projects(
        project::projects_below(*folder), host_environment_, render_cache_);
  }
  if (search_here && !project::find_workspace(here_)) {
    project::ProjectList below =
        project::load_projects(project::projects_below(here_), host_environment_, render_cache_);
    if (!below.projects.empty() || !below.problems.empty()) return below;
  }
  return project::load_projects(
      project::projects_below(workspace().root), host_environment_, render_cache_);
}

project::Project Context::project() const {
  if (const auto folder = project_folder()) {
    return project::load_project(workspace(), *folder, host_environment_, render_cache_);
  }
  if (!globals_.project.empty()) {
    throw Error("no project in or above the folder '" + globals_.project + "'",
                "a project is a folder with meta.yaml; 'forge ls -r -p " +
                    shell_quoted(globals_.project) + "' lists those below it");
  }
  if (workspace().default_project.empty()) {
    throw Error("no project here, and the workspace names no default project",
                "go into a project's folder, or name a project with -p");
  }
  return project::load_project(workspace(),
                               workspace().root / workspace().default_project,
                               host_environment_,
                               render_cache_);
}

project::NamedConfig Context::find_config(const std::string& name) const {
  const std::string& wanted = name.empty() ? globals_.config : name;
  if (!wanted.empty() && globals_.project.empty()) {
    return project::find_config(workspace(), wanted, here_, host_environment_, render_cache_);
  }
  const project::Project own = project();
  return {own, project::config_of(own, wanted)};
}

run::RunFolder Context::find_run(const std::string& name) const {
  run::RunFolder run = run::find_run_by_name_or_path(runs_dir(), name);
  require_run_of_config(name, project_folder(), run);
  return run;
}

run::RunModel Context::open_model(const std::string& run_or_folder,
                                  std::optional<int64_t> step) const {
  return open_model_for(project_folder(), run_or_folder, step);
}

run::RunModel Context::open_model_for(const std::optional<fs::path>& own_project,
                                      const std::string& run_or_folder,
                                      std::optional<int64_t> step) const {
  run::RunModel model = run::open_model(runs_dir(), run_or_folder, step);
  const run::RunFolder run(run::run_of_checkpoint(model.checkpoint));
  const bool is_of_run = !run.path().empty() && path_exists(run.record_file());
  if (is_of_run) require_run_of_config(run_or_folder, own_project, run);
  return model;
}

std::vector<project::Project> Context::projects_with(
    const std::string& config, const std::optional<fs::path>& own_project) const {
  std::vector<project::Project> projects;
  if (own_project)
    projects.push_back(
        project::load_project(workspace(), *own_project, host_environment_, render_cache_));
  const auto lacks_config = [&](const project::Project& each) { return !each.find(config); };
  if (projects.empty() || lacks_config(projects.front())) projects = all_projects(false).projects;
  projects.erase(std::remove_if(projects.begin(), projects.end(), lacks_config), projects.end());
  return projects;
}

void Context::require_run_of_config(const std::string& name,
                                    const std::optional<fs::path>& own_project,
                                    const run::RunFolder& run) const {
  if (run.id() == name || name.find('/') != std::string::npos) return;
  std::vector<project::Project> meant;
  try {
    meant = projects_with(name, own_project);
  } catch (const Error&) {
    // Where no project can be read the name is the beginning of an id.
  }
  const run::RunRecord record = run.record();
  const auto has_made = [&](const project::Project& each) {
    return record.config == name &&
           run::is_of_project(run, record, each.workspace_root.string(), each.path);
  };
  if (meant.empty() || std::any_of(meant.begin(), meant.end(), has_made)) return;
  const std::string whose =
      record.config == name
          ? "project '" + (fs::path(record.workspace) / record.project).string() + "'"
          : "config '" + record.config + "'";
  throw Error("config '" + tables::printable(name) + "' has no run here, and '" +
                  tables::printable(run.id()) + "' is one of " + tables::printable(whose),
              "'forge run " + shell_quoted(name) + "' makes one; the whole id names the other one",
              ExitCode::failed);
}

jinja::Variables Context::parse_arguments(const project::NamedConfig& config,
                                          const yaml::NodePtr& document) const {
  return project::parse_template_arguments(
      project::read_template_arguments(graph::read_graph(document)),
      globals_.template_arguments,
      {config.config.name,
       globals_.command_options,
       host_environment_.home_directory,
       config::all_key_paths()});
}

void Context::require_no_template_arguments() const {
  if (globals_.template_arguments.empty()) return;
  const std::string& option = globals_.template_arguments.front();
  throw Error("unknown option '" + option + "'",
              did_you_mean(option,
                           globals_.command_options,
                           "only the templates of a config take options of their own"));
}

ChosenConfig Context::config(const std::string& name) const {
  project::NamedConfig named = find_config(name);
  if (globals_.template_arguments.empty()) return {std::move(named), {}};
  jinja::Variables variables = parse_arguments(named, parse(named).root);
  return {std::move(named), std::move(variables)};
}

config::ParsedConfig Context::parse(const project::NamedConfig& config) const {
  return config::parse_config(config.project, config.config, host_environment_, {});
}

config::Document Context::document(const project::NamedConfig& config,
                                   const config::ParsedConfig& without_arguments) const {
  if (globals_.template_arguments.empty()) {
    return config::read_document(
        config.project, config.config, without_arguments, host_environment_);
  }
  return config::read_document(config.project,
                               config.config.name,
                               host_environment_,
                               parse_arguments(config, without_arguments.root));
}

config::Document Context::document(const project::NamedConfig& config) const {
  return document(config, parse(config));
}

config::ResolveOptions Context::resolve_options(const std::vector<std::string>& overrides) const {
  config::ResolveOptions options;
  options.overrides = overrides;
  options.host_environment = host_environment_;
  return options;
}

namespace {

/// Whether the driver of a GPU has made its files on this machine.
bool may_have_gpu() {
  return path_exists("/dev/nvidiactl") || path_exists("/dev/kfd") || path_exists("/dev/dxg");
}

}  // namespace

config::ResolveOptions Context::resolve_options(const config::Document& document,
                                                const std::vector<std::string>& overrides) const {
  config::ResolveOptions options = resolve_options(overrides);
  if (!document.root || !may_have_gpu()) return options;
  try {
    if (!config::chooses_profile_by_device(document, options)) return options;
    const config::Experiment experiment = config::resolve(document, options).experiment;
    // A program of somebody else's is not started to look at a config.
    if (experiment.backend == config::own_backend || is_forges_own(experiment.external))
      options.backend_has_gpu =
          describe_backend(experiment, "auto", 0).environment.device_type != "cpu";
  } catch (const Error&) {
    // Who resolves the config says what is wrong with it; without a backend it is of a CPU.
  }
  return options;
}

config::ResolvedConfig Context::resolve(const config::Document& document,
                                        const std::vector<std::string>& overrides) const {
  return config::resolve(document, resolve_options(document, overrides));
}

std::optional<project::Workspace> Context::own_workspace() const {
  if (!workspace().shipped) return workspace();
  const auto around = project::find_workspace(here_);
  return around && !project::is_shipped(*around, here_, program_) ? around : std::nullopt;
}

std::string Context::workspace_id(const std::string& root) const {
  const bool is_own = !workspace().shipped && workspace().root == root;
  return is_own ? project::made_workspace_id(root) : project::workspace_id(root);
}

void Context::describe_own_blocks(config::ResolvedConfig& resolved) const {
  worker::LocalLauncher launcher;  // of its own: several threads may ask
  backends::describe_own_blocks(resolved, backend_folders(), launcher);
}

std::filesystem::path Context::runs_dir() const {
  const auto own = own_workspace();
  return run::runs_dir(own ? own->root : here_);
}

std::vector<std::filesystem::path> Context::backend_folders() const {
  return config::backend_folders(
      project_folder().value_or(fs::path()), workspace().root, host_environment_.library_dir);
}

std::string Context::workspace_with(const std::string& project) const {
  for (const auto& found : {own_workspace(), project::find_workspace(runs_dir())})
    if (found && project::is_project_folder(found->root / project)) return found->root;
  return "";
}

nlohmann::json Context::find_files(const nlohmann::json& config,
                                   const std::string& workspace,
                                   const std::string& project,
                                   const std::string& moved_to) const {
  std::vector<run::MovedFolder> moved;
  if (!moved_to.empty()) moved.push_back({workspace, moved_to, true});
  if (!workspace.empty()) {
    moved.push_back({workspace, workspace_with(project)});
    moved.push_back({fs::path(workspace) / project, project_folder().value_or("")});
  }
  // A forge of its own place has the backends that came with the one of another.
  const nlohmann::json::json_pointer place("/external/working_directory");
  const fs::path backend = config.value(place, "");
  if (backend.parent_path().filename() == "backends" && !host_environment_.library_dir.empty())
    moved.push_back({backend.parent_path(),
                     fs::path(host_environment_.library_dir).parent_path() / "backends"});
  return run::find_moved_files(config, moved);
}

void Context::find_files(run::RunModel& model) const {
  model.experiment = config::experiment_from_json(
      find_files(config::to_json(model.experiment), model.workspace, model.project));
}

std::unique_ptr<worker::Backend> Context::backend(const config::Experiment& experiment) const {
  return backends::make_backend(experiment, program_);
}

std::unique_ptr<worker::Backend> Context::backend_for(worker::Job job,
                                                      const run::RunModel& model,
                                                      const std::string& device,
                                                      int threads) const {
  require_allowed_command(model.name, model.identity.value_or(run::Identity()), model.experiment);
  run::require_program_of(model);
  run::require_readable(job, model.experiment, describe_backend(model.experiment, device, threads));
  return backend(model.experiment);
}

void Context::require_allowed_command(const std::string& run,
                                      const run::Identity& identity,
                                      const config::Experiment& experiment) const {
  if (globals_.allow_command) run::allow_command(identity, experiment);
  run::require_allowed_command(run, identity, experiment);
}

const worker::BackendInfo& Context::describe_backend(const config::Experiment& experiment,
                                                     const std::string& device,
                                                     int threads) const {
  const config::ExternalConfig& external = experiment.external;
  const nlohmann::json key = {experiment.backend,
                              external.command,
                              external.working_directory,
                              external.environment,
                              device,
                              threads};
  const std::lock_guard lock(mutex_);
  const auto known = backend_infos_.find(key);
  if (known != backend_infos_.end()) return known->second;
  return backend_infos_[key] = backend(experiment)->describe(launcher_, device, threads);
}

bool Context::is_forges_own(const config::ExternalConfig& external) const {
  const fs::path library = fs::path(host_environment_.library_dir).parent_path();
  const fs::path folder = external.working_directory;
  // In a clone that one works in, backends of one's own lie beside them.
  return run::is_called_as_forges_own(folder) && !library.empty() &&
         is_same_path(folder.parent_path(), library / "backends");
}

std::string Context::program_hash(const config::Experiment& experiment) const {
  return is_forges_own(experiment.external) ? "" : run::program_hash(experiment.external);
}

run::InitialWeights Context::initial_weights(const config::ResolvedConfig& config) const {
  const std::lock_guard lock(mutex_);
  const fs::path folder = fs::path(config.workspace) / config.project;
  std::optional<fs::path> own_project;
  if (project::is_project_folder(folder)) own_project = folder;
  const auto open = [this, own_project](const std::string& name) {
    return open_model_for(own_project, name, {});
  };
  return initial_models_.try_emplace(folder.string(), open).first->second.find(config.experiment);
}

std::string Context::current_weights(const nlohmann::json& config,
                                     const project::Project& project) const {
  const nlohmann::json* const name = find_value(config, "train.initial_weights");
  if (!name || !name->is_string() || *name == "") return "";
  const auto [known, is_new] =
      current_weights_.try_emplace({project.path, *name, config.at("model")});
  if (!is_new) return known->second;
  try {
    config::ResolvedConfig resolved;
    resolved.workspace = project.workspace_root.string();
    resolved.project = project.path;
    resolved.experiment = config::experiment_from_json(config);
    known->second = initial_weights(resolved).hash;
  } catch (const Error&) {
    // 'forge run' says what is wrong with it; what its runs found stands.
  }
  return known->second;
}

const std::string& Context::revision() const {
  if (!revision_) revision_ = worker::git_revision(launcher_, workspace().root);
  return *revision_;
}

const std::optional<data::DataFingerprints>& Context::data_fingerprints(
    const config::ResolvedConfig& config, const data::DataFingerprints& before) const {
  const nlohmann::json& json = config.json;
  const nlohmann::json key = {json.at("data"),
                              json.at("tokenizer"),
                              config.experiment.model.vocab_size,
                              config.experiment.train.seq_len,
                              config.experiment.train.document_mask,
                              before.data,
                              before.tokenizer};
  const auto known = data_fingerprints_.find(key);
  if (known != data_fingerprints_.end()) return known->second;
  const auto found = data::find_fingerprints(config.experiment,
                                             user_cache_dir(),
                                             ProgressLine("looking for data").phase_reporter(),
                                             before);
  if (found) print_new_warnings(found->warnings);
  return data_fingerprints_[key] = found;
}

const data::DataFingerprints& Context::current_fingerprints(const nlohmann::json& config) const {
  const auto [known, is_new] =
      current_fingerprints_.try_emplace({config.at("data"), config.at("tokenizer")});
  if (!is_new) return known->second;
  try {
    known->second = data::current_fingerprints(config::experiment_from_json(config),
                                               user_cache_dir(),
                                               ProgressLine("looking for data").phase_reporter());
  } catch (const Error&) {
    // 'forge run' says what is wrong with it; what its runs found stands.
  }
  return known->second;
}

void require_training(const config::ResolvedConfig& resolved, const std::string& lacks) {
  if (resolved.trains) return;
  throw Error("'" + resolved.config_name + "' is a model for other configs to use: " + lacks,
              "name a training config; 'forge ls' lists them");
}

}  // namespace forge::app

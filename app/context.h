#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/config/backend.h"
#include "core/config/resolve.h"
#include "core/data/rows/prepare.h"
#include "core/jinja/render.h"
#include "core/project/names.h"
#include "core/project/workspace.h"
#include "core/run/open_model.h"
#include "core/worker/launcher.h"

namespace forge::run {
struct RunModel;
}

namespace forge::app {

/// Options that every command has.
struct GlobalOptions {
  std::string project;  ///< -p: a folder or a name, "" where none is given
  std::string config;   ///< -t before the command: used where the command names none
  std::string now;      ///< --now: the time that templates see, "" for the clock's
  /// Options that the command does not know: arguments for the config's templates, as typed.
  std::vector<std::string> template_arguments;
  bool allow_command = false;  ///< --allow-command
  /// The command's own options, for suggestions.
  std::vector<std::string> command_options;
};

/// A config with the variables that the command line gives its templates.
struct ChosenConfig : project::NamedConfig {
  jinja::Variables variables;
};

/// Where the program was called and what it finds from there. Everything is looked up on demand:
/// a command pays only for what it uses.
class Context {
 public:
  Context(std::string command_line, GlobalOptions globals);

  const std::string& command_line() const { return command_line_; }  ///< as typed
  const std::filesystem::path& here() const { return here_; }
  const std::filesystem::path& program() const { return program_; }
  const jinja::HostEnvironment& host_environment() const { return host_environment_; }
  bool names_project() const { return !globals_.project.empty(); }  ///< whether -p is given
  /// Whether -p is a whole workspace, by its folder, which is no project itself.
  bool names_workspace() const;
  /// " -p PATH" for the commands that a command prints, "" where none is given.
  std::string project_option() const;

  /// The workspace around the folder of -p, else around the current one, else the one that came
  /// with the program.
  const project::Workspace& workspace() const;
  /// Folder of the project of -p, else of the one around the current folder, if there is one.
  std::optional<std::filesystem::path> project_folder() const;
  /// All projects below the folder of -p, else of the workspace around the current folder. Outside
  /// any workspace: with `search_here` those below the current folder, if any, else the shipped
  /// ones.
  project::ProjectList all_projects(bool search_here) const;
  /// The project of -p, else the one around the current folder, else the workspace's default.
  project::Project project() const;
  /// A config by name, of the project of -p where that is given, else of the whole workspace; ""
  /// is that of -t, else the project's default config.
  project::NamedConfig find_config(const std::string& name) const;
  /// run::find_run_by_name_or_path in the runs folder. Throws Error where the name is that of a
  /// config of the project, or of others where it has none of that name, and the only run whose id
  /// begins so is another config's.
  run::RunFolder find_run(const std::string& name) const;
  /// run::open_model in the runs folder, with the same Error.
  run::RunModel open_model(const std::string& run_or_folder,
                           std::optional<int64_t> step = {}) const;
  /// The same with the arguments that the command line gives to its templates.
  ChosenConfig config(const std::string& name) const;

  /// The document of a config, which a command reads once.
  config::Document document(const project::NamedConfig& config) const;
  config::Document document(const std::string& config_name) const {
    return document(find_config(config_name));
  }
  /// A config without arguments for its templates, and its document, which is rendered again only
  /// if the command line gives arguments.
  config::ParsedConfig parse(const project::NamedConfig& config) const;
  config::Document document(const project::NamedConfig& config,
                            const config::ParsedConfig& without_arguments) const;

  /// For a CPU, with the values of --set.
  config::ResolveOptions resolve_options(const std::vector<std::string>& overrides) const;
  /// For what `forge run` would train the document with here, where one of forge's own backends
  /// does: profile auto is another one with a GPU.
  config::ResolveOptions resolve_options(const config::Document& document,
                                         const std::vector<std::string>& overrides) const;
  config::ResolvedConfig resolve(const config::Document& document,
                                 const std::vector<std::string>& overrides) const;

  /// The hash of the weights that a config of the project names, as they are now; "" where it names
  /// none, or they are not there.
  std::string current_weights(const nlohmann::json& config, const project::Project& project) const;

  /// Gives the config's blocks of one's own, if it has any, their descriptions: their code runs
  /// (backends::describe_own_blocks).
  void describe_own_blocks(config::ResolvedConfig& resolved) const;

  /// Throws Error at an unknown option where a command names no config that may declare it.
  void require_no_template_arguments() const;

  /// The workspace to write into: that of the command, or, where that came with the program, the
  /// one around the current folder, if any. Nothing is written into one that came with the program.
  std::optional<project::Workspace> own_workspace() const;
  /// The id of a workspace; the command's own one is given one if it has none.
  std::string workspace_id(const std::string& root) const;
  std::filesystem::path runs_dir() const;
  /// Where backends may be declared: in the project, the workspace and forge's own library.
  std::vector<std::filesystem::path> backend_folders() const;
  /// The backend of a resolved config.
  std::unique_ptr<worker::Backend> backend(const config::Experiment& experiment) const;
  /// The same for a job that reads a model. Throws Error where the backend cannot do it.
  std::unique_ptr<worker::Backend> backend_for(worker::Job job,
                                               const run::RunModel& model,
                                               const std::string& device,
                                               int threads) const;
  /// A run's config as find_moved_files finds it, from the workspace and the project that the run
  /// was made in. They may have been moved to the workspace or project here, or to the one around
  /// the runs folder; `moved_to`: to this one, and what is in their place is another workspace's.
  nlohmann::json find_files(const nlohmann::json& config,
                            const std::string& workspace,
                            const std::string& project,
                            const std::string& moved_to = "") const;
  /// The same of a run's model.
  void find_files(run::RunModel& model) const;
  /// Root of the workspace here that has such a project, else of the one around the runs folder,
  /// "" where none has it.
  std::string workspace_with(const std::string& project) const;
  /// Throws Error where a run's config names a program that this user has not allowed, now with
  /// --allow-command or before.
  void require_allowed_command(const std::string& run,
                               const run::Identity& identity,
                               const config::Experiment& experiment) const;
  /// The backend's description of itself and of this machine. A command asks each backend once for
  /// a device. Any thread may ask.
  const worker::BackendInfo& describe_backend(const config::Experiment& experiment,
                                              const std::string& device,
                                              int threads) const;
  /// Whether the backend comes with forge. Its program may be started whatever a workspace says.
  bool is_forges_own(const config::ExternalConfig& external) const;
  /// Identity::program of a run. forge's own programs are known by their numerics_version, "".
  std::string program_hash(const config::Experiment& experiment) const;
  /// run::InitialModels of this command. A name means what it means in the config's project. Any
  /// thread may ask.
  run::InitialWeights initial_weights(const config::ResolvedConfig& config) const;
  /// The commit of the workspace, "" outside git. A command looks for it once.
  const std::string& revision() const;
  /// What data::find_fingerprints finds, looked for once for all configs of the same data.
  const std::optional<data::DataFingerprints>& data_fingerprints(
      const config::ResolvedConfig& config, const data::DataFingerprints& known) const;
  /// What data::current_fingerprints finds for a run's config, looked for once for all configs of
  /// the same data; empty where the files cannot be read, which a table of old runs may well
  /// outlive.
  const data::DataFingerprints& current_fingerprints(const nlohmann::json& config) const;
  /// Starts workers.
  worker::Launcher& launcher() const { return launcher_; }

 private:
  /// open_model, where a name is meant from that project.
  run::RunModel open_model_for(const std::optional<std::filesystem::path>& own_project,
                               const std::string& run_or_folder,
                               std::optional<int64_t> step) const;
  /// The project with a config of that name: the own one, else all of the workspace that have it.
  std::vector<project::Project> projects_with(
      const std::string& config, const std::optional<std::filesystem::path>& own_project) const;
  /// Throws find_run's Error for a run that was found by the name.
  void require_run_of_config(const std::string& name,
                             const std::optional<std::filesystem::path>& own_project,
                             const run::RunFolder& run) const;
  /// The template arguments of the command line, parsed as `document` declares them.
  jinja::Variables parse_arguments(const project::NamedConfig& config,
                                   const yaml::NodePtr& document) const;

  std::string command_line_;
  GlobalOptions globals_;
  std::filesystem::path here_;
  std::filesystem::path program_;
  jinja::HostEnvironment host_environment_;
  std::shared_ptr<project::RenderCache> render_cache_ = std::make_shared<project::RenderCache>();
  mutable std::optional<project::Workspace> workspace_;
  mutable std::optional<std::string> revision_;
  mutable std::map<nlohmann::json, std::optional<data::DataFingerprints>> data_fingerprints_;
  mutable std::map<nlohmann::json, data::DataFingerprints> current_fingerprints_;
  mutable std::map<nlohmann::json, std::string> current_weights_;
  mutable worker::LocalLauncher launcher_;
  mutable std::mutex mutex_;  ///< of what follows, which threads that check configs look up
  mutable std::map<nlohmann::json, worker::BackendInfo> backend_infos_;
  mutable std::map<std::string, run::InitialModels> initial_models_;  // of each project's folder
};

/// Throws Error for a config that only describes a model; `lacks` is the reason: "it has no data".
void require_training(const config::ResolvedConfig& resolved, const std::string& lacks);

}  // namespace forge::app

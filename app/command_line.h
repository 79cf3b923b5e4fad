#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "app/context.h"
#include "app/terminal.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

/// How commands declare what they take. CLI11 parses the command line; its header costs four
/// seconds in every file that includes it, so commands use these handles instead. `--help`, the
/// manual page and shell completion all follow from the same declarations.
namespace forge::app {

/// What the parsed command line asks for; returns the exit code.
using Action = std::function<int(const Context&)>;

/// What help and completion show of an argument beyond what CLI11 keeps.
struct ArgumentTexts {
  std::string value_name;            ///< "FILE"; it also decides what completion offers
  std::string default_text;          ///< "", or the value that is used when none is given
  std::vector<std::string> choices;  ///< the only values accepted; empty: any
};

/// The parts of a command's help that follow its options. Paragraphs are wrapped to the terminal;
/// lines that begin with two spaces are printed as they are.
struct CommandTexts {
  std::string details, examples, see_also;
};

/// The command line while it is declared and parsed.
struct Program {
  GlobalOptions globals;
  Action action;
  /// Commands whose unknown options are arguments for the config's templates.
  std::set<const CLI::App*> takes_template_arguments;
  std::map<const CLI::App*, CommandTexts> commands;
  std::map<const CLI::Option*, ArgumentTexts> arguments;
};

/// An option or a positional of a command.
class Argument {
 public:
  Argument(CLI::Option* option, ArgumentTexts& texts) : option_(option), texts_(&texts) {}

  Argument& required();
  /// Help shows the value that the variable has now as the default.
  Argument& show_default();
  /// May be given several times, with one value each.
  Argument& repeated();
  Argument& excludes(const Argument& other);
  /// Help does not list it.
  Argument& hidden();
  // What is accepted.
  Argument& one_of(const std::vector<std::string>& choices);
  Argument& at_least(int64_t least);
  Argument& between(int64_t least, int64_t most);
  Argument& positive();
  Argument& existing_file();

 private:
  /// Refuses a number of which `holds` is false.
  Argument& require(std::function<bool(double)> holds, const std::string& problem);

  CLI::Option* option_;
  ArgumentTexts* texts_;
};

template <class Options>
struct NewCommand;

/// A command that is being declared: a handle on one of CLI11's.
class Command {
 public:
  Command(CLI::App& app, Program& program) : app_(&app), program_(&program) {}

  Command add_command(const std::string& name, const std::string& summary) const;
  /// One that calls `run(context, options)`, unless one of its subcommands is chosen.
  template <class Options>
  NewCommand<std::decay_t<Options>> add_command(const std::string& name,
                                                const std::string& summary,
                                                int (*run)(const Context&, Options)) const;
  /// Help does not list it.
  const Command& hidden() const;
  /// Exactly one of its subcommands must be given.
  const Command& requires_subcommand() const;

  /// `names` is "-o,--output <FILE>", or "CONFIG" or "LEFT <RUN>" for a positional. Without <FILE>
  /// the help shows N for a number, else the name in capitals. Without a value on the command line
  /// `value` is unchanged. Value is std::string, int, int64_t, uint64_t, double,
  /// std::vector<std::string>, or std::optional of int or int64_t.
  template <class Value>
  Argument add_option(const std::string& names, Value& value, const std::string& help) const;
  Argument add_flag(const std::string& names, bool& value, const std::string& help) const;
  /// Options declared from here on are listed under this heading.
  const Command& heading(const std::string& heading) const;

  const Command& details(const std::string& text) const;
  const Command& examples(const std::string& text) const;
  const Command& see_also(const std::string& text) const;

  /// What the command does, unless one of its subcommands is chosen.
  void set_action(Action action) const;

  CLI::App& app() const { return *app_; }
  Program& program() const { return *program_; }

 private:
  CLI::App* app_;
  Program* program_;
};

/// A command with the options that its arguments fill in.
template <class Options>
struct NewCommand {
  Command command;
  Options& options;
};

template <class Options>
NewCommand<std::decay_t<Options>> Command::add_command(const std::string& name,
                                                       const std::string& summary,
                                                       int (*run)(const Context&, Options)) const {
  const auto options = std::make_shared<std::decay_t<Options>>();
  const Command command = add_command(name, summary);
  command.set_action([options, run](const Context& context) { return run(context, *options); });
  return {command, *options};
}

/// -p, which may stand before or after the command's name.
void add_project_option(const Command& command);
/// --set
void add_set_option(const Command& command, std::vector<std::string>& overrides);
/// For every command that resolves configs, besides their names: -p, --now and the arguments of
/// their templates.
void add_template_options(const Command& command);
/// CONFIG and the options of add_template_options.
void add_config_argument(const Command& command, std::string& config);
/// A config that a command resolves.
struct ConfigOptions {
  std::string config;
  std::vector<std::string> overrides;
};
/// CONFIG, its options and --set.
void add_config_options(const Command& command, ConfigOptions& options);
/// CONFIG... and the options of add_template_options.
void add_configs_argument(const Command& command,
                          std::vector<std::string>& configs,
                          const std::string& help);
/// RUN: one run, by its id, a unique prefix of it, or its folder.
void add_run_argument(const Command& command, std::string& run, const std::string& name = "RUN");
/// MODEL: a run or a Hugging Face folder.
void add_model_argument(const Command& command, std::string& model);
/// --step: a checkpoint of a run
void add_step_option(const Command& command, std::optional<int64_t>& step);
/// --precision of a model that is evaluated
void add_precision_option(const Command& command, std::string& precision);
/// Gives the config the precision of --precision, "" for its own.
void set_precision(const std::string& precision, config::TrainConfig& train);
/// --device and --threads
void add_device_options(const Command& command, std::string& device, int& threads);
/// --allow-command, for commands that start what a run folder names
void add_allow_command_option(const Command& command);
/// -o and --json
void add_output_options(const Command& command, OutputOptions& options);
/// --json
void add_json_option(const Command& command, bool& json, const std::string& help = "Print JSON");

/// Each adds one command.
void add_arguments(const Command& app);
void add_backend_test(const Command& app);
void add_backends(const Command& app);
void add_bench(const Command& app);
void add_block(const Command& app);
void add_check(const Command& app);
void add_compare(const Command& app);
void add_completion(const Command& app);
void add_data(const Command& app);
void add_diff(const Command& app);
void add_doctor(const Command& app);
void add_eval(const Command& app);
void add_explain(const Command& app);
void add_export(const Command& app);
void add_export_hf(const Command& app);
void add_export_markdown(const Command& app);
void add_gc(const Command& app);
void add_generate(const Command& app);
void add_graph(const Command& app);
void add_import(const Command& app);
void add_import_hf(const Command& app);
void add_import_lingua(const Command& app);
void add_index(const Command& app);
void add_init(const Command& app);
void add_keys(const Command& app);
void add_logits(const Command& app);
void add_ls(const Command& app);
void add_man(const Command& app);
void add_meta(const Command& app);
void add_model(const Command& app);
void add_pack(const Command& app);
void add_pp(const Command& app);
void add_project(const Command& app);
void add_report(const Command& app);
void add_run(const Command& app);
void add_runs(const Command& app);
void add_show(const Command& app);
void add_status(const Command& app);
void add_store(const Command& app);
void add_supervise(const Command& app);
void add_targets(const Command& app);
void add_tlist(const Command& app);
void add_trefs(const Command& app);
void add_why(const Command& app);
void add_workspace(const Command& app);
// Below `forge data` and `forge runs`.
void add_data_get(const Command& data);
void add_data_prepare(const Command& data);
void add_data_sample(const Command& data);
void add_runs_logs(const Command& runs);
void add_runs_control(const Command& runs);  ///< stop, save, resume
void add_runs_edit(const Command& runs);     ///< archive, note, tag, rm, undo

}  // namespace forge::app

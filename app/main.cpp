#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "app/command_line.h"
#include "app/help.h"
#include "app/terminal.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/text.h"

namespace forge::app {
namespace {

struct CommandGroup {
  const char* heading;
  std::vector<void (*)(const Command&)> commands;
};

/// Adds every command, in the order in which --help, the manual page and completion list them.
void add_commands(const Command& app) {
  const std::vector<CommandGroup> groups = {
      {"Run experiments", {add_run, add_status, add_runs, add_why}},
      {"Report results",
       {add_compare, add_export, add_export_markdown, add_report, add_pack, add_import}},
      {"Use models", {add_model, add_generate, add_eval, add_export_hf, add_import_hf, add_logits}},
      {"Inspect configs",
       {add_ls, add_show, add_explain, add_diff, add_check, add_keys, add_arguments}},
      {"Inspect templates",
       {add_pp, add_trefs, add_tlist, add_targets, add_graph, add_meta, add_index}},
      {"Create", {add_init, add_workspace, add_project, add_block, add_import_lingua}},
      {"Data, machine and speed",
       {add_data, add_bench, add_backends, add_backend_test, add_doctor, add_gc, add_store}},
      {"Shell", {add_completion, add_man}}};
  for (const CommandGroup& group : groups) {
    for (const auto add : group.commands) {
      add(app);
      app.app().get_subcommands([](const CLI::App*) { return true; }).back()->group(group.heading);
    }
  }
  add_supervise(app);
}

/// What the word may mean among forge's commands: others' name of one, or commands of commands.
std::vector<std::string> usual_names(const CLI::App& app, const std::string& word) {
  static const std::map<std::string, std::string> names = {{"train", "run"},
                                                           {"sweep", "run --sweep"},
                                                           {"start", "run"},
                                                           {"list", "ls"},
                                                           {"ps", "status"},
                                                           {"log", "runs logs"},
                                                           {"delete", "runs rm"},
                                                           {"evaluate", "eval"},
                                                           {"table", "compare"},
                                                           {"tables", "compare"},
                                                           {"results", "compare"},
                                                           {"plot", "compare --curves"},
                                                           {"lint", "check"},
                                                           {"version", "--version"}};
  const auto found = names.find(word);
  if (found != names.end()) return {found->second};
  std::vector<std::string> paths;
  for (const CLI::App* command : listed_commands(app)) {
    if (find_command(*command, word)) paths.push_back(command->get_name() + " " + word);
  }
  return paths;
}

/// Index of the word that names the command, known or not; words.size() if there is none. Options
/// of the program itself come before it.
size_t place_of_command(const CLI::App& app, const std::vector<std::string>& words) {
  size_t place = 0;
  for (; place < words.size() && starts_with(words[place], "-"); ++place) {
    const CLI::Option* option = app.get_option_no_throw(words[place]);
    if (option && option->get_items_expected_min() > 0) ++place;
  }
  return std::min(place, words.size());
}

/// The command that the words name; `place` becomes the index of its last word. Null where they
/// name none. Throws Error for a name that no command has, even where --help follows it.
const CLI::App* find_named_command(const CLI::App& app,
                                   const std::vector<std::string>& words,
                                   size_t& place) {
  const CLI::App* command = &app;
  for (place = place_of_command(app, words); place < words.size(); ++place) {
    const std::string& word = words[place];
    const CLI::App* child = find_command(*command, word);
    const bool needs_one = command == &app || command->get_require_subcommand_min() > 0;
    if (!child && needs_one && !starts_with(word, "-")) {
      const auto names = texts_of(listed_commands(*command), &CLI::App::get_name);
      const std::string path = command == &app ? "forge" : "forge " + command->get_name();
      const auto usual = command == &app ? usual_names(app, word) : std::vector<std::string>();
      throw Error("no command '" + word + "'",
                  usual.empty()
                      ? did_you_mean(word, names, "'" + path + " --help' lists the commands")
                      : "did you mean '" + join(usual, "' or '") + "'?");
    }
    if (!child) break;
    command = child;
  }
  if (command != &app) --place;
  return command == &app ? nullptr : command;
}

/// A word that begins like an option and is no negative number.
bool is_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && word[1] != '.' && (word[1] < '0' || word[1] > '9');
}

/// Whether the command has the option itself; the value of a short one may follow it directly.
bool has_option(const CLI::App& command, const std::string& word) {
  const bool is_long = starts_with(word, "--");
  if (word == "--") return true;
  const std::string name = is_long ? word.substr(0, word.find('=')) : word.substr(0, 2);
  return command.get_option_no_throw(name) != nullptr;
}

/// Moves options that the command does not know, each with the words up to the next option, from
/// the command line into the template arguments: a config's templates declare options of their own,
/// and which ones is known only once the config is. Returns the rest for the parser.
std::vector<std::string> take_template_arguments(const CLI::App& app,
                                                 Program& program,
                                                 const std::vector<std::string>& words) {
  size_t place = 0;
  const CLI::App* command = find_named_command(app, words, place);
  if (!command || program.takes_template_arguments.count(command) == 0) return words;
  program.globals.command_options = long_names(command->get_options());
  std::vector<std::string> kept;
  bool taking = false;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > place && is_option(words[i])) taking = !has_option(*command, words[i]);
    (taking ? program.globals.template_arguments : kept).push_back(words[i]);
  }
  return kept;
}

/// Throws Error where the shell leaves the process too little to work with: that would show as a
/// hang, a crash, or as words of a library about something else.
void require_limits() {
  struct Need {
    int resource;
    rlim_t least;
    const char* what;
    const char* hint;
  };
  for (const Need& need :
       {Need{RLIMIT_NOFILE, 64, "open files", "'ulimit -n 1024' allows more"},
        Need{RLIMIT_STACK, 2 << 20, "bytes of stack", "'ulimit -s 8192' allows more"}}) {
    struct rlimit limit {};
    if (::getrlimit(need.resource, &limit) != 0 || limit.rlim_cur >= need.least) continue;
    throw Error("forge needs " + std::to_string(need.least) + " " + need.what +
                    ", and this shell allows " + std::to_string(limit.rlim_cur),
                need.hint,
                ExitCode::failed);
  }
}

/// 'forge help run' asks for what 'forge run --help' prints.
std::vector<std::string> with_help_option(const CLI::App& app, std::vector<std::string> words) {
  const size_t place = place_of_command(app, words);
  if (place == words.size() || words[place] != "help") return words;
  words.erase(words.begin() + static_cast<std::ptrdiff_t>(place));
  words.emplace_back("--help");
  return words;
}

/// A closed standard stream would be the first file that is opened, and be written into. In its
/// place comes one that cannot be used.
void occupy_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    const int unusable = stream == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", unusable) != stream) std::_Exit(static_cast<int>(ExitCode::failed));
  }
}

/// Why not all of the output could be written.
Error lost_output() {
  if ((::fcntl(STDOUT_FILENO, F_GETFL) & O_ACCMODE) == O_RDONLY)
    return Error("cannot write to standard output: it is closed",
                 "let it go somewhere, such as '> /dev/null'",
                 ExitCode::failed);
  return Error("cannot write to standard output: part of it is lost",
               "look for a full disk, or a limit on file sizes ('ulimit -f')",
               ExitCode::storage);
}

int run_program(int argument_count, char** arguments) {
  Program program;
  CLI::App app("Run controlled experiments on language-model architectures", "forge");
  app.formatter_fn([&](const CLI::App* command, const std::string& path, CLI::AppFormatMode) {
    return help_text(*command, path, program);
  });
  app.set_help_flag("-h,--help", "Print help");
  app.set_version_flag(
      "--version", std::string("forge ") + FORGE_VERSION, "Print the version of forge");
  app.require_subcommand(0, 1);
  const Command command(app, program);
  command.examples(
      "forge ls                          list the configs of this project\n"
      "forge run train_canon_ac          train a config and print its result\n"
      "forge run --all --seeds 3         every training config, with three seeds each\n"
      "forge compare --table positions   the ablation table of the runs\n"
      "forge export-markdown             all tables as RESULTS.md");
  add_project_option(command);
  command.add_option(
      "-t,--config", program.globals.config, "Config, for a command that is given none");
  add_commands(command);
  const std::vector<std::string> words =
      with_help_option(app, {arguments + 1, arguments + argument_count});
  std::vector<std::string> rest = take_template_arguments(app, program, words);
  std::reverse(rest.begin(), rest.end());  // CLI11 takes them from the end
  try {
    app.parse(std::move(rest));
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    throw usage_error(app, error);
  }
  if (!program.action) {
    std::cout << app.help();
    return static_cast<int>(ExitCode::done);
  }
  return program.action(Context("forge " + shell_quoted(words), program.globals));
}

}  // namespace
}  // namespace forge::app

int main(int argument_count, char** arguments) {
  forge::app::occupy_closed_streams();
  std::signal(SIGXFSZ,
              SIG_IGN);  // a file beyond 'ulimit -f' is then an error, told like a full disk
  std::signal(SIGCHLD, SIG_DFL);  // who ignores it passes that on, and no child could be waited for
  const forge::tables::PrintableOutput out(std::cout), err(std::cerr);
  try {
    forge::app::require_limits();
    forge::app::tell_of_waiting();
    const int code = forge::app::run_program(argument_count, arguments);
    if (std::cout.flush()) return code;
    const forge::Error lost = forge::app::lost_output();
    const std::string& shown_by = forge::app::lost_output_is_shown_by();
    if (shown_by.empty()) throw forge::Error(lost);
    std::cerr << "warning: " << lost.message() << "; " << forge::quoted_command(shown_by)
              << " shows the results\n";
    return code;
  } catch (const std::exception& problem) {
    const forge::Error error = forge::as_error(problem);
    std::cerr << forge::describe(error) << "\n";
    return static_cast<int>(error.exit_code());
  }
}

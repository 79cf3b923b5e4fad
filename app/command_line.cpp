#include "app/command_line.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <type_traits>
#include <utility>

#include <CLI/CLI.hpp>

#include "core/base/error.h"
#include "core/base/text.h"

namespace forge::app {
namespace {

template <class Value>
struct NumberIn {
  using Type = Value;
};
template <class Value>
struct NumberIn<std::optional<Value>> {
  using Type = Value;
};

/// What is wrong with a text as a number of the type, "" where nothing is. It follows the option's
/// name: "--seeds" "must be a whole number, not 'x'".
template <class Number>
std::string number_problem(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  if constexpr (std::is_floating_point_v<Number>) {
    std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0') return "must be a number, not '" + text + "'";
    return "";
  } else {
    bool fits = true;
    if constexpr (std::is_unsigned_v<Number>) {
      std::strtoull(text.c_str(), &end, 0);
      if (starts_with(text, "-") && *end == '\0') return "must be at least 0, not " + text;
    } else {
      const long long number = std::strtoll(text.c_str(), &end, 0);
      fits = number >= std::numeric_limits<Number>::min() &&
             number <= std::numeric_limits<Number>::max();
    }
    if (text.empty() || *end != '\0') return "must be a whole number, not '" + text + "'";
    const size_t first = text.find_first_of("0123456789");
    if (text[first] == '0' && first + 1 < text.size() && std::isdigit(text[first + 1]))
      return "must be without a leading zero, which makes it octal: " + text;
    return fits && errno == 0 ? "" : "is too large for a whole number: " + text;
  }
}

/// "--project" -> "PROJECT", of the first long name.
std::string capitals(const std::string& names) {
  std::string name = names.substr(names.find("--") + 2);
  for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::toupper(c));
  return name;
}

/// Options and positionals of a command would be lost where a subcommand is chosen behind them.
void refuse_arguments_before_subcommand(const CLI::App& command, const CLI::App& chosen) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0 || option->check_name("--project")) continue;
    throw Error("'" + command.get_name() + " " + chosen.get_name() + "' takes no " +
                    option->get_name() + " before '" + chosen.get_name() + "'",
                "put it after '" + chosen.get_name() + "' or omit it");
  }
}

}  // namespace

Argument& Argument::required() {
  option_->required();
  return *this;
}

Argument& Argument::show_default() {
  option_->capture_default_str();
  texts_->default_text = option_->get_default_str();
  return *this;
}

Argument& Argument::repeated() {
  // Else CLI11 takes every word behind the value, too, also the command's CONFIG.
  option_->expected(1)->allow_extra_args(false)->multi_option_policy(
      CLI::MultiOptionPolicy::TakeAll);
  return *this;
}

Argument& Argument::excludes(const Argument& other) {
  option_->excludes(other.option_);
  return *this;
}

Argument& Argument::hidden() {
  option_->group("");
  return *this;
}

Argument& Argument::one_of(const std::vector<std::string>& choices) {
  texts_->choices = choices;
  option_->check([choices](const std::string& word) {
    if (std::find(choices.begin(), choices.end(), word) != choices.end()) return std::string();
    return "must be one of " + join(choices, ", ") + ", not '" + word + "'";
  });
  return *this;
}

Argument& Argument::require(std::function<bool(double)> holds, const std::string& problem) {
  option_->check([holds = std::move(holds), problem](const std::string& number) {
    const bool held = holds(std::strtod(number.c_str(), nullptr));
    return held ? std::string() : problem + ", not " + number;
  });
  return *this;
}

Argument& Argument::at_least(int64_t least) {
  return require([least](double number) { return number >= double(least); },
                 "must be at least " + std::to_string(least));
}

Argument& Argument::between(int64_t least, int64_t most) {
  return require(
      [least, most](double number) { return number >= double(least) && number <= double(most); },
      "must be from " + std::to_string(least) + " to " + std::to_string(most));
}

Argument& Argument::positive() {
  return require([](double number) { return number > 0; }, "must be greater than 0");
}

Argument& Argument::existing_file() {
  option_->check([](const std::string& file) {
    const bool exists = CLI::ExistingFile(file).empty();
    return exists ? std::string() : "names a file that does not exist: '" + file + "'";
  });
  return *this;
}

Command Command::add_command(const std::string& name, const std::string& summary) const {
  return Command(*app_->add_subcommand(name, summary), *program_);
}

const Command& Command::hidden() const {
  app_->group("");
  return *this;
}

const Command& Command::requires_subcommand() const {
  app_->require_subcommand(1);
  return *this;
}

template <class Value>
Argument Command::add_option(const std::string& names,
                             Value& value,
                             const std::string& help) const {
  using Number = typename NumberIn<Value>::Type;
  const size_t value_start = names.find(" <");
  CLI::Option* option = app_->add_option(names.substr(0, value_start), value, help);
  ArgumentTexts& texts = program_->arguments[option];
  if constexpr (std::is_arithmetic_v<Number>) {
    option->check([](const std::string& text) { return number_problem<Number>(text); });
    texts.value_name = "N";
  } else {
    texts.value_name = option->get_positional() ? names : capitals(names);
  }
  if (value_start != std::string::npos)
    texts.value_name = names.substr(value_start + 2, names.size() - value_start - 3);
  // An empty value, as of a variable that a script has not set, would count as none.
  const bool needs_text =
      std::is_same_v<Value, std::string> && !option->get_positional() && texts.value_name != "TEXT";
  if (needs_text)
    option->check([help](const std::string& text) {
      return text.empty() ? "must not be empty; it is: " + help : "";
    });
  return Argument(option, texts);
}

template Argument Command::add_option(const std::string&, std::string&, const std::string&) const;
template Argument Command::add_option(const std::string&,
                                      std::vector<std::string>&,
                                      const std::string&) const;
template Argument Command::add_option(const std::string&,
                                      std::vector<int64_t>&,
                                      const std::string&) const;
template Argument Command::add_option(const std::string&, int&, const std::string&) const;
template Argument Command::add_option(const std::string&, int64_t&, const std::string&) const;
template Argument Command::add_option(const std::string&, uint64_t&, const std::string&) const;
template Argument Command::add_option(const std::string&, double&, const std::string&) const;
template Argument Command::add_option(const std::string&,
                                      std::optional<int>&,
                                      const std::string&) const;
template Argument Command::add_option(const std::string&,
                                      std::optional<int64_t>&,
                                      const std::string&) const;

Argument Command::add_flag(const std::string& names, bool& value, const std::string& help) const {
  CLI::Option* option = app_->add_flag(names, value, help);
  return Argument(option, program_->arguments[option]);
}

const Command& Command::heading(const std::string& heading) const {
  app_->option_defaults()->group(heading);
  return *this;
}

const Command& Command::details(const std::string& text) const {
  program_->commands[app_].details = text;
  return *this;
}

const Command& Command::examples(const std::string& text) const {
  program_->commands[app_].examples = text;
  return *this;
}

const Command& Command::see_also(const std::string& text) const {
  program_->commands[app_].see_also = text;
  return *this;
}

void Command::set_action(Action action) const {
  app_->callback([app = app_, program = program_, action = std::move(action)] {
    const std::vector<CLI::App*> chosen = app->get_subcommands();
    if (chosen.empty()) {
      program->action = action;
    } else {
      refuse_arguments_before_subcommand(*app, *chosen.front());
    }
  });
}

void add_project_option(const Command& command) {
  command.add_option("-p,--project",
                     command.program().globals.project,
                     "Project: its folder, or its path in the workspace or the end of that path");
}

void add_set_option(const Command& command, std::vector<std::string>& overrides) {
  command
      .add_option(
          "--set <KEY=VALUE>", overrides, "Override a key of the config, e.g. train.max_steps=4")
      .repeated();
}

void add_template_options(const Command& command) {
  add_project_option(command);
  command.add_option("--now <TIME>",
                     command.program().globals.now,
                     "Time that templates see: 2026-01-31T12:00:00 (UTC) or seconds since 1970");
  command.program().takes_template_arguments.insert(&command.app());
}

void add_config_argument(const Command& command, std::string& config) {
  command.add_option(
      "CONFIG",
      config,
      "Config name or a unique prefix. Arguments of its templates follow it, e.g. "
      "--text tiny_stories ('forge arguments' lists them) [default: the project's default config]");
  add_template_options(command);
}

void add_config_options(const Command& command, ConfigOptions& options) {
  add_config_argument(command, options.config);
  add_set_option(command, options.overrides);
}

void add_configs_argument(const Command& command,
                          std::vector<std::string>& configs,
                          const std::string& help) {
  command.add_option("CONFIG",
                     configs,
                     help +
                         ", from the whole workspace. Arguments of their templates follow, e.g. "
                         "--text tiny_stories");
  add_template_options(command);
}

void add_run_argument(const Command& command, std::string& run, const std::string& name) {
  command.add_option(name + " <RUN>", run, "Run id, a unique prefix of it, or a run folder")
      .required();
}

void add_model_argument(const Command& command, std::string& model) {
  command.add_option("MODEL", model, "Run, or a Hugging Face model folder").required();
}

void add_step_option(const Command& command, std::optional<int64_t>& step) {
  command.add_option("--step", step, "Checkpoint of the run [default: the newest]").at_least(0);
}

void add_precision_option(const Command& command, std::string& precision) {
  command
      .add_option(
          "--precision", precision, "Precision of the computation [default: train.precision]")
      .one_of({"float32", "float64"});
}

void set_precision(const std::string& precision, config::TrainConfig& train) {
  if (precision == "float32") train.precision = model::Precision::float32;
  if (precision == "float64") train.precision = model::Precision::float64;
}

void add_device_options(const Command& command, std::string& device, int& threads) {
  command.add_option("--device", device, "Device: auto, cpu, cuda or cuda:N").show_default();
  command.add_option("--threads", threads, "CPU threads [default: all cores]").between(1, 1024);
}

void add_allow_command_option(const Command& command) {
  command.add_flag(
      "--allow-command",
      command.program().globals.allow_command,
      "Allow the program or Python block that a run brings along; remembered for the run");
}

void add_output_options(const Command& command, OutputOptions& options) {
  command.add_option(
      "-o,--output <FILE>", options.file, "File to write [default: standard output]");
  command.add_flag("--force", options.force, "Replace the file of -o");
  add_json_option(command, options.json);
}

void add_json_option(const Command& command, bool& json, const std::string& help) {
  command.add_flag("--json", json, help);
}

}  // namespace forge::app

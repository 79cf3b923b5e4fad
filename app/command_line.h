#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

/// How commands say what they take. It is CLI11 underneath, whose header costs four seconds in
/// every file that includes it: through this one, command_line.cpp pays for all commands.
namespace forge::app {

/// An option or a positional of a command.
class Argument {
 public:
  explicit Argument(CLI::Option* option) : option_(option) {}

  Argument& required();
  /// What stands for its value in the help, e.g. FILE.
  Argument& type_name(const std::string& name);
  /// The help says the value that it has now.
  Argument& capture_default();
  /// May be given several times, with one value each.
  Argument& repeated();
  Argument& excludes(const Argument& other);
  // What is accepted.
  Argument& one_of(const std::vector<std::string>& words);
  Argument& between(int64_t least, int64_t most);
  Argument& positive();
  Argument& non_negative();
  Argument& existing_file();

 private:
  CLI::Option* option_;
};

/// A command as it is being described; a handle on one of CLI11's.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app) {}

  Command add_subcommand(const std::string& name, const std::string& description) const;
  /// One that help does not list.
  Command add_hidden_subcommand(const std::string& name, const std::string& description) const;
  /// Exactly one of its subcommands must be given.
  const Command& requires_subcommand() const;

  /// `names` are those of CLI11: "-o,--output", or "config" for a positional. Without a value from
  /// the command line `value` stays as it is.
  Argument add_option(const std::string& names, std::string& value, const std::string& help) const;
  Argument add_option(const std::string& names,
                      std::vector<std::string>& values,
                      const std::string& help) const;
  Argument add_option(const std::string& names, int& value, const std::string& help) const;
  Argument add_option(const std::string& names, int64_t& value, const std::string& help) const;
  Argument add_option(const std::string& names, uint64_t& value, const std::string& help) const;
  Argument add_option(const std::string& names, double& value, const std::string& help) const;
  Argument add_option(const std::string& names,
                      std::optional<int>& value,
                      const std::string& help) const;
  Argument add_option(const std::string& names,
                      std::optional<int64_t>& value,
                      const std::string& help) const;
  Argument add_flag(const std::string& names, bool& value, const std::string& help) const;

  /// Printed below the help: remarks and examples.
  void footer(const std::string& text) const;
  /// What happens when the command has been parsed.
  void callback(std::function<void()> run) const;

  /// Of the command line that was parsed: the name of its subcommand, "" where none was given.
  std::string chosen_subcommand() const;

  CLI::App& app() const { return *app_; }

 private:
  CLI::App* app_;
};

}  // namespace forge::app

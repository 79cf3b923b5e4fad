#include "app/command_line.h"

#include <CLI/CLI.hpp>
#include <utility>

namespace forge::app {

Argument& Argument::required() {
  option_->required();
  return *this;
}

Argument& Argument::type_name(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Argument& Argument::capture_default() {
  option_->capture_default_str();
  return *this;
}

Argument& Argument::repeated() {
  option_->expected(1)->take_all()->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return *this;
}

Argument& Argument::excludes(const Argument& other) {
  option_->excludes(other.option_);
  return *this;
}

Argument& Argument::one_of(const std::vector<std::string>& words) {
  option_->check(CLI::IsMember(words));
  return *this;
}

Argument& Argument::between(int64_t least, int64_t most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Argument& Argument::positive() {
  option_->check(CLI::PositiveNumber);
  return *this;
}

Argument& Argument::non_negative() {
  option_->check(CLI::NonNegativeNumber);
  return *this;
}

Argument& Argument::existing_file() {
  option_->check(CLI::ExistingFile);
  return *this;
}

Command Command::add_subcommand(const std::string& name, const std::string& description) const {
  return Command(*app_->add_subcommand(name, description));
}

Command Command::add_hidden_subcommand(const std::string& name,
                                       const std::string& description) const {
  return Command(*app_->add_subcommand(name, description)->group(""));
}

const Command& Command::requires_subcommand() const {
  app_->require_subcommand(1);
  return *this;
}

Argument Command::add_option(const std::string& names,
                             std::string& value,
                             const std::string& help) const {
  return Argument(app_->add_option(names, value, help));
}

Argument Command::add_option(const std::string& names,
                             std::vector<std::string>& values,
                             const std::string& help) const {
  return Argument(app_->add_option(names, values, help));
}

Argument Command::add_option(const std::string& names, int& value, const std::string& help) const {
  return Argument(app_->add_option(names, value, help));
}

Argument Command::add_option(const std::string& names,
                             int64_t& value,
                             const std::string& help) const {
  return Argument(app_->add_option(names, value, help));
}

Argument Command::add_option(const std::string& names,
                             uint64_t& value,
                             const std::string& help) const {
  return Argument(app_->add_option(names, value, help));
}

Argument Command::add_option(const std::string& names,
                             double& value,
                             const std::string& help) const {
  return Argument(app_->add_option(names, value, help));
}

Argument Command::add_option(const std::string& names,
                             std::optional<int>& value,
                             const std::string& help) const {
  return Argument(app_->add_option(names, value, help));
}

Argument Command::add_option(const std::string& names,
                             std::optional<int64_t>& value,
                             const std::string& help) const {
  return Argument(app_->add_option(names, value, help));
}

Argument Command::add_flag(const std::string& names, bool& value, const std::string& help) const {
  return Argument(app_->add_flag(names, value, help));
}

void Command::footer(const std::string& text) const { app_->footer(text); }

void Command::callback(std::function<void()> run) const { app_->callback(std::move(run)); }

std::string Command::chosen_subcommand() const {
  const std::vector<CLI::App*> chosen = app_->get_subcommands();
  return chosen.empty() ? "" : chosen[0]->get_name();
}

}  // namespace forge::app

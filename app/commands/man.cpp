#include <iostream>
#include <sstream>
#include <string>

#include "app/command_line.h"
#include "app/help.h"
#include "core/base/text.h"

namespace forge::app {
namespace {

/// Text as roff takes it: backslashes and hyphens as such, no line that looks like a request.
std::string escaped(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool at_start = i == 0 || text[i - 1] == '\n';
    if (at_start && (text[i] == '.' || text[i] == '\'')) result += "\\&";
    if (text[i] == '\\') {
      result += "\\e";
    } else if (text[i] == '-') {
      result += "\\-";
    } else {
      result += text[i];
    }
  }
  return result;
}

std::string roff_heading(const CLI::Option& option, const Program& program) {
  const std::string value = "\\fI" + escaped(value_text(option, program)) + "\\fR";
  if (option.get_positional()) return value;
  const auto bold = [](const std::string& name) { return "\\fB" + escaped(name) + "\\fR"; };
  return join(texts_of(option_names(option), bold), ", ") + " " + value;
}

void write_options(const CLI::App& command, const Program& program, std::ostringstream& page) {
  std::vector<const CLI::Option*> options = positionals(command);
  for (const CLI::Option* option : listed_options(command)) options.push_back(option);
  for (const CLI::Option* option : options) {
    page << ".TP\n"
         << roff_heading(*option, program) << "\n"
         << escaped(option_help(*option, program)) << "\n";
  }
}

void write_command(const CLI::App& command,
                   const std::string& path,
                   const Program& program,
                   std::ostringstream& page) {
  page << ".SS " << escaped(path) << "\n" << escaped(command.get_description()) << ".\n.P\n";
  for (const std::string& line : usage_lines(command, path, program))
    page << ".nf\n" << escaped(line) << "\n.fi\n";
  const auto [details, examples, see_also] = command_texts(command, program);
  if (!details.empty()) page << ".P\n" << escaped(details) << "\n";
  write_options(command, program, page);
  if (!examples.empty()) page << ".P\nExamples:\n.P\n.nf\n" << escaped(examples) << "\n.fi\n";
  if (!see_also.empty()) page << ".P\nSee also: " << escaped(see_also) << "\n";
  for (const CLI::App* child : listed_commands(command))
    write_command(*child, path + " " + child->get_name(), program, page);
}

int print_man_page(const CLI::App& app, const Program& program) {
  std::ostringstream page;
  page << ".TH FORGE 1 \"\" \"forge " << escaped(FORGE_VERSION) << "\" \"User Commands\"\n"
       << ".SH NAME\nforge \\- controlled experiments on language-model architectures\n"
       << ".SH SYNOPSIS\n.B forge\n[options] \\fIcommand\\fR [options]\n"
       << ".SH DESCRIPTION\n.nf\n"
       << escaped(app.get_description()) << ".\n.fi\n"
       << ".SH OPTIONS\n";
  write_options(app, program, page);
  page << ".SH COMMANDS\n";
  for (const CLI::App* child : listed_commands(app))
    write_command(*child, "forge " + child->get_name(), program, page);
  page
      << ".SH ENVIRONMENT\n"
      << ".TP\n.B FORGE_RUNS_DIR\nRuns folder. Default: runs/ in the workspace.\n"
      << ".TP\n.B FORGE_CACHE_DIR\nFolder of reproducible files such as tokenized text. Default: "
         "~/.cache/forge.\n"
      << ".TP\n.B FORGE_MEMORY_LIMIT\nMaximum bytes of tensors that a libtorch worker may "
         "allocate on its device.\n"
      << ".TP\n.B FORGE_RETRY_WAITS\nSeconds to wait before each restart of a worker that was "
         "killed or could not get its device. Default: 2,10,60.\n"
      << ".TP\n.B SOURCE_DATE_EPOCH\nTime that templates see, in seconds since 1970.\n"
      << ".SH EXIT STATUS\n0: success. 1: a run failed, or a check found errors. 2: wrong usage "
         "or config; nothing was started. 3: stopped on request, after saving. 4: the disk is full "
         "or fails. 5: a fault of forge itself.\n";
  std::cout << page.str();
  return 0;
}

}  // namespace

void add_man(const Command& app) {
  const Command command = app.add_command("man", "Print the manual page");
  command.examples("forge man | man -l -");
  command.set_action([app](const Context&) { return print_man_page(app.app(), app.program()); });
}

}  // namespace forge::app

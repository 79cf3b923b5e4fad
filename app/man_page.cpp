#include "app/man_page.h"

#include <CLI/CLI.hpp>
#include <sstream>

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

std::string option_heading(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames())
    names.push_back("\\fB" + escaped("-" + name) + "\\fR");
  for (const std::string& name : option.get_lnames())
    names.push_back("\\fB" + escaped("--" + name) + "\\fR");
  std::string heading = join(names, ", ");
  const std::string type = option.get_type_name();
  if (option.get_items_expected_min() > 0 && !type.empty()) {
    const size_t choices = type.find(":{");
    const std::string shown = choices == std::string::npos ? type : type.substr(choices + 1);
    heading += " \\fI" + escaped(shown) + "\\fR";
  }
  return heading;
}

std::string usage(const CLI::App& command, const std::string& name) {
  std::string line = ".B " + escaped(name) + "\n";
  std::string rest = "[options]";
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const std::string word = option->get_single_name();
    const std::string dots = option->get_expected_max() > 1 ? "…" : "";
    rest += option->get_required() ? " \\fI" + escaped(word) + "\\fR" + dots
                                   : " [\\fI" + escaped(word) + "\\fR" + dots + "]";
  }
  return line + rest + "\n";
}

void write_options(const CLI::App& command, std::ostringstream& page) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;
    const bool positional = option->get_positional();
    page << ".TP\n"
         << (positional ? "\\fI" + escaped(option->get_single_name()) + "\\fR"
                        : option_heading(*option))
         << "\n"
         << escaped(option->get_description());
    const std::string standard = option->get_default_str();
    if (!standard.empty()) page << " (default: " << escaped(standard) << ")";
    page << "\n";
  }
}

void write_command(const CLI::App& command, const std::string& name, std::ostringstream& page) {
  const auto all = [](const CLI::App*) { return true; };
  const bool is_group = !command.get_subcommands(all).empty();
  if (!is_group) {
    page << ".SS " << escaped(name) << "\n"
         << escaped(command.get_description()) << ".\n.P\n"
         << usage(command, name);
    write_options(command, page);
    if (!command.get_footer().empty())
      page << ".P\n.nf\n" << escaped(command.get_footer()) << "\n.fi\n";
  }
  for (const CLI::App* child : command.get_subcommands(all)) {
    if (!child->get_group().empty()) write_command(*child, name + " " + child->get_name(), page);
  }
}

}  // namespace

std::string man_page(const CLI::App& app, const std::string& version) {
  std::ostringstream page;
  page << ".TH FORGE 1 \"\" \"forge " << escaped(version) << "\" \"User Commands\"\n"
       << ".SH NAME\nforge \\- controlled experiments on model architectures\n"
       << ".SH SYNOPSIS\n.B forge\n[options] \\fIcommand\\fR [options]\n"
       << ".SH DESCRIPTION\n.nf\n"
       << escaped(app.get_description()) << "\n.fi\n"
       << ".SH OPTIONS\n";
  write_options(app, page);
  page << ".SH COMMANDS\n";
  const auto all = [](const CLI::App*) { return true; };
  for (const CLI::App* child : app.get_subcommands(all)) {
    if (!child->get_group().empty()) write_command(*child, "forge " + child->get_name(), page);
  }
  page << ".SH ENVIRONMENT\n"
       << ".TP\n.B FORGE_RUNS_DIR\nFolder of the runs; else runs/ in the workspace.\n"
       << ".TP\n.B FORGE_CACHE_DIR\nFolder of what can be made again, such as tokenised text; else "
          "~/.cache/forge.\n"
       << ".TP\n.B FORGE_MEMORY_LIMIT\nMost bytes that tensors of the libtorch worker may take of "
          "its device.\n"
       << ".TP\n.B FORGE_RETRY_WAITS\nSeconds to wait before each fresh worker after one that was "
          "killed or could not have its device; else 2,10,60.\n"
       << ".TP\n.B SOURCE_DATE_EPOCH\nThe time that templates see, in seconds since 1970.\n"
       << ".SH EXIT STATUS\n0: done. 1: a run failed, or a check found errors. 2: wrong usage or a "
          "wrong config; nothing was started.\n";
  return page.str();
}

}  // namespace forge::app

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/output.h"
#include "app/terminal.h"
#include "core/inspect/annotate.h"
#include "core/report/display_text.h"

namespace forge::app {
namespace {

struct PpOptions {
  std::string config;
  bool annotate = false;
  OutputOptions output;
};

/// The lines with their origins as comments in one column; a line that is too long pushes its own.
std::string annotated(const std::vector<inspect::AnnotatedLine>& lines, bool colour) {
  constexpr int widest = 72;
  int width = 0;
  for (const inspect::AnnotatedLine& line : lines) {
    width = std::max(width, std::min(widest, report::display_width(line.text)));
  }
  std::string text;
  for (const inspect::AnnotatedLine& line : lines) {
    text += line.text;
    if (!line.place.empty()) {
      text += report::pad_left("", std::max(0, width - report::display_width(line.text)));
      text += "  " + styled("# " + line.place, Style::dim, colour);
    }
    text += "\n";
  }
  return text;
}

int print_text(const Context& context, const PpOptions& options) {
  const ChosenConfig chosen = context.config(options.config);
  const templating::RenderedText rendered = project::render_config(
      chosen.project, chosen.config, context.surroundings(), chosen.variables);
  if (options.output.json) {
    hand_over(nlohmann::ordered_json{{"project", chosen.project.path},
                                     {"config", chosen.config.name},
                                     {"lines", inspect::lines_to_json(rendered)}},
              options.output);
  } else if (options.annotate) {
    const bool colour = options.output.file.empty() && use_colour(STDOUT_FILENO);
    hand_over(annotated(inspect::annotate(rendered, context.here()), colour), options.output);
  } else {
    hand_over(rendered.text + "\n", options.output);
  }
  return 0;
}

}  // namespace

void add_pp(const Command& app, Program& program) {
  auto options = std::make_shared<PpOptions>();
  const Command command = app.add_subcommand("pp", "Print a config's preprocessed YAML text");
  command.footer(
      "Examples:\n"
      "  forge pp train_canon_ac\n"
      "  forge pp train_canon_ac --annotate | less\n"
      "  forge pp train_canon_ac --json | jq -r '.lines[] | .origins[0].file' | sort | uniq -c");
  add_config_options(command, program, options->config);
  command.add_flag(
      "--annotate", options->annotate, "Beside each line the template line that wrote it");
  add_output_options(command, options->output);
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return print_text(c, *options); };
  });
}

}  // namespace forge::app

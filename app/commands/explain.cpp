#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/output.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/config/open.h"

namespace forge::app {
namespace {

using config::Explanation;
using config::Setting;

struct ExplainOptions {
  std::string key;
  std::string config;
  std::vector<std::string> overrides;
  bool json = false;
};

bool is_config(const Context& context, const std::string& name) {
  try {
    context.config(name);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// The config that is meant. Says so where key and config were given in the wrong order.
ChosenConfig config_meant(const Context& context, const ExplainOptions& options) {
  try {
    return context.config(options.config);
  } catch (const Error&) {
    if (options.config.empty() || !is_config(context, options.key)) throw;
    throw Error("'" + options.key + "' is a config, not a key",
                {},
                "the key comes first: forge explain " + options.config + " " + options.key);
  }
}

std::vector<Explanation> explain(const Context& context, const ExplainOptions& options) {
  const ChosenConfig chosen = config_meant(context, options);
  config::ResolveOptions resolve_options;
  resolve_options.overrides = options.overrides;
  resolve_options.surroundings = context.surroundings();
  resolve_options.variables = chosen.variables;
  const config::OpenConfig open =
      config::open_config(chosen.project, chosen.config.name, resolve_options);
  try {
    return config::explain(open, options.key);
  } catch (const Error& error) {
    if (!options.config.empty() || !is_config(context, options.key)) throw;
    throw Error(
        error.message(), {}, "a config is named behind the key: forge explain KEY " + options.key);
  }
}

/// A setting's value; an empty text shows as one.
std::string text_of(const Setting& setting) { return setting.text.empty() ? "\"\"" : setting.text; }

std::string place_of(const Setting& setting) {
  std::string place = setting.origin.describe();
  if (!setting.derived_from.empty()) {
    place = "follows from " + setting.derived_from + (place.empty() ? "" : ", " + place);
  }
  return place;
}

/// The uses that led to a setting's template, unless the one above it came the same way.
std::vector<std::string> way_to(const Setting& setting, const Setting* above) {
  if (above && above->origin.via == setting.origin.via) return {};
  std::vector<std::string> way;
  for (auto via = setting.origin.via; via; via = via->via) way.push_back(via->describe());
  return way;
}

void print_history(const std::vector<Setting>& history, bool colour) {
  std::vector<std::vector<std::string>> lines;
  for (size_t i = 0; i < history.size(); ++i) {
    const bool is_last = i + 1 == history.size();
    lines.push_back(
        {is_last ? "└─" : "├─", text_of(history[i]), history[i].layer, place_of(history[i])});
    for (const std::string& step : way_to(history[i], i > 0 ? &history[i - 1] : nullptr)) {
      lines.push_back({is_last ? "  " : "│ ", "", "", "  used from " + step});
    }
  }
  for (std::vector<std::string>& line : lines) {
    line.front() = styled(line.front(), Style::dim, colour);
  }
  std::cout << aligned(lines);
}

/// One value with its whole history.
void print_one(const Explanation& explanation, bool colour) {
  std::cout << styled(explanation.path, Style::bold, colour) << " = "
            << styled(config::shown_value(explanation.value), Style::bold, colour) << "\n";
  if (const config::Key* key = explanation.key) {
    std::cout << key->help << " (" << key->type << ")\n";
  }
  print_history(explanation.history, colour);
}

/// A line for each value of a section, with what it replaced below.
void print_section(const std::vector<Explanation>& explanations, bool colour) {
  std::vector<std::vector<std::string>> lines;
  for (const Explanation& explanation : explanations) {
    const std::vector<Setting>& history = explanation.history;
    lines.push_back({styled(explanation.path, Style::bold, colour),
                     config::shown_value(explanation.value),
                     history.front().layer,
                     place_of(history.front())});
    for (size_t i = 1; i < history.size(); ++i) {
      lines.push_back({styled("  overrode", Style::dim, colour),
                       text_of(history[i]),
                       history[i].layer,
                       place_of(history[i])});
    }
  }
  std::cout << aligned(lines);
}

int print(const Context& context, const ExplainOptions& options) {
  const std::vector<Explanation> explanations = explain(context, options);
  const bool colour = use_colour(STDOUT_FILENO);
  if (options.json) {
    print_json(config::to_json(explanations));
  } else if (explanations.size() == 1) {
    print_one(explanations.front(), colour);
  } else {
    print_section(explanations, colour);
  }
  return 0;
}

}  // namespace

void add_explain(const Command& app, Program& program) {
  auto options = std::make_shared<ExplainOptions>();
  const Command command = app.add_subcommand(
      "explain", "Say who gave a key its value, and what that replaced, all the way up");
  command.footer(
      "KEY is a dotted path: a value, or a section with all its values.\n"
      "\n"
      "Examples:\n"
      "  forge explain train.batch_size\n"
      "  forge explain model.canon train_canon_ac\n"
      "  forge explain train.max_steps train_canon_ac --set profile=full\n"
      "  forge explain callbacks[0].every my_config     of a graph of calls");
  command.add_option("key", options->key, "Dotted path of a value or a section")
      .required()
      .type_name("KEY");
  add_config_options(command, program, options->config);
  add_set_option(command, options->overrides);
  command.add_flag("--json", options->json, "As JSON");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return print(c, *options); };
  });
}

}  // namespace forge::app

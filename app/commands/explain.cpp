#include <iostream>

#include "app/command_line.h"
#include "app/terminal.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/config/explain.h"

namespace forge::app {
namespace {

using config::Explanation;
using config::Setting;

struct ExplainOptions : ConfigOptions {
  std::string key;
  bool json = false;
};

bool is_config(const Context& context, const std::string& name) {
  try {
    context.find_config(name);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// The config of the command line. Its error says so when key and config are swapped.
project::NamedConfig named_config(const Context& context, const ExplainOptions& options) {
  try {
    return context.find_config(options.config);
  } catch (const Error&) {
    if (options.config.empty() || !is_config(context, options.key)) throw;
    throw Error("'" + options.key + "' is a config, not a key",
                "the key comes first: forge explain " + options.config + " " + options.key);
  }
}

std::vector<Explanation> explain(const Context& context, const ExplainOptions& options) {
  const config::Document document = context.document(named_config(context, options));
  const config::OpenConfig open =
      config::open_config(document, context.resolve_options(document, options.overrides));
  try {
    return config::explain(open, options.key);
  } catch (const Error& error) {
    if (!options.config.empty() || !is_config(context, options.key)) throw;
    throw Error(error.message(),
                "the config comes after the key: forge explain KEY " + options.key);
  }
}

/// A setting's value; an empty text is shown as "".
std::string setting_text(const Setting& setting) {
  return setting.text.empty() ? "\"\"" : setting.text;
}

std::string setting_place(const Setting& setting) {
  std::string place = setting.origin.describe();
  if (!setting.derived_from.empty()) {
    place = "follows from " + setting.derived_from + (place.empty() ? "" : ", " + place);
  }
  return place;
}

/// The includes that led to a setting's template; empty where the setting above has the same.
std::vector<std::string> include_chain(const Setting& setting, const Setting* above) {
  if (above && above->origin.via == setting.origin.via) return {};
  std::vector<std::string> chain;
  for (auto via = setting.origin.via; via; via = via->via) chain.push_back(via->describe());
  return chain;
}

void print_history(const std::vector<Setting>& history) {
  std::vector<std::vector<std::string>> lines;
  for (size_t i = 0; i < history.size(); ++i) {
    const bool is_last = i + 1 == history.size();
    lines.push_back({styled(is_last ? "└─" : "├─", Style::dim),
                     setting_text(history[i]),
                     history[i].layer,
                     setting_place(history[i])});
    for (const std::string& step : include_chain(history[i], i > 0 ? &history[i - 1] : nullptr)) {
      lines.push_back({styled(is_last ? "  " : "│ ", Style::dim), "", "", "  used from " + step});
    }
  }
  std::cout << aligned(lines, {}, 0);
}

/// One value with its whole history.
void print_one(const Explanation& explanation) {
  std::cout << styled(tables::printable(explanation.path), Style::bold) << " = "
            << styled(tables::printable(config::shown_value(explanation.value)), Style::bold)
            << "\n";
  if (const config::Key* key = explanation.key) {
    std::cout << key->help << " (" << key->type << ")\n";
  }
  print_history(explanation.history);
}

/// A line for each value of a section, with what it replaced below.
void print_section(const std::vector<Explanation>& explanations) {
  std::vector<std::vector<std::string>> lines;
  for (const Explanation& explanation : explanations) {
    const std::vector<Setting>& history = explanation.history;
    lines.push_back({styled(tables::printable(explanation.path), Style::bold),
                     config::shown_value(explanation.value),
                     history.front().layer,
                     setting_place(history.front())});
    for (size_t i = 1; i < history.size(); ++i) {
      lines.push_back({styled("  overrode", Style::dim),
                       setting_text(history[i]),
                       history[i].layer,
                       setting_place(history[i])});
    }
  }
  std::cout << aligned(lines, {}, 0);
}

int print_explanations(const Context& context, const ExplainOptions& options) {
  const std::vector<Explanation> explanations = explain(context, options);
  if (options.json) return print_json(config::to_json(explanations));
  if (explanations.size() == 1) {
    print_one(explanations.front());
  } else {
    print_section(explanations);
  }
  return 0;
}

}  // namespace

void add_explain(const Command& app) {
  const auto [command, options] =
      app.add_command("explain", "Show where a config value comes from", print_explanations);
  command.details("Prints the value, what set it, and every setting that it replaced.")
      .examples(
          "forge explain train.batch_size\n"
          "forge explain model.canon train_canon_ac\n"
          "forge explain train.max_steps train_canon_ac --set profile=full\n"
          "forge explain callbacks[0].every my_config     a graph of Python calls")
      .see_also("forge show, forge keys");
  command.add_option("KEY", options.key, "Dotted path of a value, or of a section for all of it")
      .required();
  add_config_options(command, options);
  add_json_option(command, options.json);
}

}  // namespace forge::app

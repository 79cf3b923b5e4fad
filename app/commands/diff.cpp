#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/output.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/json_text.h"
#include "core/config/diff.h"
#include "core/config/open.h"
#include "core/report/display_text.h"
#include "core/run/run_folder.h"

namespace forge::app {
namespace {

using config::Change;
using config::Leaf;

struct DiffOptions {
  std::string left, right;
  std::vector<std::string> overrides;
  bool json = false;
};

struct Side {
  std::string name;  ///< "projects/canon:train_nope", or "run train_nope-1f2e"
  std::vector<Leaf> leaves;
  bool is_run = false;
};

Side run_side(const run::RunFolder& folder) {
  const auto read = [](const std::filesystem::path& file) {
    return try_parse_json(read_file(file));
  };
  const nlohmann::json config = read(folder.config_file());
  if (config.is_discarded()) {
    throw Error(shown_path(folder.config_file()) + " is damaged: it is no JSON",
                {},
                "restore the file",
                ExitCode::failed);
  }
  std::error_code ignored;
  const bool has_origins = std::filesystem::exists(folder.origin_file(), ignored);
  const nlohmann::json origins = has_origins ? read(folder.origin_file()) : nullptr;
  return {"run " + folder.id(), config::leaves_of_run(config, origins), true};
}

Side config_side(const Context& context, const std::string& name, const DiffOptions& options) {
  const ChosenConfig chosen = context.config(name);
  config::ResolveOptions resolve_options;
  resolve_options.overrides = options.overrides;
  resolve_options.surroundings = context.surroundings();
  resolve_options.variables = chosen.variables;
  const config::OpenConfig open =
      config::open_config(chosen.project, chosen.config.name, resolve_options);
  return {chosen.project.path + ":" + chosen.config.name, config::leaves_of(open), false};
}

/// A run of that id, else a config of that name, else a run whose id begins so.
Side side_called(const Context& context, const std::string& name, const DiffOptions& options) {
  const run::RunFolder exact(context.runs_dir() / name);
  std::error_code ignored;
  if (std::filesystem::exists(exact.record_file(), ignored)) return run_side(exact);
  try {
    context.config(name);
  } catch (const Error& error) {
    if (const auto folder = run::find_run(context.runs_dir(), name)) return run_side(*folder);
    throw Error(error.message() + " and no such run in " + shown_path(context.runs_dir()),
                error.where(),
                error.hint());
  }
  return config_side(context, name, options);
}

std::string value_of(const std::optional<Leaf>& leaf) {
  return leaf ? config::shown_value(leaf->value) : "(not there)";
}

std::string place_of(const std::optional<Leaf>& leaf) {
  if (!leaf) return "";
  const config::Setting& setting = leaf->origin.set_by;
  const std::string place = setting.origin.describe();
  return place.empty() ? setting.layer : setting.layer + ", " + place;
}

/// Columns of the widest value, but no more than a terminal can spare.
int value_width(const std::vector<Change>& changes) {
  constexpr int most = 40;
  int width = 0;
  for (const Change& change : changes) {
    for (const auto& leaf : {change.left, change.right}) {
      width = std::max(width, report::display_width(value_of(leaf)));
    }
  }
  return std::min(width, most);
}

void print_changes(const Side& left, const Side& right, const std::vector<Change>& changes) {
  const bool colour = use_colour(STDOUT_FILENO);
  const int width = value_width(changes);
  const auto print_line = [&](const char* sign, const std::optional<Leaf>& leaf, Style style) {
    std::cout << styled(sign + report::pad_right(value_of(leaf), width), style, colour);
    const std::string place = place_of(leaf);
    std::cout << (place.empty() ? "" : "  " + styled(place, Style::dim, colour)) << "\n";
  };
  std::cout << styled("--- " + left.name, Style::red, colour) << "\n"
            << styled("+++ " + right.name, Style::green, colour) << "\n";
  for (const Change& change : changes) {
    std::cout << styled(change.path, Style::bold, colour) << "\n";
    print_line("- ", change.left, Style::red);
    print_line("+ ", change.right, Style::green);
  }
}

int diff(const Context& context, const DiffOptions& options) {
  const Side left = side_called(context, options.left, options);
  const Side right = side_called(context, options.right, options);
  if (left.is_run && right.is_run && !options.overrides.empty()) {
    throw Error("--set changes configs, and both sides are runs");
  }
  const std::vector<Change> changes = config::diff(left.leaves, right.leaves);
  if (options.json) {
    print_json(config::to_json(left.name, right.name, changes));
  } else if (changes.empty()) {
    std::cout << left.name << " and " << right.name << " are the same\n";
  } else {
    print_changes(left, right, changes);
  }
  return changes.empty() ? 0 : 1;
}

}  // namespace

void add_diff(const Command& app, Program& program) {
  auto options = std::make_shared<DiffOptions>();
  const Command command = app.add_subcommand(
      "diff", "Compare two configs, two runs, or one of each, value by value, with origins");
  command.footer(
      "A run is named by its id or the beginning of it. Exit code 0 where nothing differs, 1 "
      "where\n"
      "something does, 2 on an error.\n"
      "\n"
      "Examples:\n"
      "  forge diff train_baseline train_canon_ac\n"
      "  forge diff train_nope train_nope-3f61          the config now, and as it ran\n"
      "  forge diff train_nope train_canon_a --set profile=full --json");
  command.add_option("a", options->left, "Config or run").required().type_name("A");
  command.add_option("b", options->right, "Config or run").required().type_name("B");
  add_shared_options(command, program);
  add_set_option(command, options->overrides);
  command.add_flag("--json", options->json, "As JSON");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return diff(c, *options); };
  });
}

}  // namespace forge::app

#include <algorithm>
#include <iostream>

#include <nlohmann/json.hpp>

#include "app/command_line.h"
#include "app/terminal.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/json_file.h"
#include "core/base/line_diff.h"
#include "core/base/text.h"
#include "core/config/explain.h"
#include "core/config/leaves.h"
#include "core/run/identity.h"
#include "core/run/open_model.h"
#include "core/run/run_folder.h"
#include "core/run/runs_dir.h"

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
  std::optional<run::RunFolder> run;
  nlohmann::json config;  ///< of forge's own schema; else null
};

Side run_side(const run::RunFolder& folder) {
  const nlohmann::json config = folder.config();  // it throws where it was changed
  const bool has_origins = path_exists(folder.origin_file());
  const nlohmann::json origins = has_origins ? read_json_file(folder.origin_file()) : nullptr;
  return {"run " + folder.id(), config::leaves_of_run(config, origins), folder, config};
}

Side config_side(const Context& context,
                 const project::NamedConfig& config,
                 const DiffOptions& options) {
  const config::Document document = context.document(config);
  const config::OpenConfig open =
      config::open_config(document, context.resolve_options(document, options.overrides));
  return {document.project.path + ":" + document.config_name,
          config::leaves_of(open),
          std::nullopt,
          open.resolved ? open.resolved->json : nlohmann::json()};
}

/// A run of that id, else a config of that name, else a run whose id begins so.
Side side_called(const Context& context, const std::string& name, const DiffOptions& options) {
  const run::RunFolder exact(context.runs_dir() / name);
  if (path_exists(exact.record_file())) return run_side(exact);
  std::optional<project::NamedConfig> config;
  try {
    config = context.find_config(name);
  } catch (const Error& error) {
    if (const auto folder = run::find_run(context.runs_dir(), name)) return run_side(*folder);
    throw Error(error.message() + " and no such run in " + shown_path(context.runs_dir()),
                error.where(),
                error.hint());
  }
  return config_side(context, *config, options);
}

/// What makes two runs different ones beside their configs: data, tokenizer, initial weights,
/// backend, device, threads, numerics.
std::vector<run::IdentityDifference> differences_beside_config(const Side& left,
                                                               const Side& right,
                                                               const std::vector<Change>& changes) {
  if (!left.run || !right.run) return {};
  run::Identity own = left.run->record().identity, other = right.run->record().identity;
  own.experiment = other.experiment = nullptr;
  std::vector<run::IdentityDifference> differences = run::identity_differences(own, other);
  const auto is_shown = [&](const run::IdentityDifference& difference) {
    const auto is_it = [&](const Change& change) { return change.path == difference.what; };
    return std::any_of(changes.begin(), changes.end(), is_it);  // the backend is a key, too
  };
  differences.erase(std::remove_if(differences.begin(), differences.end(), is_shown),
                    differences.end());
  return differences;
}

nlohmann::ordered_json to_json(const std::vector<run::IdentityDifference>& differences) {
  const auto value = [](const std::string& text) {
    return try_parse_json(text.empty() ? "null" : text);
  };
  return json_list(differences,
                   [&](const run::IdentityDifference& difference) -> nlohmann::ordered_json {
                     return {{"what", difference.what},
                             {"left", value(difference.left)},
                             {"right", value(difference.right)},
                             {"meaning", difference.meaning}};
                   });
}

std::string leaf_text(const std::optional<Leaf>& leaf) {
  return leaf ? tables::printable(config::shown_value(leaf->value)) : "(not there)";
}

std::string leaf_place(const std::optional<Leaf>& leaf) {
  if (!leaf) return "";
  const config::Setting& setting = leaf->origin.set_by;
  const std::string place = setting.origin.describe();
  return tables::printable(place.empty() ? setting.layer : setting.layer + ", " + place);
}

/// Columns of the widest value, but no more than a terminal can spare.
int value_width(const std::vector<Change>& changes) {
  constexpr int most = 40;
  int width = 0;
  for (const Change& change : changes) {
    for (const auto& leaf : {change.left, change.right}) {
      width = std::max(width, tables::display_width(leaf_text(leaf)));
    }
  }
  return std::min(width, most);
}

/// The lines of a block's source that differ, where the change is one of it.
void print_source_lines(const Side& left, const Side& right, const Change& change) {
  const auto source = [&](const Side& side) {
    const nlohmann::json* const value = find_value(side.config, change.path);
    return value && value->is_string() ? value->get<std::string>() : std::string();
  };
  if (!ends_with(change.path, ".source") || !starts_with(change.path, "model.blocks.")) return;
  const std::string ours = source(left), theirs = source(right);
  if (ours.empty() || theirs.empty()) return;
  for (const LineChange& line : line_changes(ours, theirs)) {
    const std::string text = std::string(line.is_left ? "  - " : "  + ") +
                             std::to_string(line.number) + ": " + line.text;
    std::cout << styled(tables::printable(text), line.is_left ? Style::red : Style::green) << "\n";
  }
}

void print_changes(const Side& left,
                   const Side& right,
                   const std::vector<Change>& changes,
                   const std::vector<run::IdentityDifference>& beside_config) {
  const int width = value_width(changes);
  const auto print_line = [&](const char* sign, const std::optional<Leaf>& leaf, Style style) {
    std::cout << styled(sign + tables::pad_right(tables::printable(leaf_text(leaf)), width), style);
    const std::string place = leaf_place(leaf);
    std::cout << (place.empty() ? "" : "  " + styled(tables::printable(place), Style::dim)) << "\n";
  };
  std::cout << styled(tables::printable("--- " + left.name), Style::red) << "\n"
            << styled(tables::printable("+++ " + right.name), Style::green) << "\n";
  for (const Change& change : changes) {
    std::cout << styled(tables::printable(change.path), Style::bold) << "\n";
    print_line("- ", change.left, Style::red);
    print_line("+ ", change.right, Style::green);
    print_source_lines(left, right, change);
  }
  const auto print_value = [](const char* sign, const std::string& value, Style style) {
    std::cout << styled(sign + tables::printable(value.empty() ? "(not there)" : value), style)
              << "\n";
  };
  for (const run::IdentityDifference& difference : beside_config) {
    std::cout << styled(difference.what, Style::bold) << ": " << difference.meaning << "\n";
    print_value("- ", difference.left, Style::red);
    print_value("+ ", difference.right, Style::green);
  }
}

int diff(const Context& context, const DiffOptions& options) {
  const Side left = side_called(context, options.left, options);
  const Side right = side_called(context, options.right, options);
  if (left.run && right.run && !options.overrides.empty()) {
    throw Error("--set applies to configs, and both sides are runs");
  }
  const std::vector<Change> changes = config::diff(left.leaves, right.leaves);
  const auto beside_config = differences_beside_config(left, right, changes);
  const bool identical = changes.empty() && beside_config.empty();
  if (options.json) {
    nlohmann::ordered_json json = config::to_json(left.name, right.name, changes);
    if (left.run && right.run) json["beside_config"] = to_json(beside_config);
    print_json(json);
  } else if (identical) {
    std::cout << tables::printable(left.name + " and " + right.name) << " are identical\n";
  } else {
    print_changes(left, right, changes, beside_config);
  }
  return identical ? 0 : 1;
}

struct WhyOptions {
  std::string left, right;
  bool json = false;
};

int why(const Context& context, const WhyOptions& options) {
  const std::filesystem::path runs_dir = context.runs_dir();
  const run::RunRecord left = context.find_run(options.left).record();
  const run::RunRecord right = context.find_run(options.right).record();
  const auto found = run::identity_differences(left.identity, right.identity);
  if (options.json) {
    print_json(
        nlohmann::json{{"left", left.id}, {"right", right.id}, {"differences", to_json(found)}});
  } else if (found.empty()) {
    std::cout << tables::printable(left.id + " and " + right.id)
              << " are two executions of the same run: their losses should be equal\n";
  } else {
    std::vector<std::vector<std::string>> lines = {{"What differs", left.id, right.id, ""}};
    for (const run::IdentityDifference& difference : found) {
      const auto shown = [](const std::string& value) { return value.empty() ? "—" : value; };
      lines.push_back(
          {difference.what, shown(difference.left), shown(difference.right), difference.meaning});
    }
    std::cout << aligned(lines);
  }
  return found.empty() ? 0 : 1;
}

}  // namespace

void add_diff(const Command& app) {
  const auto [command, options] =
      app.add_command("diff", "Compare two configs or runs, value by value, with origins", diff);
  command
      .details(
          "Of two runs it also shows what differs beside the config and can change a loss: data, "
          "tokenizer, initial weights, backend, device, threads. Exit code 0 when they are "
          "identical, 1 when they differ, 2 on an error.")
      .examples(
          "forge diff train_baseline train_canon_ac\n"
          "forge diff train_nope train_nope-3f61          the config now and as it was run\n"
          "forge diff train_nope train_canon_a --set profile=full --json")
      .see_also("forge why, forge explain");
  command.add_option("LEFT <CONFIG|RUN>", options.left, "Config or run").required();
  command.add_option("RIGHT <CONFIG|RUN>", options.right, "Config or run").required();
  add_template_options(command);
  add_set_option(command, options.overrides);
  add_json_option(command, options.json);
}

void add_why(const Command& app) {
  const auto [command, options] =
      app.add_command("why", "Show result-affecting differences between two runs", why);
  command
      .details(
          "Two runs are the same when nothing differs that can change a loss; 'forge run' then "
          "reports the second as cached. Names, logging intervals and file locations do not "
          "matter. Exit code 0 when nothing differs, 1 when something does.")
      .examples(
          "forge why train_llama-deb27d train_llama-2c827a\n"
          "forge why train_llama-deb27d train_llama-2c827a --json")
      .see_also("forge diff, forge runs");
  add_run_argument(command, options.left, "LEFT");
  add_run_argument(command, options.right, "RIGHT");
  add_json_option(command, options.json);
}

}  // namespace forge::app

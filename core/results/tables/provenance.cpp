#include "core/results/tables/provenance.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/parallel.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/results/metrics.h"
#include "core/results/tables/best_of.h"
#include "core/results/tables/comparability.h"
#include "core/run/host.h"
#include "core/run/identity.h"

namespace forge::tables {
namespace {

using store::ConfiguredRun;
using store::RunSummary;

/// "0.80 epochs": how often the run sees each row of its text; "" where that is not known.
std::string epochs_of(const ConfiguredRun& run) {
  const config::Experiment experiment = config::experiment_from_json(run.config);
  if (run.summary.train_rows == 0 || experiment.data.is_task()) return "";
  const double rows = static_cast<double>(run.summary.max_steps) * experiment.train.batch_size;
  const double epochs = rows / static_cast<double>(run.summary.train_rows);
  if (epochs == 1) return "1 epoch";
  return results::fixed_text(epochs, epochs < 10 ? 2 : 0) + " epochs";
}

/// "0.4532 nats a token": what no model can predict of the text; "" where that is not known.
std::string entropy_floor_of(const ConfiguredRun& run) {
  const std::optional<double> floor = run.summary.entropy_floor;
  return floor ? results::loss_text(*floor) + " nats a token, which no model can predict" : "";
}

/// "60.3 % stand in the training rows": of the sentences evaluated on; "" where it is not known.
std::string repeated_sentences_of(const ConfiguredRun& run) {
  const std::optional<double> repeated = run.summary.repeated_sentences;
  return repeated
             ? results::percent_text(*repeated) + " of those evaluated are in the training text"
             : "";
}

/// A fingerprint as long as a reader can compare it.
std::string shortened(const std::string& fingerprint) { return fingerprint.substr(0, 12); }

std::string training_of(const ConfiguredRun& run) {
  const RunSummary& summary = run.summary;
  return with_thousands(summary.max_steps) + " steps of " +
         with_thousands(summary.tokens_per_step) + " tokens: " + with_thousands(summary.tokens) +
         " tokens";
}

std::string data_of(const ConfiguredRun& run) {
  const config::DataConfig data = config::experiment_from_json(run.config).data;
  // A table is shown to others: where the data lie on this machine tells them nothing.
  const std::string what =
      data.is_task() ? data.task.name : std::filesystem::path(data.path).filename().string();
  std::string name = what.empty() ? data.source : data.source + " " + what;
  std::vector<std::string> mixed;
  for (const auto& [source, config] : data.sources) {
    if (config.weight > 0) mixed.push_back(source + " " + shortest(config.weight));
  }
  if (!mixed.empty()) name += " of " + join(mixed, ", ");
  return name + " (" + shortened(run.summary.data_fingerprint) + ")";
}

/// "" where the ids are no tokenizer's.
std::string tokenizer_of(const ConfiguredRun& run) {
  const config::Experiment experiment = config::experiment_from_json(run.config);
  if (experiment.data.has_own_ids()) return "";
  const config::TokenizerConfig& tokenizer = experiment.tokenizer;
  return tokenizer.kind + ", " + with_thousands(tokenizer.vocab_size) + " entries (" +
         shortened(run.summary.tokenizer_fingerprint) + ")";
}

std::string device_of(const ConfiguredRun& run) {
  const std::string variables = numerics_variables_of(run);
  return run::device_text(run.summary.device_type, run.summary.device_name, run.summary.threads) +
         (variables.empty() ? "" : " with " + variables);
}

/// Backend and libraries; what a library is known by only as a path says nothing to a reader.
std::string versions_of(const ConfiguredRun& run) {
  const RunSummary& summary = run.summary;
  std::string text = summary.backend + " " + summary.backend_version + " (numerics " +
                     std::to_string(summary.numerics_version) + ")";
  const auto libraries = run.environment.find("libraries");
  if (!run.environment.is_object() || libraries == run.environment.end()) return text;
  for (const auto& [name, version] : libraries->items()) {
    if (!version.is_string()) continue;
    const std::string shown = version.get<std::string>();
    if (!shown.empty() && shown.find('/') == std::string::npos) text += ", " + name + " " + shown;
  }
  return text;
}

/// The values of all runs, each once, in the order of the rows.
std::string all_values(const std::vector<const ConfiguredRun*>& runs,
                       const std::function<std::string(const ConfiguredRun&)>& value_of) {
  std::vector<std::string> values;
  for (const ConfiguredRun* run : runs) {
    std::string value = value_of(*run);
    if (value.empty()) continue;
    if (std::find(values.begin(), values.end(), value) == values.end()) {
      values.push_back(std::move(value));
    }
  }
  return join(values, "; ");
}

/// "1, 2, 3", sorted; many as a range.
std::string seeds_of(const std::vector<const ConfiguredRun*>& runs) {
  std::set<int64_t> seeds;
  for (const ConfiguredRun* run : runs) seeds.insert(run->summary.seed);
  std::vector<std::string> texts;
  for (const int64_t seed : seeds) texts.push_back(std::to_string(seed));
  constexpr size_t most_listed = 10;
  if (texts.size() <= most_listed) return join(texts, ", ");
  return std::to_string(texts.size()) + " from " + texts.front() + " to " + texts.back();
}

std::string parameter_range(const std::vector<const ConfiguredRun*>& runs) {
  const auto fewer = [](const ConfiguredRun* a, const ConfiguredRun* b) {
    return a->summary.parameters < b->summary.parameters;
  };
  const auto [least, most] = std::minmax_element(runs.begin(), runs.end(), fewer);
  const int64_t low = (*least)->summary.parameters;
  const int64_t high = (*most)->summary.parameters;
  if (low == high) return with_thousands(low);
  return with_thousands(low) + " to " + with_thousands(high);
}

std::string newest_date(const std::vector<const ConfiguredRun*>& runs) {
  std::string newest;
  for (const ConfiguredRun* run : runs) newest = std::max(newest, run->summary.updated);
  return newest.substr(0, 10);
}

}  // namespace

std::vector<SetupEntry> describe_setup(const std::vector<const ConfiguredRun*>& runs) {
  if (runs.empty()) return {};
  const std::string profile = all_values(runs, [](const auto& run) { return run.summary.profile; });
  const std::string training = all_values(runs, training_of);
  const std::string epochs = all_values(runs, epochs_of);
  const std::string evaluation = all_values(runs, evaluation_of);
  const std::string data = all_values(runs, data_of);
  const std::string floor = all_values(runs, entropy_floor_of);
  const std::string seeds = seeds_of(runs);
  const bool several_seeds = seeds.find_first_not_of("0123456789-") != std::string::npos;
  const std::string varied =
      all_values(runs, [](const auto& run) { return varied_by_seed(run.config); });
  const bool varies_all = varied == "initial weights and order of rows";
  const std::string device = all_values(runs, device_of);
  const std::string revision =
      all_values(runs, [](const auto& run) { return run.summary.revision; });
  std::vector<SetupEntry> setup = {
      {"Profile", profile, "profile " + profile},
      {"Training", training, training},
      {"Epochs", epochs, epochs},
      {"Evaluation", evaluation, "evaluated on " + evaluation},
      {"Data", data, data},
      {"Repeated sentences", all_values(runs, repeated_sentences_of), ""},
      {"Entropy floor", floor, floor.empty() ? "" : "entropy floor " + floor},
      {"Tokenizer", all_values(runs, tokenizer_of), ""},
      {several_seeds ? "Seeds" : "Seed", seeds, (several_seeds ? "seeds " : "seed ") + seeds},
      {"Seeds vary",
       several_seeds ? varied : "",
       several_seeds && !varies_all ? "seeds vary " + varied : ""},
      {"Device", device, device},
      {"Parameters", parameter_range(runs), ""},
      {"Versions", all_values(runs, versions_of), ""},
      {"Revision", revision, ""},
      {"Newest run", newest_date(runs), ""},
  };
  const auto is_empty = [](const SetupEntry& entry) { return entry.value.empty(); };
  setup.erase(std::remove_if(setup.begin(), setup.end(), is_empty), setup.end());
  return setup;
}

namespace {

/// The sections and keys that a table's runs must have in common.
std::vector<std::string> common_keys(const TableSpec& table) {
  std::vector<std::string> keys;
  for (const std::string& word : table.must_be_equal) {
    if (word == "profile" || word == "device" || word == "code") continue;
    if (word == "evaluation") {
      keys.insert(keys.end(), {"train.eval_rows", "train.seq_len", "train.eval_prompts"});
    } else {
      keys.push_back(word);
    }
  }
  return keys;
}

/// Calls back with every value that is no section.
void visit_values(const nlohmann::json& value,
                  const std::string& path,
                  const std::function<void(const std::string&, const nlohmann::json&)>& visit) {
  if (!value.is_object()) return visit(path, value);
  for (const auto& [key, inner] : value.items()) visit_values(inner, path + "." + key, visit);
}

/// As --set takes it.
std::string set_option(const std::string& key, const nlohmann::json& value) {
  const bool is_word = value.is_string() && !value.get<std::string>().empty() &&
                       try_parse_json(value.get<std::string>()).is_discarded();
  return " --set " +
         shell_quoted(key + "=" + (is_word ? value.get<std::string>() : json_text(value)));
}

/// The config's part that decides what a run computes, with the paths that hashes stand for in an
/// identity: a command has to name them.
nlohmann::json computed_config(const nlohmann::json& config) {
  nlohmann::json part = run::identity_config(config);
  for (const char* path :
       {"/data/path", "/data/evaluation_path", "/data/task/grammar", "/tokenizer/path"}) {
    const nlohmann::json::json_pointer pointer(path);
    if (config.contains(pointer)) part[pointer] = config.at(pointer);
  }
  return part;
}

/// "--seed 1,2" where the runs shown have other seeds than the config.
std::string seed_option(const std::vector<const ConfiguredRun*>& shown,
                        const TableSpec& table,
                        const nlohmann::json& current) {
  if (table.by == "seed") return "";
  std::set<int64_t> seeds;
  for (const ConfiguredRun* run : shown) seeds.insert(run->summary.seed);
  if (seeds.empty() || (seeds.size() == 1 && *seeds.begin() == current.value("seed", int64_t{0})))
    return "";
  std::vector<std::string> texts;
  for (const int64_t seed : seeds) texts.push_back(std::to_string(seed));
  return " --seed " + join(texts, ",");
}

/// The run's config with the paths of its config now in the place of those that lead nowhere.
nlohmann::json with_found_paths(const nlohmann::json& own, const nlohmann::json& current) {
  const nlohmann::json here = with_current_paths(own, current);
  nlohmann::json config = own;
  for (const nlohmann::json::json_pointer& place : run::places_of_data(own)) {
    const bool is_path = own.contains(place) && own[place].is_string();
    if (is_path && !path_exists(own[place].get<std::string>())) config[place] = here[place];
  }
  return config;
}

std::string run_options_for(const std::vector<const ConfiguredRun*>& shown,
                            const nlohmann::json& current,
                            const Ablation& ablation) {
  const TableSpec& table = ablation.table;
  const nlohmann::json theirs = computed_config(with_found_paths(shown.front()->config, current));
  const nlohmann::json own = computed_config(current);
  std::string options;
  std::set<std::string> seen;
  const auto add = [&](const std::string& key, const nlohmann::json& value) {
    const bool is_chosen =
        table.best_of && (key == table.best_of->key ||
                          (key == "train.validation_rows" && table.best_of->validation_rows > 0));
    const nlohmann::json* const now = find_value(own, key);
    if (is_chosen || key == table.by || (now && *now == value)) return;
    if (seen.insert(key).second) options += set_option(key, value);
  };
  for (const std::string& key : common_keys(table)) {
    if (const nlohmann::json* const value = find_value(theirs, key)) visit_values(*value, key, add);
  }
  options += seed_option(shown, table, current);
  return options + ablation.device_options;
}

/// What a run uses unless it is told depends on the machine: the runs shown were told.
std::string device_options_of(const ConfiguredRun& shown, const TableSpec& table) {
  const auto& equal = table.must_be_equal;
  if (std::find(equal.begin(), equal.end(), "device") == equal.end()) return "";
  std::string options;
  if (shown.summary.threads > 0 && shown.summary.threads != usable_cores())
    options += " --threads " + std::to_string(shown.summary.threads);
  if (shown.summary.command.find(" --device") != std::string::npos)
    options += " --device " + shown.summary.device_type;
  return options;
}

/// Of rows that are divided by a key: its value.
std::string group_option(const std::string& group, const TableSpec& table) {
  if (group.empty() || table.by.empty()) return "";
  return " --set " + shell_quoted(table.by + "=" + group);
}

std::string run_command(const std::vector<std::string>& configs,
                        const std::string& group,
                        const Ablation& ablation,
                        std::optional<double> value) {
  std::string command = "forge run " + shell_quoted(configs) + ablation.table.project_option +
                        group_option(group, ablation.table);
  if (const auto& best_of = ablation.table.best_of; best_of && best_of->validation_rows > 0)
    command += " --set train.validation_rows=" + std::to_string(best_of->validation_rows);
  if (value)
    command += " --set " + shell_quoted(ablation.table.best_of->key + "=" + value_text(*value));
  // Without runs that could be compared, the profile is the one that the config has by default.
  if (!ablation.profile.empty()) command += " --set " + shell_quoted("profile=" + ablation.profile);
  const auto options = ablation.run_options.find(configs.front());
  return options == ablation.run_options.end() ? command : command + options->second;
}

/// For each value of best_of the commands that run the rows whose point is wanted: one for all that
/// need the same options.
std::vector<std::string> commands_by_value(
    const Ablation& ablation,
    const std::function<bool(const AblationRow&, const SweepPoint&)>& is_wanted) {
  std::vector<std::string> commands;
  if (!ablation.table.best_of) return commands;
  for (const double value : ablation.table.best_of->values) {
    std::map<std::pair<std::string, std::string>, std::vector<std::string>> configs;
    for (const AblationRow& row : ablation.rows) {
      const auto options = ablation.run_options.find(row.spec.config);
      for (const SweepPoint& point : row.points) {
        if (point.value == value && is_wanted(row, point))
          configs[{row.group, options == ablation.run_options.end() ? "" : options->second}]
              .push_back(row.spec.config);
      }
    }
    for (const auto& [alike, names] : configs)
      commands.push_back(run_command(names, alike.first, ablation, value));
  }
  return commands;
}

/// Whether runs of the row as it stands hold out no rows to be chosen by: another one would not be
/// counted either.
bool would_lack_metric(const AblationRow& row, const Ablation& ablation) {
  const BestOfSpec& best_of = *ablation.table.best_of;
  if (best_of.by != results::validation_loss_name || best_of.validation_rows > 0) return false;
  return std::any_of(
      ablation.excluded.begin(), ablation.excluded.end(), [&](const ExcludedRuns& entry) {
        return entry.config == row.spec.config && entry.reason == no_metric_reason(best_of);
      });
}

/// The command that made the run, without the folder of the program.
std::string as_typed(const store::RunSummary& run) {
  const size_t space = std::min(run.command.find(' '), run.command.size());
  const size_t slash = run.command.rfind('/', space);
  return pasteable(slash == std::string::npos ? run.command : run.command.substr(slash + 1));
}

}  // namespace

std::string command_for(const AblationRow& row,
                        const Ablation& ablation,
                        std::optional<double> value) {
  return run_command({row.spec.config}, row.group, ablation, value);
}

void add_run_options(const std::vector<const ConfiguredRun*>& shown,
                     const CurrentConfig& current_config,
                     Ablation& ablation) {
  ablation.device_options = device_options_of(*shown.front(), ablation.table);
  for (const RowSpec& row : ablation.table.rows) {
    const nlohmann::json current =
        current_config(row.config, ablation.profile, shown.front()->summary.device_type);
    if (current.is_object())
      ablation.run_options[row.config] = run_options_for(shown, current, ablation);
  }
}

std::string table_command(const Ablation& ablation) {
  const std::string profile =
      ablation.profile.empty() ? "" : " --set " + shell_quoted("profile=" + ablation.profile);
  return "forge run --table " + shell_quoted(ablation.table.name) + ablation.table.project_option +
         profile + ablation.device_options;
}

namespace {

/// Whether what a row is trained with depends on other runs: only 'forge run --table' knows it.
bool depends_on_results(const TableSpec& table) {
  return table.budget ||
         (table.best_of && (table.best_of->extend || !table.best_of->tuning_seeds.empty()));
}

/// Whether 'forge run --table' plans as many seeds of each row as the table asks for, and what it
/// makes stands beside the runs shown.
bool is_planned_by_table(const Ablation& ablation) {
  const auto is_as_it_makes = [&](const AblationRow& row) {
    const auto options = ablation.run_options.find(row.spec.config);
    return row.runs.size() < 2 &&
           (options == ablation.run_options.end() || options->second == ablation.device_options);
  };
  return ablation.table.seeds > 1 && ablation.table.by.empty() &&
         std::all_of(ablation.rows.begin(), ablation.rows.end(), is_as_it_makes);
}

/// Whether the point lacks a run that a command would make: one that is hidden is there.
bool lacks_run(const SweepPoint& point, const BestOfSpec& best_of) {
  return point.is_wanted && !point.is_hidden() && !point.has_diverged() &&
         (!point.run || !missing_tuning_seeds(point, best_of).empty());
}

/// Whether the row itself does.
bool lacks_run(const AblationRow& row) {
  return !row.run && row.filtered_out == 0 && row.archived.empty();
}

/// The commands that make the missing runs.
std::vector<std::string> run_commands(const Ablation& ablation) {
  const std::vector<AblationRow>& rows = ablation.rows;
  if (depends_on_results(ablation.table) || is_planned_by_table(ablation)) {
    const bool lacks_any = std::any_of(rows.begin(), rows.end(), [&](const AblationRow& row) {
      return lacks_run(row) ||
             std::any_of(row.points.begin(), row.points.end(), [&](const SweepPoint& point) {
               return lacks_run(point, *ablation.table.best_of);
             });
    });
    return lacks_any ? std::vector<std::string>{table_command(ablation)}
                     : std::vector<std::string>();
  }
  if (ablation.table.best_of)
    return commands_by_value(ablation, [&](const AblationRow& row, const SweepPoint& point) {
      return lacks_run(point, *ablation.table.best_of) && row.filtered_out == 0 &&
             !would_lack_metric(row, ablation);
    });
  std::vector<std::string> commands;
  for (const AblationRow& row : rows)
    if (lacks_run(row)) commands.push_back(command_for(row, ablation));
  return commands;
}

}  // namespace

std::string restore_command(const std::set<std::string>& archived) {
  return "forge runs archive --restore " +
         shell_quoted(std::vector<std::string>(archived.begin(), archived.end()));
}

std::vector<std::string> missing_commands(const Ablation& ablation) {
  std::vector<std::string> commands = run_commands(ablation);
  std::set<std::string> archived;
  for (const AblationRow& row : ablation.rows)
    archived.insert(row.archived.begin(), row.archived.end());
  if (!archived.empty()) commands.push_back(restore_command(archived));
  return commands;
}

std::vector<store::RunSummary> shown_runs(const std::vector<Ablation>& ablations) {
  std::vector<store::RunSummary> runs;
  std::set<std::string> seen;
  const auto add = [&](const Sample& sample) {
    for (const store::RunSummary& run : sample.runs) {
      if (seen.insert(run.id).second) runs.push_back(run);
    }
  };
  for (const Ablation& ablation : ablations) {
    for (const AblationRow& row : ablation.rows) {
      add(row);
      for (const SweepPoint& point : row.points) add(point);
    }
  }
  return runs;
}

std::vector<std::string> reproduction_commands(const std::vector<Ablation>& ablations) {
  std::vector<std::string> commands;
  std::set<std::string> seen;
  for (const store::RunSummary& run : shown_runs(ablations)) {
    const std::string command = as_typed(run);
    if (!command.empty() && seen.insert(command).second) commands.push_back(command);
  }
  if (commands.empty()) {
    const std::string project = ablations.empty() ? "" : ablations.front().table.project_option;
    commands.push_back("forge run --all" + project);
    for (const Ablation& ablation : ablations) {
      const auto of_sweep =
          commands_by_value(ablation, [](const AblationRow&, const SweepPoint&) { return true; });
      commands.insert(commands.end(), of_sweep.begin(), of_sweep.end());
    }
  }
  for (const Ablation& ablation : ablations)
    commands.push_back("forge compare --table " + shell_quoted(ablation.table.name) +
                       ablation.table.project_option);
  return commands;
}

}  // namespace forge::tables

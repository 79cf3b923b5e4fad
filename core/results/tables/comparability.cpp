#include "core/results/tables/comparability.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/results/metrics.h"
#include "core/results/tables/budget.h"
#include "core/results/tables/run_times.h"
#include "core/run/identity.h"
#include "core/run/program_hash.h"

namespace forge::tables {

using store::ConfiguredRun;
using Runs = std::vector<const ConfiguredRun*>;

namespace {

/// The leaves of a config's key or section.
void add_leaves(const nlohmann::json& value,
                const std::string& path,
                std::vector<Condition>& conditions) {
  if (!value.is_object()) {
    conditions.push_back({path, plain_text(value), {}, true});
    return;
  }
  for (const auto& [key, inner] : value.items()) add_leaves(inner, path + "." + key, conditions);
}

void add_config_key(const nlohmann::json& config,
                    const std::string& path,
                    std::vector<Condition>& conditions) {
  if (const nlohmann::json* const value = find_value(config, path))
    add_leaves(*value, path, conditions);
}

struct ByNameAndValue {
  bool operator()(const Condition& a, const Condition& b) const {
    return std::tie(a.name, a.value) < std::tie(b.name, b.value);
  }
};

/// The runs of one program among those of one command.
struct ProgramRuns {
  std::set<std::string> rows;  ///< with completed runs
  bool is_current = false;
  size_t completed = 0;
  std::string newest;

  auto rank() const { return std::make_tuple(rows.size(), is_current, completed, newest); }
};

/// Runs that meet the same conditions.
struct Group {
  std::vector<Condition> conditions;
  std::map<Condition, ProgramRuns, ByNameAndValue> programs;  ///< of the commands
  std::set<std::string> completed_rows;
  std::set<std::string> current_rows;  ///< with completed runs of the config as it is now
  size_t completed = 0;
  std::set<std::string> rows;
  std::string newest;

  auto rank() const {
    return std::make_tuple(
        completed_rows.size(), current_rows.size(), completed, rows.size(), newest);
  }
};

std::string file_name_of(const nlohmann::json& path) {
  return std::filesystem::path(path.get<std::string>()).filename().string();
}

/// The part of a config that decides what a run computes, but for the seed. The hashes that stand
/// for files in an identity are not known of a config that did not run: their names are compared.
nlohmann::json computed_part(const nlohmann::json& config) {
  nlohmann::json part = run::identity_config(config);
  part.erase("seed");
  for (const char* path : {"/data/path",
                           "/data/evaluation_path",
                           "/data/task/grammar",
                           "/tokenizer/path",
                           "/train/initial_weights"}) {
    const nlohmann::json::json_pointer pointer(path);
    if (config.contains(pointer) && config[pointer].is_string())
      part[pointer] = file_name_of(config[pointer]);
  }
  return part;
}

std::string with_change(const std::string& what, const std::string& own, const std::string& now) {
  return what + " " + own + " (now " + now + ")";
}

/// Each row of a table may go on from weights of its own, but beside rows that do so too.
std::string begins_with(const store::RunSummary& run) {
  return run.initial_weights_hash.empty() ? "drawn weights" : "trained weights";
}

/// An external backend's program, by its command: rows of other commands have programs of their
/// own, while one command stands for one program in a whole table, or, where each backend has rows
/// of its own, in all rows of one backend.
constexpr const char* program_condition = "program of ";

std::optional<Condition> program_of(const ConfiguredRun& run, const TableSpec& table) {
  const nlohmann::json* const command = find_value(run.config, "external.command");
  if (!command) return std::nullopt;
  std::string program = run.summary.program;
  if (program.empty()) {
    // Older forges knew a backend of one's own beside forge's own ones by its version alone.
    const nlohmann::json* const folder = find_value(run.config, "external.working_directory");
    if (!folder || !folder->is_string() || run::is_called_as_forges_own(folder->get<std::string>()))
      return std::nullopt;
    program = "not recorded";
  }
  const std::string backend = table.by == "backend" ? "backend " + run.summary.backend + ": " : "";
  return Condition{program_condition + backend + plain_text(*command), program};
}

constexpr const char* library_condition = "library ";

bool is_library(const Condition& condition) {
  return condition.name.rfind(library_condition, 0) == 0;
}

/// Each backend counts its own versions and has a program of its own.
bool tells_backends_apart(const Condition& condition) {
  return condition.name == "numerics" || condition.name == "code" || condition.name == "program" ||
         is_library(condition);
}

}  // namespace

bool is_length(const std::string& key) {
  return key == "train.max_steps" || key == "train.max_tokens";
}

bool is_varied_by(const TableSpec& table, const std::string& config, const std::string& key) {
  if (key == table.by) return true;
  if (table.budget && is_length(key)) return config != reference_of(table);
  return table.best_of && (key == table.best_of->key ||
                           (key == "train.validation_rows" && table.best_of->validation_rows > 0));
}

bool follows_value(const TableSpec& table, const nlohmann::json& config, const std::string& key) {
  if (!table.best_of) return false;
  const std::string& varied = table.best_of->key;
  if (key == "train.gradient_slots") return varied == "train.batch_size";
  if (key == "train.max_tokens") return varied == "train.max_steps";  // where that is set it is 0
  const nlohmann::json* const tokens = find_value(config, "train.max_tokens");
  const bool has_tokens = tokens && tokens->is_number() && *tokens > 0;
  return key == "train.max_steps" && has_tokens &&
         (varied == "train.batch_size" || varied == "train.seq_len" ||
          varied == "train.max_tokens");
}

bool compares_train_loss(const TableSpec& table) {
  const std::string name = results::train_loss_name;
  const auto is_claimed = [&](const ClaimSpec& claim) {
    const std::vector<ClaimedMetric> metrics = metrics_of(claim, table);
    return std::any_of(metrics.begin(), metrics.end(), [&](const ClaimedMetric& claimed) {
      return claimed.metric == name;
    });
  };
  return primary_metric(table) == name || (table.best_of && table.best_of->by == name) ||
         std::any_of(table.claims.begin(), table.claims.end(), is_claimed) ||
         std::any_of(table.columns.begin(), table.columns.end(), [&](const ColumnSpec& column) {
           return column.metric == name || column.value.find(name) != std::string::npos;
         });
}

bool is_program(const Condition& condition) {
  return condition.name.rfind(program_condition, 0) == 0;
}

std::string varied_by_seed(const nlohmann::json& config) {
  const auto is_set = [&](const char* key) {
    const nlohmann::json* const value = find_value(config, key);
    return value && !value->is_null() && *value != "";
  };
  const auto has = [&](const char* key, const char* word) {
    const nlohmann::json* const value = find_value(config, key);
    return value && *value == word;
  };
  const bool weights = !is_set("train.initial_weights") && !is_set("train.initial_weights_seed");
  const bool order =
      !is_set("data.order_seed") && (has("data.source", "task") || has("data.order", "shuffled"));
  if (weights && order) return "initial weights and order of rows";
  return weights ? "initial weights alone" : order ? "order of rows alone" : "nothing";
}

nlohmann::json with_current_paths(const nlohmann::json& own, const nlohmann::json& current) {
  nlohmann::json config = own;
  for (const nlohmann::json::json_pointer& place : run::places_of_data(own)) {
    const auto is_path = [&](const nlohmann::json& json) {
      return json.contains(place) && json[place].is_string();
    };
    if (is_path(own) && is_path(current) &&
        file_name_of(own[place]) == file_name_of(current[place]))
      config[place] = current[place];
  }
  return config;
}

std::vector<std::string> differences_from_config(const ConfiguredRun& run,
                                                 const nlohmann::json& current,
                                                 const CurrentFiles& files,
                                                 const TableSpec& table) {
  std::vector<std::string> differences;
  const std::optional<Condition> program = program_of(run, table);
  // Of another backend's program it is not known what it holds now.
  const bool is_its_backend = current.value("backend", run.summary.backend) == run.summary.backend;
  if (program && is_its_backend && !files.program.empty() && program->value != files.program)
    differences.push_back(with_change(program->name, program->value, files.program));
  const auto compare_fingerprints =
      [&](const char* what, const std::string& its, const std::string& now) {
        constexpr size_t shown = 12;  // digits, as elsewhere
        if (!now.empty() && its != now)
          differences.push_back(with_change(what, its.substr(0, shown), now.substr(0, shown)));
      };
  compare_fingerprints("the text", run.summary.data_fingerprint, files.data.data);
  compare_fingerprints("the tokenizer", run.summary.tokenizer_fingerprint, files.data.tokenizer);
  const std::string& weights = run.summary.initial_weights_hash;
  if (!weights.empty() && !is_varied_by(table, run.summary.config, "train.initial_weights"))
    compare_fingerprints("the initial weights", weights, files.initial_weights);
  const nlohmann::json own = computed_part(run.config), now = computed_part(current);
  if (own == now) return differences;
  const auto text = [](const std::string& value) { return value.empty() ? "none" : value; };
  for (const run::IdentityDifference& difference : run::config_differences(own, now)) {
    if (!is_varied_by(table, run.summary.config, difference.what) &&
        !follows_value(table, run.config, difference.what))
      differences.push_back(
          with_change(difference.what, text(difference.left), text(difference.right)));
  }
  return differences;
}

std::vector<std::string> differing_keys(const Runs& runs, const TableSpec& table) {
  std::map<std::string, std::vector<std::string>> values;  // of the runs in which a key is set
  for (const ConfiguredRun* run : runs) {
    nlohmann::json config = run::identity_config(run->config);
    for (const char* section : {"model", "seed", "backend"}) config.erase(section);
    if (run->summary.program.empty()) config.erase("external");  // how forge starts its own
    std::vector<Condition> leaves = {{"data", run->summary.data_fingerprint},
                                     {"tokenizer", run->summary.tokenizer_fingerprint},
                                     {"external.program", run->summary.program}};
    for (const auto& [key, value] : config.items()) add_leaves(value, key, leaves);
    for (const Condition& leaf : leaves)
      if (!is_varied_by(table, run->summary.config, leaf.name))
        values[leaf.name].push_back(leaf.value);
  }
  std::vector<std::string> keys;
  for (const auto& [key, of_runs] : values) {
    // Each backend has a command, and what that needs, of its own.
    if (table.by == "backend" && starts_with(key, "external.")) continue;
    const auto expected =
        std::count_if(runs.begin(), runs.end(), [&, &name = key](const auto* run) {
          return !is_varied_by(table, run->summary.config, name);
        });
    const bool is_equal = std::equal(of_runs.begin() + 1, of_runs.end(), of_runs.begin());
    if (of_runs.size() < static_cast<size_t>(expected) || !is_equal) keys.push_back(key);
  }
  return keys;
}

namespace {

/// Of a hash as many digits as a reader can compare.
std::string shortened(const std::string& value) {
  const bool is_hash =
      value.size() == 32 && value.find_first_not_of("0123456789abcdef") == std::string::npos;
  return is_hash ? value.substr(0, 12) : value;
}

/// The name of the run's text: of a file its own, of a task the task's.
std::string source_of(const ConfiguredRun& run) {
  for (const char* key : {"data.path", "data.task.name", "data.source"}) {
    const nlohmann::json* const name = find_value(run.config, key);
    if (name && name->is_string() && *name != "") return file_name_of(*name);
  }
  return "";
}

}  // namespace

std::string evaluation_of(const ConfiguredRun& run) {
  const std::string& rows = run.summary.evaluation;
  const nlohmann::json* const task = find_value(run.config, "data.task.name");
  const nlohmann::json* const source = find_value(run.config, "data.source");
  if (rows.empty() || !task || !source || *source != "task") return rows;
  config::TaskConfig config;
  config.name = plain_text(*task);
  if (!config.is_scored_by_prompts()) return rows;
  const nlohmann::json* const asked = find_value(run.config, "train.eval_prompts");
  const int64_t prompts = asked ? asked->get<int64_t>() : config::TrainConfig().eval_prompts;
  return rows + ", " + counted(std::min<int64_t>(prompts, std::atoll(rows.c_str())), "prompt");
}

std::string numerics_variables_of(const store::ConfiguredRun& run) {
  const std::string& of_attempts = run.summary.variables;
  if (!of_attempts.empty()) return of_attempts == store::no_variables ? "" : of_attempts;
  const nlohmann::json* const variables = find_value(run.environment, "variables");
  if (!variables || !variables->is_object()) return "";
  std::vector<std::string> settings;
  for (const auto& [name, value] : variables->items())
    if (value.is_string()) settings.push_back(name + "=" + value.get<std::string>());
  return join(settings, " ");
}

namespace {

/// Those of all attempts.
std::vector<Condition> device_conditions(const ConfiguredRun& run) {
  const std::string variables = numerics_variables_of(run);
  std::vector<Condition> conditions = {
      {"device", run.summary.device_type},
      {"device name", run.summary.device_name},
      {"threads", std::to_string(run.summary.threads)},
      {"environment", variables.empty() ? store::no_variables : variables}};
  if (run.summary.libraries.empty()) return conditions;
  const nlohmann::json libraries = nlohmann::json::parse(run.summary.libraries);
  for (const auto& [name, version] : libraries.items())
    conditions.push_back({library_condition + name, version.get<std::string>()});
  return conditions;
}

}  // namespace

std::vector<Condition> conditions_of(const store::ConfiguredRun& run, const TableSpec& table) {
  const store::RunSummary& summary = run.summary;
  const nlohmann::json config = run::identity_config(run.config);
  // The fingerprint is the text's: how rows are made of it and in what order is in the section.
  std::vector<Condition> data = {{"data", summary.data_fingerprint, source_of(run)}};
  add_config_key(config, "data", data);
  const std::map<std::string, std::vector<Condition>> of_word = {
      {"data", std::move(data)},
      {"tokenizer", {{"tokenizer", summary.tokenizer_fingerprint}}},
      {"evaluation", {{"evaluation", evaluation_of(run)}}},
      {"code", {{"code", summary.backend_version}, {"program", summary.program}}},
      {"train.initial_weights",
       {{"initial weights",
         summary.initial_weights_hash.empty() ? "drawn" : summary.initial_weights_hash}}},
      {"device", device_conditions(run)}};
  std::vector<Condition> conditions;
  for (const std::string& word : table.must_be_equal) {
    const auto found = of_word.find(word);
    if (found == of_word.end()) {
      add_config_key(config, word, conditions);
    } else {
      conditions.insert(conditions.end(), found->second.begin(), found->second.end());
    }
  }
  // It is in no identity, since it decides no weight; but the loss is a mean over so many steps.
  if (compares_train_loss(table)) add_config_key(run.config, "train.log_every", conditions);
  const auto is_varied = [&](const Condition& c) {
    return (table.best_of && c.name == table.best_of->key) || (table.budget && is_length(c.name));
  };
  conditions.erase(std::remove_if(conditions.begin(), conditions.end(), is_varied),
                   conditions.end());
  conditions.push_back({"begins with", begins_with(summary)});
  conditions.push_back({"seeds vary", varied_by_seed(run.config)});
  conditions.push_back({"backend", summary.backend});
  conditions.push_back({"numerics", std::to_string(summary.numerics_version)});
  const auto divides = [&](const Condition& c) {
    return c.name == table.by || (table.by == "backend" && tells_backends_apart(c)) ||
           (c.name == "seeds vary" && (table.by == "data.order_seed" || table.by == "data.order" ||
                                       table.by == "train.initial_weights_seed")) ||
           (table.by == "train.initial_weights" &&
            (c.name == "begins with" || c.name == "seeds vary"));
  };
  conditions.erase(std::remove_if(conditions.begin(), conditions.end(), divides), conditions.end());
  if (std::optional<Condition> program = program_of(run, table))
    conditions.push_back(std::move(*program));
  return conditions;
}

std::string first_of(const std::vector<std::string>& texts) {
  constexpr size_t most = 3;
  if (texts.size() <= most) return join(texts, "; ");
  return join({texts.begin(), texts.begin() + most}, "; ") + "; and " +
         std::to_string(texts.size() - most) + " more";
}

std::string group_of(const store::ConfiguredRun& run, const TableSpec& table) {
  if (table.by.empty()) return "";
  if (table.by == "backend") return run.summary.backend;
  std::vector<Condition> leaf;
  add_config_key(run.config, table.by, leaf);
  return leaf.empty() ? "" : leaf.front().value;
}

std::vector<std::string> violations(const std::vector<Condition>& run,
                                    const std::vector<Condition>& group) {
  const auto by_name = [](const std::vector<Condition>& conditions) {
    std::map<std::string, const Condition*> found;
    for (const Condition& condition : conditions) found[condition.name] = &condition;
    return found;
  };
  const std::map<std::string, const Condition*> own = by_name(run), shown = by_name(group);
  std::vector<std::string> found;
  const auto differs = [&](const std::string& name, const std::string& a, const std::string& b) {
    found.push_back(name + " " + a + ", this table shows " + b);
  };
  const char* const not_set = "none";
  for (const Condition& condition : run) {
    const auto other = shown.find(condition.name);
    if (other == shown.end()) {
      if (condition.is_key) differs(condition.name, condition.value, not_set);
      continue;
    }
    const Condition& wanted = *other->second;
    const bool is_known = condition.is_key || (!condition.value.empty() && !wanted.value.empty());
    if (!is_known || condition.value == wanted.value) continue;
    const auto text = [&](const Condition& of) {
      const std::string value = of.value.empty() ? "''" : shortened(of.value);
      return condition.source == wanted.source ? value : of.source + " (" + value + ")";
    };
    differs(condition.name, text(condition), text(wanted));
  }
  for (const Condition& condition : group)
    if (condition.is_key && own.count(condition.name) == 0)
      differs(condition.name, not_set, condition.value);
  return found;
}

bool differs_in_backend_alone(const std::vector<Condition>& run,
                              const std::vector<Condition>& group) {
  const auto value_of_backend = [](const std::vector<Condition>& conditions) {
    const auto found = std::find_if(conditions.begin(), conditions.end(), [](const Condition& c) {
      return c.name == "backend";
    });
    return found == conditions.end() ? "" : found->value;
  };
  if (value_of_backend(run) == value_of_backend(group)) return false;
  std::vector<Condition> others = run;
  others.erase(std::remove_if(others.begin(),
                              others.end(),
                              [](const Condition& c) {
                                return c.name == "backend" || tells_backends_apart(c);
                              }),
               others.end());
  return violations(others, group).empty();
}

std::optional<std::vector<Condition>> choose_group(
    const TableSpec& table,
    const std::vector<const store::ConfiguredRun*>& runs,
    const IsCurrent& is_current) {
  std::map<std::string, Group> groups;
  for (const store::ConfiguredRun* run : runs) {
    const store::RunSummary& summary = run->summary;
    std::vector<Condition> conditions = conditions_of(*run, table);
    std::string key;
    if (!conditions.empty() && is_program(conditions.back())) conditions.pop_back();
    for (const Condition& condition : conditions)
      key += condition.name + '\n' + condition.value + '\n';
    Group& group = groups[key];
    group.conditions = std::move(conditions);
    if (const std::optional<Condition> name = program_of(*run, table)) {
      ProgramRuns& program = group.programs[*name];
      program.newest = std::max(program.newest, made_at(summary));
      if (is_completed(run)) {
        program.rows.insert(summary.config);
        ++program.completed;
        program.is_current = program.is_current || (is_current && is_current(*run));
      }
    }
    group.rows.insert(summary.config);
    if (is_completed(run)) {
      ++group.completed;
      group.completed_rows.insert(summary.config);
      if (is_current && is_current(*run)) group.current_rows.insert(summary.config);
    }
    group.newest = std::max(group.newest, made_at(summary));
  }
  const auto best =
      std::max_element(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
        return a.second.rank() < b.second.rank();
      });
  if (best == groups.end()) return std::nullopt;
  std::vector<Condition> conditions = best->second.conditions;
  std::map<std::string, std::pair<std::string, const ProgramRuns*>> shown;
  for (const auto& [program, its_runs] : best->second.programs) {
    auto& [value, most] = shown[program.name];
    if (most && most->rank() >= its_runs.rank()) continue;
    value = program.value;
    most = &its_runs;
  }
  for (const auto& [name, program] : shown) conditions.push_back({name, program.first});
  return conditions;
}

}  // namespace forge::tables

#include "core/results/tables/comparability.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/results/metrics.h"
#include "core/results/statistics/sample.h"
#include "core/results/tables/budget.h"
#include "core/run/identity.h"
#include "core/run/input_files.h"

namespace forge::tables {

using store::ConfiguredRun;
using Runs = std::vector<const ConfiguredRun*>;

namespace {

/// The leaves of a config's key or section.
void add_leaves(const nlohmann::json& value,
                const std::string& path,
                std::vector<Condition>& conditions) {
  if (!value.is_object()) {
    conditions.push_back({path, plain_text(value)});
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
  for (const char* path :
       {"/data/path", "/data/evaluation_path", "/tokenizer/path", "/train/initial_weights"}) {
    const nlohmann::json::json_pointer pointer(path);
    if (config.contains(pointer) && config[pointer].is_string())
      part[pointer] = file_name_of(config[pointer]);
  }
  return part;
}

/// Where a config names files of text or a tokenizer's, those of the sources of a mixture too.
std::vector<nlohmann::json::json_pointer> places_of_paths(const nlohmann::json& config) {
  using Pointer = nlohmann::json::json_pointer;
  std::vector<Pointer> places = {
      Pointer("/data/path"), Pointer("/data/evaluation_path"), Pointer("/tokenizer/path")};
  const Pointer sources("/data/sources");
  if (!config.contains(sources) || !config[sources].is_object()) return places;
  for (const auto& [name, source] : config[sources].items()) {
    places.push_back(sources / name / "path");
    places.push_back(sources / name / "evaluation_path");
  }
  return places;
}

std::string with_change(const std::string& what, const std::string& own, const std::string& now) {
  return what + " " + own + " (now " + now + ")";
}

/// Each row of a table may go on from weights of its own, but beside rows that do so too.
std::string begins_with(const store::RunSummary& run) {
  return run.initial_weights_hash.empty() ? "drawn weights" : "trained weights";
}

/// An external backend's program, by its command: rows of other commands have programs of their
/// own, while one command stands for one program in a whole table.
constexpr const char* program_condition = "program of ";

std::optional<Condition> program_of(const ConfiguredRun& run) {
  const nlohmann::json* const command = find_value(run.config, "external.command");
  if (run.summary.program.empty() || !command) return std::nullopt;
  return Condition{program_condition + plain_text(*command), run.summary.program};
}

/// Whether the key says how long to train.
bool is_length(const std::string& key) {
  return key == "train.max_steps" || key == "train.max_tokens";
}

/// Whether the table gives the runs of a config another value of the key than the config has.
bool is_varied_by(const TableSpec& table, const std::string& config, const std::string& key) {
  if (key == table.by) return true;
  if (table.budget && is_length(key)) return config != reference_of(table);
  return table.best_of && (key == table.best_of->key ||
                           (key == "train.validation_rows" && table.best_of->validation_rows > 0));
}

}  // namespace

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
  for (const nlohmann::json::json_pointer& place : places_of_paths(own)) {
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
  const std::optional<Condition> program = program_of(run);
  if (program && !files.program.empty() && program->value != files.program)
    differences.push_back(with_change(program->name, program->value, files.program));
  const auto compare_fingerprints =
      [&](const char* what, const std::string& its, const std::string& now) {
        constexpr size_t shown = 12;  // digits, as elsewhere
        if (!now.empty() && its != now)
          differences.push_back(with_change(what, its.substr(0, shown), now.substr(0, shown)));
      };
  compare_fingerprints("the text", run.summary.data_fingerprint, files.data.data);
  compare_fingerprints("the tokenizer", run.summary.tokenizer_fingerprint, files.data.tokenizer);
  const nlohmann::json own = computed_part(run.config), now = computed_part(current);
  if (own == now) return differences;
  const auto text = [](const std::string& value) { return value.empty() ? "none" : value; };
  for (const run::IdentityDifference& difference : run::config_differences(own, now)) {
    if (!is_varied_by(table, run.summary.config, difference.what))
      differences.push_back(
          with_change(difference.what, text(difference.left), text(difference.right)));
  }
  return differences;
}

std::vector<std::string> differing_keys(const Runs& runs, const TableSpec& table) {
  std::map<std::string, std::set<std::string>> values;
  for (const ConfiguredRun* run : runs) {
    nlohmann::json config = run::identity_config(run->config);
    for (const char* section : {"model", "seed", "backend", "external"}) config.erase(section);
    std::vector<Condition> leaves = {{"data", run->summary.data_fingerprint},
                                     {"tokenizer", run->summary.tokenizer_fingerprint}};
    for (const auto& [key, value] : config.items()) add_leaves(value, key, leaves);
    for (const Condition& leaf : leaves)
      if (!is_varied_by(table, run->summary.config, leaf.name))
        values[leaf.name].insert(leaf.value);
  }
  std::vector<std::string> keys;
  for (const auto& [key, different] : values)
    if (different.size() > 1) keys.push_back(key);
  return keys;
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

constexpr const char* library_condition = "library ";

bool is_library(const Condition& condition) {
  return condition.name.rfind(library_condition, 0) == 0;
}

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
  std::vector<Condition> data = {{"data", summary.data_fingerprint}};
  add_config_key(config, "data", data);
  const std::map<std::string, std::vector<Condition>> of_word = {
      {"data", std::move(data)},
      {"tokenizer", {{"tokenizer", summary.tokenizer_fingerprint}}},
      {"evaluation", {{"evaluation", summary.evaluation}}},
      {"code", {{"code", summary.backend_version}}},
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
  // Each backend counts the changes of its own arithmetic.
  const auto divides = [&](const Condition& c) {
    return c.name == table.by ||
           (table.by == "backend" && (c.name == "numerics" || is_library(c))) ||
           (c.name == "seeds vary" && (table.by == "data.order_seed" || table.by == "data.order" ||
                                       table.by == "train.initial_weights_seed")) ||
           (table.by == "train.initial_weights" &&
            (c.name == "begins with" || c.name == "seeds vary"));
  };
  conditions.erase(std::remove_if(conditions.begin(), conditions.end(), divides), conditions.end());
  if (std::optional<Condition> program = program_of(run)) conditions.push_back(std::move(*program));
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
  std::map<std::string, std::string> wanted;
  for (const Condition& condition : group) wanted[condition.name] = condition.value;
  std::vector<std::string> found;
  for (const Condition& condition : run) {
    const std::string& shown = wanted[condition.name];
    if (condition.value.empty() || shown.empty() || condition.value == shown) continue;
    found.push_back(condition.name + " " + condition.value + ", this table shows " + shown);
  }
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
  // Each backend counts its own versions.
  std::vector<Condition> others = run;
  const auto tells_backends_apart = [](const Condition& c) {
    return c.name == "backend" || c.name == "numerics" || c.name == "code" || is_library(c);
  };
  others.erase(std::remove_if(others.begin(), others.end(), tells_backends_apart), others.end());
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
    if (const std::optional<Condition> name = program_of(*run)) {
      ProgramRuns& program = group.programs[*name];
      program.newest = std::max(program.newest, summary.created);
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
    group.newest = std::max(group.newest, summary.created);
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

run::Identity identity_without_seed(const store::ConfiguredRun& run) {
  const store::RunSummary& summary = run.summary;
  run::Identity identity;
  identity.experiment = run::identity_config(run.config);
  identity.experiment.erase("seed");
  identity.data_fingerprint = summary.data_fingerprint;
  identity.tokenizer_fingerprint = summary.tokenizer_fingerprint;
  identity.backend = summary.backend;
  identity.device_type = summary.device_type;
  identity.threads = static_cast<int>(summary.threads);
  identity.numerics_version = static_cast<int>(summary.numerics_version);
  identity.initial_weights = summary.initial_weights_hash;
  identity.program = summary.program;
  return identity;
}

run::Identity setup_for(const std::string& metric, const ConfiguredRun& run) {
  const store::RunSummary& summary = run.summary;
  run::Identity setup = identity_without_seed(run);
  if (metric == results::train_loss_name) {
    const nlohmann::json* const steps = find_value(run.config, "train.log_every");
    setup.experiment["train"]["log_every"] = steps ? *steps : nlohmann::json();
  }
  if (!metric.empty() && results::metric_named(metric).depends_on_device) {
    nlohmann::json& train = setup.experiment["train"];
    train["recompute"] = summary.recompute.empty() ? "none" : summary.recompute;
    train["micro_batch_size"] =
        summary.micro_batch_size ? nlohmann::json(*summary.micro_batch_size) : nlohmann::json();
    setup.experiment["parallel"]["processes"] = summary.processes.value_or(1);
    setup.experiment["device_name"] = summary.device_name;
    setup.experiment["environment"] = numerics_variables_of(run);
  }
  return setup;
}

bool has_mixed_attempts(const store::RunSummary& run) {
  return store::is_mixed(run.recompute) || store::is_mixed(run.device_name);
}

run::Identity identity_of_set(const ConfiguredRun& run, const TableSpec& table) {
  run::Identity identity = identity_without_seed(run);
  nlohmann::json leaves = nlohmann::json::object();
  for (const auto& [key, value] : run::dotted_leaves(identity.experiment)) {
    if (key == table.by || !is_varied_by(table, run.summary.config, key)) leaves[key] = value;
  }
  leaves["device name"] = run.summary.device_name;
  leaves["environment"] = numerics_variables_of(run);
  identity.experiment = std::move(leaves);
  return identity;
}

bool is_completed(const ConfiguredRun* run) {
  return run->summary.status == run::RunState::completed;
}

std::string state_text(const store::RunSummary& run) {
  const std::string percent = std::to_string(store::progress_percent(run)) + " %";
  switch (run.status) {
    case run::RunState::running: return "running " + percent;
    case run::RunState::stopped: return "stopped at " + percent;
    default: return run::name_of(run.status);
  }
}

namespace {

/// "optimizer.lr 0.003, the run shown has 0.001".
std::string difference_text(const run::Identity& own, const run::Identity& shown) {
  std::vector<std::string> parts;
  for (const run::IdentityDifference& difference : run::identity_differences(own, shown)) {
    const auto text = [](const std::string& value) { return value.empty() ? "none" : value; };
    const bool is_hash = difference.what.find("fingerprint") != std::string::npos ||
                         difference.what == "initial_weights" || difference.what == "program";
    parts.push_back(is_hash ? "other " + difference.what
                            : difference.what + " " + text(difference.left) +
                                  ", the run shown has " + text(difference.right));
  }
  return first_of(parts);
}

/// Seeds that compute the same are one draw, not several; "" for a loss that no other seed had.
std::string why_no_other_draw(const store::RunSummary& run,
                              std::map<double, int64_t>& seed_of_loss) {
  const double loss = run.metric(results::eval_loss_name).value_or(0);
  if (!(loss > 0)) return "";
  const auto [first, is_new] = seed_of_loss.emplace(loss, run.seed);
  if (is_new) return "";
  return "its loss is that of seed " + std::to_string(first->second) +
         " to the last bit: they count as one run";
}

/// Runs that differ in nothing but their seeds.
struct Alike {
  Runs runs;                ///< newest first
  std::set<int64_t> seeds;  ///< of the completed ones
  bool is_current = false;  ///< a completed one is of the config as it is now

  auto rank() const { return std::make_pair(is_current, seeds.size()); }
};

/// Of runs sorted newest first those that are one sample: alike but for the seed, of the config as
/// it is now if such runs completed, else with completed runs of the most seeds, and of several
/// such groups that of the newest run. Runs of another learning rate, say, measure something else
/// and must never be averaged with them.
Runs runs_of_one_sample(const Runs& runs,
                        std::vector<ExcludedRuns>& excluded,
                        const std::string& metric,
                        const IsCurrent& is_current) {
  if (runs.size() < 2) return runs;
  const auto identity_of = [&](const ConfiguredRun& run) { return setup_for(metric, run); };
  std::vector<Alike> groups;
  std::map<std::string, size_t> places;
  for (const ConfiguredRun* run : runs) {
    const auto [place, is_new] = places.emplace(run::run_key(identity_of(*run)), groups.size());
    if (is_new) groups.emplace_back();
    Alike& group = groups[place->second];
    group.runs.push_back(run);
    if (!is_completed(run)) continue;
    group.seeds.insert(run->summary.seed);
    if (is_current && is_current(*run)) group.is_current = true;
  }
  const auto shown =
      std::max_element(groups.begin(), groups.end(), [](const Alike& a, const Alike& b) {
        return a.rank() < b.rank();
      });
  const run::Identity identity = identity_of(*shown->runs.front());
  for (const Alike& group : groups) {
    if (&group == &*shown) continue;
    const std::string differs = difference_text(identity_of(*group.runs.front()), identity);
    for (const ConfiguredRun* run : group.runs)
      exclude(run->summary, is_completed(run) ? differs : state_text(run->summary), excluded);
  }
  return shown->runs;
}

}  // namespace

/// Newest first; the names decide between runs of one moment, so that the order is always the same.
Runs newest_first(const std::vector<ConfiguredRun>& runs) {
  Runs sorted;
  for (const ConfiguredRun& run : runs) sorted.push_back(&run);
  std::sort(sorted.begin(), sorted.end(), [](const ConfiguredRun* a, const ConfiguredRun* b) {
    return std::tie(a->summary.created, a->summary.id) >
           std::tie(b->summary.created, b->summary.id);
  });
  return sorted;
}

namespace {

/// Whether the seeds have one loss to the last bit: then they are one run. Where only some are
/// equal the row keeps them all, or its mean would be that of those that differ
/// (check_completeness).
bool have_one_loss(const std::map<int64_t, const store::RunSummary*>& runs) {
  return std::all_of(runs.begin(), runs.end(), [&](const auto& each) {
    return have_same_loss(*each.second, *runs.begin()->second);
  });
}

}  // namespace

bool have_same_loss(const store::RunSummary& a, const store::RunSummary& b) {
  const double left = a.metric(results::eval_loss_name).value_or(std::nan(""));
  const double right = b.metric(results::eval_loss_name).value_or(std::nan(""));
  return left == right || (std::isnan(left) && std::isnan(right));
}

Sample sample_of(const Runs& candidates,
                 std::vector<ExcludedRuns>& excluded,
                 const std::string& metric,
                 const IsCurrent& is_current) {
  const Runs runs = runs_of_one_sample(candidates, excluded, metric, is_current);
  Sample sample;
  std::set<int64_t> seeds;
  std::map<double, int64_t> seed_of_loss;
  std::vector<std::pair<const store::RunSummary*, std::string>> not_shown;
  std::map<int64_t, const store::RunSummary*> firsts;
  for (auto each = runs.rbegin(); each != runs.rend(); ++each)
    if (is_completed(*each)) firsts.emplace((*each)->summary.seed, &(*each)->summary);
  const bool are_one = have_one_loss(firsts);
  for (const ConfiguredRun* each : runs) {
    const store::RunSummary& run = each->summary;
    std::string reason;
    if (!is_completed(each)) {
      reason = state_text(run);
    } else if (const store::RunSummary& first = *firsts.at(run.seed); !have_same_loss(run, first)) {
      reason = "repeats " + first.id + " with another loss, and a seed's first run counts";
    } else if (!seeds.insert(run.seed).second) {
      reason = "older than the run shown";
    } else if (sample.run && varied_by_seed(each->config) == "nothing") {
      reason = "its seed varies nothing: train.initial_weights and data.order_seed are fixed";
    } else if (are_one) {
      reason = why_no_other_draw(run, seed_of_loss);
    }
    if (reason.empty()) {
      if (!sample.run) sample.run = run;
      sample.runs.push_back(run);
    } else {
      not_shown.emplace_back(&run, std::move(reason));
    }
  }
  for (auto each = runs.rbegin(); each != runs.rend(); ++each) {  // the oldest one first
    const store::RunSummary& run = (*each)->summary;
    const auto has_its_seed = [&](const store::RunSummary& other) {
      return other.seed == run.seed;
    };
    const auto any_of = [&](const std::vector<store::RunSummary>& list) {
      return std::any_of(list.begin(), list.end(), has_its_seed);
    };
    if (is_completed(*each) && any_of(sample.runs) && !any_of(sample.first_runs))
      sample.first_runs.push_back(run);
  }
  for (const ConfiguredRun* each : runs) {
    const run::RunState state = each->summary.status;
    if (state != run::RunState::failed && state != run::RunState::stopped) continue;
    const int64_t seed = each->summary.seed;
    (seeds.count(seed) == 0 ? sample.ended_early : sample.repeated).insert(seed);
  }
  if (!sample.run && !runs.empty()) sample.run = runs.front()->summary;
  for (const auto& [run, reason] : not_shown) {
    if (run->id != sample.run->id) exclude(*run, reason, excluded);
  }
  std::sort(sample.runs.begin(), sample.runs.end(), [](const auto& a, const auto& b) {
    return a.seed < b.seed;
  });
  return sample;
}

void exclude(const store::RunSummary& run,
             const std::string& reason,
             std::vector<ExcludedRuns>& excluded) {
  const auto found = std::find_if(excluded.begin(), excluded.end(), [&](const ExcludedRuns& entry) {
    return entry.config == run.config && entry.reason == reason;
  });
  if (found != excluded.end()) {
    found->runs.push_back(run.id);
  } else {
    excluded.push_back({run.config, reason, {run.id}});
  }
}

bool was_loaded(const store::RunSummary& run) {
  return run.busy_elsewhere.value_or(0) >= min_machine_load || run.shared_device != 0;
}

bool was_loaded(const Sample& sample) {
  return std::any_of(sample.runs.begin(), sample.runs.end(), [](const store::RunSummary& run) {
    return was_loaded(run);
  });
}

std::string load_text(const store::RunSummary& run) {
  std::vector<std::string> parts;
  if (run.busy_elsewhere.value_or(0) >= min_machine_load)
    parts.push_back("other processes kept " + results::percent_text(*run.busy_elsewhere) +
                    " of the machine busy");
  if (run.shared_device != 0) parts.emplace_back("another process held memory of its GPU");
  return join(parts, " and ");
}

std::string load_text(const Sample& sample) {
  const auto rank = [](const store::RunSummary& run) {
    return std::make_pair(run.shared_device, run.busy_elsewhere.value_or(0));
  };
  const auto most =
      std::max_element(sample.runs.begin(), sample.runs.end(), [&](const auto& a, const auto& b) {
        return rank(a) < rank(b);
      });
  return most == sample.runs.end() ? "" : load_text(*most);
}

std::string changed_inputs_text(const store::RunSummary& run) {
  return run.changed_inputs.empty() ? "" : run::changed_inputs_text(run.changed_inputs);
}

std::string changed_inputs_text(const Sample& sample) {
  std::vector<std::string> runs;
  for (const store::RunSummary& run : sample.runs) {
    if (!run.changed_inputs.empty()) runs.push_back(run.id + ": " + changed_inputs_text(run));
  }
  return join(runs, "; ");
}

}  // namespace forge::tables

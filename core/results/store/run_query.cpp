#include "core/results/store/result_store.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/keys.h"
#include "core/config/own_blocks.h"
#include "core/config/tree.h"
#include "core/results/store/run_condition.h"
#include "core/run/identity.h"

namespace forge::store {
namespace {

using Json = nlohmann::json;

/// Columns as JSON: all, or `only` one.
struct ToJson {
  std::string only = {};
  bool with_zeros = false;  ///< in place of values that are not there
  Json json = Json::object();

  template <class T>
  void column(const char* name, const T& value) {
    if (only.empty() || only == name) json[name] = as_json(name, value);
  }
  template <class T>
  void column(const char* name, const std::optional<T>& value) {
    if (only.empty() || only == name)
      json[name] = with_zeros && !value ? Json(T()) : as_json(name, value);
  }

 private:
  static Json as_json(const char*, run::RunState status) { return run::name_of(status); }
  static Json as_json(const char* name, const std::optional<double>& value) {
    if (!value) return nullptr;
    const results::Metric* const metric = results::find_metric(name);
    const bool is_whole = metric && metric->unit == results::Unit::bytes && std::isfinite(*value);
    return is_whole ? Json(std::llround(*value)) : Json(*value);
  }
  template <class T>
  static Json as_json(const char*, const std::optional<T>& value) {
    return value ? Json(*value) : Json(nullptr);
  }
  template <class T>
  static Json as_json(const char*, const T& value) {
    return value;
  }
};

bool is_column(const std::string& name) {
  const std::vector<std::string>& names = column_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Throws Error for a name that is not a column.
void require_column(const std::string& name) {
  if (is_column(name)) return;
  throw Error("a run has no column '" + name + "'",
              did_you_mean(name, column_names(), "its columns: " + join(column_names(), ", ")),
              ExitCode::usage);
}

/// Throws Error for a name that is neither a column nor a key of the config.
void require_name(const std::string& name) {
  if (is_column(name) || config::find_key(name)) return;
  std::vector<std::string> known = column_names();
  for (const std::string& key : config::key_paths_near(name)) known.push_back(key);
  throw Error("'" + name + "' is neither a column of a run nor a key of its config",
              did_you_mean(name, known, "for example config, seed, eval_loss or model.canon.set"),
              ExitCode::usage);
}

Json column_of(const RunSummary& run, const std::string& name) {
  ToJson visitor{name};
  columns(visitor, run);
  return std::move(visitor.json.at(name));
}

/// A value of the type that a column, or a key of the config, has in every run; null where it may
/// have one of several types.
Json sample_of(const std::string& name) {
  if (is_column(name)) {
    ToJson visitor{name, true};
    const RunSummary none;
    columns(visitor, none);
    return std::move(visitor.json.at(name));
  }
  const config::Key* const key = config::find_key(name);
  if (!key) return nullptr;
  if (key->type == "true or false") return false;
  if (key->type == "list") return Json::array();
  const bool is_number = starts_with(key->type, "number") || starts_with(key->type, "integer");
  return is_number && key->type != "integer or auto" ? Json(0) : Json(nullptr);
}

/// Whether all conditions hold; `value_of` gives the value of a column.
template <class ValueOf>
bool all_hold(const std::vector<RunCondition>& conditions, const ValueOf& value_of) {
  return std::all_of(conditions.begin(), conditions.end(), [&](const RunCondition& condition) {
    return holds(condition, value_of(condition.column));
  });
}

const RunSummary& summary_of(const RunSummary& run) { return run; }
const RunSummary& summary_of(const ConfiguredRun& run) { return run.summary; }

/// The column or key of an order: "-eval_loss" sorts by "eval_loss".
std::string without_sign(const std::string& wanted) {
  return starts_with(wanted, "-") ? wanted.substr(1) : wanted;
}

/// `value_of` gives the value of a column of a run.
template <class Run, class ValueOf>
void sort_by(std::vector<Run>& runs, const std::string& wanted, const ValueOf& value_of) {
  const bool descending = starts_with(wanted, "-");
  const std::string column = without_sign(wanted);
  std::vector<std::pair<Json, Run>> rows;
  for (Run& run : runs) {
    Json value = value_of(run, column);
    rows.emplace_back(std::move(value), std::move(run));
  }
  // A loss that is no number is neither less nor more than another one.
  const auto is_missing = [](const Json& value) {
    return value.is_null() || (value.is_number_float() && std::isnan(value.get<double>()));
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const auto& a, const auto& b) {
    const Json &left = a.first, &right = b.first;
    if (is_missing(left) || is_missing(right)) return !is_missing(left) && is_missing(right);
    return descending ? right < left : left < right;
  });
  for (size_t i = 0; i < runs.size(); ++i) runs[i] = std::move(rows[i].second);
}

/// `require` throws for a name that no run has a value of.
template <class Run, class ValueOf>
std::vector<Run> select_runs(std::vector<Run> runs,
                             const RunQuery& query,
                             void (*require)(const std::string&),
                             const ValueOf& value_of) {
  std::vector<RunCondition> conditions;
  for (const std::string& text : query.conditions) {
    conditions.push_back(parse_condition(text));
    require(conditions.back().column);
    require_value(conditions.back(), sample_of(conditions.back().column));
  }
  for (const std::string& wanted : query.order) require(without_sign(wanted));
  const auto is_unwanted = [&](const Run& run) {
    const auto is_named = [&](const std::string& pattern) {
      return names_run(pattern, summary_of(run).id) || names_run(pattern, summary_of(run).config);
    };
    const bool named = query.patterns.empty() ||
                       std::any_of(query.patterns.begin(), query.patterns.end(), is_named);
    return !named ||
           !all_hold(conditions, [&](const std::string& name) { return value_of(run, name); });
  };
  runs.erase(std::remove_if(runs.begin(), runs.end(), is_unwanted), runs.end());
  for (auto column = query.order.rbegin(); column != query.order.rend(); ++column)
    sort_by(runs, *column, value_of);
  if (query.limit > 0 && runs.size() > query.limit)
    runs.erase(runs.begin() + static_cast<std::ptrdiff_t>(query.limit), runs.end());
  return runs;
}

}  // namespace

Json columns_of(const RunSummary& run) {
  ToJson visitor;
  columns(visitor, run);
  return std::move(visitor.json);
}

std::vector<RunSummary> select(std::vector<RunSummary> runs, const RunQuery& query) {
  return select_runs(std::move(runs), query, require_column, column_of);
}

std::vector<ConfiguredRun> select(std::vector<ConfiguredRun> runs, const RunQuery& query) {
  return select_runs(std::move(runs), query, require_name, value_of);
}

bool are_columns(const std::vector<std::string>& names) {
  return std::all_of(names.begin(), names.end(), is_column);
}

bool names_columns_only(const RunQuery& query) {
  std::vector<std::string> names = texts_of(
      query.conditions, [](const std::string& text) { return parse_condition(text).column; });
  for (const std::string& wanted : query.order) names.push_back(without_sign(wanted));
  return are_columns(names);
}

namespace {

/// The key that a leaf belongs to: an element of a list, "external.command.2", to the list.
std::string key_of_leaf(std::string leaf) {
  const auto ends_in_index = [&](size_t dot) {
    return dot != std::string::npos && dot + 1 < leaf.size() &&
           leaf.find_first_not_of("0123456789", dot + 1) == std::string::npos;
  };
  for (size_t dot = leaf.rfind('.'); ends_in_index(dot); dot = leaf.rfind('.')) leaf.resize(dot);
  return leaf;
}

/// The config as texts by key.
std::map<std::string, std::string> texts_by_key(const Json& config) {
  std::map<std::string, std::string> texts;
  for (const auto& [leaf, value] : run::dotted_leaves(config))
    texts[key_of_leaf(leaf)] += json_text(value) + ",";
  return texts;
}

/// What the run has found in the file that a key names, "" for another key.
std::string content_of(const RunSummary& run, const std::string& key) {
  if (key == "train.initial_weights") return run.initial_weights_hash;
  if (key == "tokenizer.path") return run.tokenizer_fingerprint;
  const bool is_of_data = starts_with(key, "data.") && ends_with(key, "path");
  return is_of_data ? run.data_fingerprint : "";
}

/// The values of a key that runs of one config have.
struct Values {
  size_t runs = 0;
  std::set<std::string> texts, contents;  ///< contents: of the files that they name

  bool vary() const { return texts.size() > 1 && contents.size() != 1; }
};

}  // namespace

std::vector<std::string> varied_keys(const std::vector<ConfiguredRun>& runs, size_t most) {
  std::map<std::string, size_t> counts;  // of the values of a key that varies
  std::map<std::tuple<std::string, std::string, std::string>, std::map<std::string, Values>> alike;
  std::map<std::tuple<std::string, std::string, std::string>, size_t> sizes;
  for (const ConfiguredRun& run : runs) {
    if (!run.config.is_object()) continue;
    const auto config =
        std::make_tuple(run.summary.project, run.summary.config, run.summary.profile);
    ++sizes[config];
    auto texts = texts_by_key(run::identity_config(run.config));
    for (const auto& [key, text] : texts_by_key(run.config))  // the identity names no file
      if (!content_of(run.summary, key).empty()) texts.try_emplace(key, text);
    for (const auto& [key, text] : texts) {
      Values& values = alike[config][key];
      ++values.runs;
      values.texts.insert(text);
      const std::string content = content_of(run.summary, key);
      if (!content.empty()) values.contents.insert(content);
    }
  }
  for (const auto& [config, keys] : alike) {
    for (const auto& [key, values] : keys) {
      // A key that some runs lack is one of another version of forge.
      if (key != "seed" && values.vary() && values.runs == sizes[config])
        counts[key] = std::max(counts[key], values.texts.size());
    }
  }
  std::vector<std::pair<std::string, size_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second > b.second;
  });
  std::vector<std::string> names;
  for (const auto& [key, count] : sorted) {
    if (names.size() < most) names.push_back(key);
  }
  return names;
}

Json value_of(const ConfiguredRun& run, const std::string& name) {
  if (is_column(name)) return column_of(run.summary, name);
  const Json* const value = find_value(run.config, name);
  return value ? config::shown_leaf(name, *value) : Json(nullptr);
}

void require_names(const std::vector<std::string>& names) {
  for (const std::string& name : names) require_name(name);
}

std::vector<ConfiguredRun> select(std::vector<ConfiguredRun> runs,
                                  const std::vector<std::string>& conditions) {
  RunQuery query;
  query.conditions = conditions;
  return select(std::move(runs), query);
}

}  // namespace forge::store

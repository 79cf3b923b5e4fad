#include "core/results/tables/read_table.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/keys.h"
#include "core/config/reader.h"
#include "core/results/tables/best_of.h"
#include "core/run/identity.h"
#include "core/yaml/yaml.h"

namespace forge::tables {

using config::above;
using config::required;
template <class Visitor>
void fields(Visitor& visit, PublishedResult& result) {
  visit.field("config", result.config, "config whose model it is", required());
  visit.field("eval_loss", result.eval_loss, "nats a token", above(0));
  visit.field("tokens_per_second", result.tokens_per_second, "in training", above(0));
  visit.field("peak_memory_gib", result.peak_memory_gib, "GiB at the peak", above(0));
}

template <class Visitor>
void fields(Visitor& visit, Published& published) {
  visit.field("source", published.source, "who published them and where", required());
  visit.field("url", published.url, "address of the source");
  visit.field("setup", published.setup, "how they were made");
  visit.field("figures", published.results, "one entry a config", required());
}

Published read_published(const std::string& path) {
  const yaml::NodePtr node = yaml::parse_file(path);
  if (!node->is_mapping()) {
    throw Error("a file of published metrics is a mapping, this is " + yaml::describe_kind(*node),
                node->origin);
  }
  return config::read_fields<Published>(*node);
}

template <class Visitor>
void fields(Visitor& visit, ColumnSpec& column) {
  visit.field("kind", column.word, "what the column shows, or a metric", required());
  visit.field("title", column.title, "its header", required());
  visit.field("score", column.metric, "metric of kind score or difference");
  visit.field("format", column.format, "of a score; by_name: accuracies and validities in percent");
  visit.field("value", column.value, "expression over metrics, for kind derived");
  visit.field("unit", column.unit, "of a derived column");
  visit.field(
      "precision", column.precision, "decimals of a derived column", config::between(0, 12));
}

template <class Visitor>
void fields(Visitor& visit, RowSpec& row) {
  visit.field("config", row.config, "training config of this project", required());
  visit.field("name", row.name, "display name", required());
  visit.field("positions", row.positions, "where the model differs");
  visit.field("notes", row.notes, "a few words on the row");
}

template <class Visitor>
void fields(Visitor& visit, ClaimSpec& claim) {
  visit.field("config", claim.config, "row that the claim is about");
  visit.field("below", claim.below, "row whose metric is the higher one");
  visit.field("above", claim.above, "row whose metric is the lower one");
  visit.field("at_least", claim.at_least, "number that the metric reaches");
  visit.field("at_most", claim.at_most, "number that the metric does not exceed");
  visit.field("score", claim.score, "the metric, a score of the task or eval_loss");
  visit.field("profile", claim.profile, "profile of the runs that can decide it");
  visit.field("claim", claim.claim, "the sentence, beside holds or value");
  visit.field("holds", claim.holds, "comparison of two expressions over metrics of rows");
  visit.field("value", claim.value, "expression that is at_least, at_most or between both");
  visit.field("unit", claim.unit, "of the expression's value");
}

template <class Visitor>
void fields(Visitor& visit, BestOfSpec& best_of) {
  visit.field("key", best_of.key, "config key that the runs of a row differ in", required());
  visit.field("values", best_of.values, "that it takes", required());
  visit.field(
      "by", best_of.by, "metric that decides: validation_loss, eval_loss, a score", required());
  visit.field("take", best_of.take, "highest or lowest", required());
  visit.field("validation_rows",
              best_of.validation_rows,
              "train.validation_rows of the runs that the table's commands make",
              config::up_to(1 << 20));
  visit.field("tuning_seeds",
              best_of.tuning_seeds,
              "with which the value is chosen: the row shows runs of other seeds");
  visit.field("extend",
              best_of.extend,
              "whether values beyond the ends are tried while a row's best value is there");
}

template <class Visitor>
void fields(Visitor& visit, BudgetSpec& budget) {
  visit.field("equal", budget.equal, "tokens, flops or time", required());
  visit.field("of", budget.of, "row whose runs say how much; empty: the baseline");
}

template <class Visitor>
void fields(Visitor& visit, TableSpec& table) {
  visit.field("title", table.title, "heading", required());
  visit.field("baseline", table.baseline, "config that the others are compared with", required());
  visit.field("rows", table.rows, "one a config, in the order of the table", required());
  visit.field("columns", table.columns, "from left to right", required());
  visit.field("must_be_equal", table.must_be_equal, "what makes runs comparable", required());
  visit.field("parameters_within",
              table.parameters_within,
              "share by which a row's parameters may differ from the baseline's; null: any",
              config::at_least(0));
  visit.field("flops_within",
              table.flops_within,
              "share by which a row's FLOPs a token may differ from the baseline's; null: any",
              config::at_least(0));
  visit.field("primary",
              table.primary,
              "metric that the table is about; empty: that of the first column of a loss or score");
  visit.field("seeds",
              table.seeds,
              "planned for each row: 'forge run --table' makes them",
              config::between(2, 10000));
  visit.field("claims", table.claims, "what the table is to decide");
  visit.field("best_of", table.best_of, "the values of a key of which a row shows the best");
  visit.field("budget", table.budget, "what every row is trained with as much of");
  visit.field("published", table.published, "file with published metrics");
  visit.field("tokens_per_second", table.tokens_per_second, "where speeds come from");
}

namespace {

const yaml::Node& item(const yaml::Node& table, const char* list, size_t index) {
  return *table.find(list)->items[index];
}

void check_rows(const yaml::Node& node,
                const TableSpec& table,
                const std::vector<std::string>& configs) {
  if (table.rows.empty()) throw Error("the table has no rows", node.find("rows")->origin);
  std::set<std::string> seen;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const std::string& config = table.rows[i].config;
    const SourceSpan& where = item(node, "rows", i).find("config")->origin;
    if (std::find(configs.begin(), configs.end(), config) == configs.end()) {
      throw Error("there is no config '" + config + "' in this project",
                  where,
                  did_you_mean(config, configs));
    }
    if (!seen.insert(config).second) {
      throw Error("'" + config + "' has a row already", where, "name each config once");
    }
  }
  if (seen.count(table.baseline) == 0) {
    throw Error("the baseline '" + table.baseline + "' is not one of the rows",
                node.find("baseline")->origin,
                did_you_mean(table.baseline, {seen.begin(), seen.end()}));
  }
}

/// The words of `kind` that are not metrics. "score" is a metric whose name stands in `score`.
const std::map<std::string, ColumnKind>& kind_words() {
  static const std::map<std::string, ColumnKind> words = {
      {"model", ColumnKind::model},
      {"positions", ColumnKind::positions},
      {"score", ColumnKind::metric},
      {"difference", ColumnKind::difference},
      {"derived", ColumnKind::derived},
      {"overhead", ColumnKind::overhead},
      {"seeds", ColumnKind::seeds},
      {"varied", ColumnKind::varied},
      {"by", ColumnKind::by},
      {"notes", ColumnKind::notes},
  };
  return words;
}

/// Metrics that others publish, by their words.
const std::map<std::string, std::string>& published_words() {
  static const std::map<std::string, std::string> words = {
      {"published_eval_loss", results::eval_loss_name},
      {"published_tokens_per_second", results::tokens_per_second_name},
      {"published_peak_memory", results::peak_memory_name},
  };
  return words;
}

/// Sets kind and metric by the word of the table file.
void resolve_kind(ColumnSpec& column, const yaml::Node& place) {
  const std::string name = column.word == "peak_memory" ? results::peak_memory_name : column.word;
  const results::Metric* const metric = results::find_metric(name);
  if (const auto word = kind_words().find(name); word != kind_words().end()) {
    column.kind = word->second;
    if (column.kind == ColumnKind::difference && column.metric.empty())
      column.metric = results::eval_loss_name;
  } else if (const auto found = published_words().find(name); found != published_words().end()) {
    column.kind = ColumnKind::published;
    column.metric = found->second;
  } else if (metric && metric->source != results::Source::task &&
             metric->source != results::Source::window) {
    column.kind = ColumnKind::metric;
    column.metric = name;
  } else {
    std::vector<std::string> known = {"peak_memory"};
    for (const auto& [known_word, kind] : kind_words()) known.push_back(known_word);
    for (const auto& [known_word, of] : published_words()) known.push_back(known_word);
    for (const std::string& known_name : results::run_and_table_metric_names())
      known.push_back(known_name);
    throw Error("'" + column.word + "' is not a kind of column: " + join(known, ", "),
                place.find("kind")->origin,
                did_you_mean(column.word, known));
  }
}

/// Throws Error for a name that no run has: its cells would be dashes that nothing explains. Scores
/// are forge's own; a part of one, "answer_accuracy.hop_8", has the name of the whole in front.
void check_metric(const std::string& name, const SourceSpan& where) {
  const std::string whole = name.substr(0, name.find('.'));
  const results::Metric* const metric = results::find_metric(name);
  if (metric ? metric->source != results::Source::window : results::find_metric(whole) != nullptr)
    return;
  std::vector<std::string> known;
  for (const results::Metric& each : results::metrics()) {
    if (each.source != results::Source::window) known.push_back(each.name);
  }
  throw Error("no run has a final '" + name + "'",
              where,
              did_you_mean(whole, known, "there are " + join(known, ", ")));
}

void check_columns(const yaml::Node& node, TableSpec& table) {
  if (table.columns.empty()) throw Error("the table has no columns", node.find("columns")->origin);
  for (size_t i = 0; i < table.columns.size(); ++i) {
    ColumnSpec& column = table.columns[i];
    const yaml::Node& place = item(node, "columns", i);
    const bool is_score = column.word == "score";
    if (is_score && column.metric.empty()) {
      throw Error("a column of kind score names the score",
                  place.origin,
                  "e.g. score: token_accuracy; docs/TASKS.md lists those of each task");
    }
    resolve_kind(column, place);
    for (const char* key : {"score", "format"}) {
      if (is_score || column.kind == ColumnKind::difference || !place.find(key)) continue;
      throw Error(std::string("'") + key + "' is for columns of kind score or difference",
                  place.find(key)->origin);
    }
    if (const yaml::Node* const score = place.find("score"))
      check_metric(column.metric, score->origin);
    const bool is_derived = column.kind == ColumnKind::derived;
    if (is_derived && column.value.empty()) {
      throw Error("a column of kind derived has a value to compute",
                  place.origin,
                  "e.g. value: \"100*(tokens_per_second/baseline.tokens_per_second - 1)\"");
    }
    for (const char* key : {"value", "unit", "precision"}) {
      if (is_derived || !place.find(key)) continue;
      throw Error(std::string("'") + key + "' is for columns of kind derived",
                  place.find(key)->origin);
    }
    if (column.kind == ColumnKind::by) {
      throw Error("a column of kind by is there where 'forge compare --by KEY' asks for it",
                  place.origin);
    }
    if (column.kind == ColumnKind::varied && !table.best_of) {
      throw Error("a column of kind varied shows what best_of varies, and the table has no best_of",
                  place.origin);
    }
  }
}

/// Throws Error for a metric that tables do not test.
void check_is_tested(const std::string& name, const SourceSpan& where) {
  if (results::metric_named(name).is_tested()) return;
  throw Error(
      "'" + name +
          "' chooses between runs and decides no claim: runs do not report the losses of its "
          "rows, so nobody knows what other rows would change",
      where,
      std::string("claim the ") + results::eval_loss_name);
}

void check_claim(const ClaimSpec& claim,
                 const yaml::Node& place,
                 const std::vector<std::string>& rows) {
  const int limits = claim.at_least.has_value() + claim.at_most.has_value();
  if (!claim.value.empty() && limits == 0) {
    throw Error("a value is claimed to be at_least or at_most a number, or between both",
                place.find("value")->origin);
  }
  const int comparisons =
      !claim.below.empty() + !claim.above.empty() + !claim.holds.empty() + (limits > 0);
  if (comparisons != 1 || (limits == 2 && claim.value.empty())) {
    throw Error("a claim has one of below, above, at_least, at_most, holds",
                place.origin,
                "a value may be between at_least and at_most");
  }
  if (limits == 2 && *claim.at_least > *claim.at_most) {
    throw Error("no value is at least " + shortest(*claim.at_least) + " and at most " +
                    shortest(*claim.at_most),
                place.find("at_least")->origin,
                "at_least is the lower number");
  }
  if (claim.has_own_words() == claim.claim.empty()) {
    throw Error("a claim of expressions says in words what it claims, others do by themselves",
                place.origin,
                "claim: SENTENCE stands beside holds: or value: EXPRESSION");
  }
  if (claim.has_own_words() != claim.config.empty()) {
    throw Error("a claim names the config that it is about, one of expressions none", place.origin);
  }
  if (place.find("score")) {
    check_metric(claim.score, place.find("score")->origin);
    check_is_tested(claim.score, place.find("score")->origin);
  }
  for (const auto& [key, config] :
       {std::pair("config", claim.config), {"below", claim.below}, {"above", claim.above}}) {
    if (config.empty()) continue;
    if (std::find(rows.begin(), rows.end(), config) == rows.end()) {
      throw Error("the claim is about '" + config + "', which has no row",
                  place.find(key)->origin,
                  did_you_mean(config, rows));
    }
    if (key != std::string("config") && config == claim.config) {
      throw Error("'" + config + "' cannot be " + key + " itself", place.find(key)->origin);
    }
  }
}

void check_claims(const yaml::Node& node, const TableSpec& table) {
  std::vector<std::string> rows;
  for (const RowSpec& row : table.rows) rows.push_back(row.config);
  for (size_t i = 0; i < table.claims.size(); ++i) {
    check_claim(table.claims[i], item(node, "claims", i), rows);
  }
}

/// The rows and metrics that an expression may name.
struct Known {
  std::vector<std::string> metrics;
  std::vector<std::string> configs;
};

Known known_of(const TableSpec& table) {
  Known known{results::run_and_table_metric_names(), {}};
  for (const std::string& score : scores_of(table)) known.metrics.push_back(score);
  for (const RowSpec& row : table.rows) known.configs.push_back(row.config);
  return known;
}

void read_expressions(const yaml::Node& node, TableSpec& table) {
  const Known known = known_of(table);
  for (size_t i = 0; i < table.columns.size(); ++i) {
    ColumnSpec& column = table.columns[i];
    if (column.kind != ColumnKind::derived) continue;
    column.expression =
        parse_expression(column.value, item(node, "columns", i).find("value")->origin);
    check_names(column.expression, known.metrics, known.configs);
  }
  for (size_t i = 0; i < table.claims.size(); ++i) {
    ClaimSpec& claim = table.claims[i];
    const yaml::Node& place = item(node, "claims", i);
    if (!claim.holds.empty()) {
      claim.comparison = parse_comparison(claim.holds, place.find("holds")->origin);
      claim.expression = difference_of(*claim.comparison);
    } else if (!claim.value.empty()) {
      claim.expression = parse_expression(claim.value, place.find("value")->origin);
    }
    check_names(claim.expression, known.metrics, known.configs);
    for (const Name& name : names_of(claim.expression)) {
      const auto& origin = place.find(claim.holds.empty() ? "value" : "holds")->origin;
      check_is_tested(name.metric, origin);
      if (name.row != Name::Row::own) continue;
      throw Error("a claim is about several rows: '" + name.metric + "' does not say whose it is",
                  origin,
                  "write " + name.metric + "[CONFIG] or baseline." + name.metric);
    }
  }
}

/// Whether runs with other values of the key are others.
bool changes_numbers(std::string key) {
  std::replace(key.begin(), key.end(), '.', '/');
  const nlohmann::json::json_pointer place("/" + key);
  nlohmann::json config;
  config[place] = 0;
  return run::identity_config(config).contains(place);
}

/// Why runs with several values of the key cannot stand in one row; "" where they can.
std::string compared_with_nothing(const std::string& key) {
  if (starts_with(key, "model.")) return "another model is another config";
  const std::set<std::string> evaluation = {
      "train.seq_len", "train.eval_rows", "train.validation_rows", "train.eval_prompts"};
  const bool is_evaluated =
      evaluation.count(key) > 0 || starts_with(key, "data.") || starts_with(key, "tokenizer.");
  if (is_evaluated) return "its runs would be evaluated on other rows, or on other tokens";
  return changes_numbers(key) ? "" : "it changes no number, so runs with its values are one run";
}

void check_best_of(const yaml::Node& node, const TableSpec& table) {
  if (!table.best_of) return;
  const yaml::Node& place = *node.find("best_of");
  const BestOfSpec& best_of = *table.best_of;
  const std::vector<std::string> keys = config::all_key_paths();
  if (std::find(keys.begin(), keys.end(), best_of.key) == keys.end()) {
    throw Error("there is no config key '" + best_of.key + "'",
                place.find("key")->origin,
                did_you_mean(best_of.key, keys));
  }
  const std::vector<std::string>& equal = table.must_be_equal;
  if (std::find(equal.begin(), equal.end(), best_of.key) != equal.end()) {
    throw Error("'" + best_of.key + "' cannot vary within a row and be equal in all of them",
                place.find("key")->origin,
                "leave it out of must_be_equal");
  }
  if (best_of.values.empty()) throw Error("best_of has no values", place.find("values")->origin);
  std::set<double> seen;
  for (size_t i = 0; i < best_of.values.size(); ++i) {
    if (seen.insert(best_of.values[i]).second) continue;
    throw Error("the value " + value_text(best_of.values[i]) + " is given twice",
                item(place, "values", i).origin);
  }
  const std::set<std::string> draws = {"seed", "train.initial_weights_seed", "data.order_seed"};
  if (draws.count(best_of.key) > 0)
    throw Error("a row cannot be the best of its seeds: that is chance",
                place.find("key")->origin,
                "seeds: 5 in the table makes a sample of them");
  if (const std::string what = compared_with_nothing(best_of.key); !what.empty())
    throw Error("a row cannot be the best of values of '" + best_of.key + "': " + what,
                place.find("key")->origin,
                "best_of varies how a model is trained, such as optimizer.lr");
  check_metric(best_of.by, place.find("by")->origin);
  const bool can_go_on = best_of.values.size() >= 2 && *seen.begin() > 0;
  if (best_of.extend && !can_go_on)
    throw Error("a grid goes on by the ratio of its last two values: it needs two above 0",
                place.find("extend")->origin);
  const std::set<int64_t> seeds(best_of.tuning_seeds.begin(), best_of.tuning_seeds.end());
  if (seeds.size() < best_of.tuning_seeds.size() || (!seeds.empty() && *seeds.begin() < 0))
    throw Error("tuning seeds are whole numbers from 0 on, each given once",
                place.find("tuning_seeds")->origin);
}

void check_budget(const yaml::Node& node, const TableSpec& table) {
  if (!table.budget) return;
  const yaml::Node& place = *node.find("budget");
  std::vector<std::string> rows;
  for (const RowSpec& row : table.rows) rows.push_back(row.config);
  const std::string& of = table.budget->of;
  if (!of.empty() && std::find(rows.begin(), rows.end(), of) == rows.end())
    throw Error("the budget is that of '" + of + "', which has no row",
                place.find("of")->origin,
                did_you_mean(of, rows));
  if (table.best_of)
    throw Error(
        "a table has best_of or budget, not both: a value chosen for one number of steps "
        "need not be the best for another",
        place.origin);
  for (size_t i = 0; i < table.must_be_equal.size(); ++i) {
    const std::string& word = table.must_be_equal[i];
    if (word == "train.max_steps" || word == "train.max_tokens")
      throw Error("'" + word + "' cannot be equal where each row has a budget of its own",
                  item(node, "must_be_equal", i).origin,
                  "leave it out of must_be_equal");
  }
}

void check_equality(const yaml::Node& node, const TableSpec& table) {
  const std::vector<std::string> words = {"data", "tokenizer", "evaluation", "device", "code"};
  for (size_t i = 0; i < table.must_be_equal.size(); ++i) {
    const std::string& word = table.must_be_equal[i];
    if (std::find(words.begin(), words.end(), word) != words.end()) continue;
    if (config::is_known_path(word)) continue;
    std::vector<std::string> known = config::all_key_paths();
    known.insert(known.end(), words.begin(), words.end());
    throw Error("'" + word + "' is neither a config key nor one of " + join(words, ", "),
                item(node, "must_be_equal", i).origin,
                did_you_mean(word, known));
  }
}

void check_primary(const yaml::Node& node, const TableSpec& table) {
  if (table.primary.empty()) return;
  std::vector<std::string> metrics;
  for (const ColumnSpec& column : table.columns) {
    const bool is_new = std::find(metrics.begin(), metrics.end(), column.metric) == metrics.end();
    if (metric_of(column) && is_new) metrics.push_back(column.metric);
  }
  if (std::find(metrics.begin(), metrics.end(), table.primary) == metrics.end())
    throw Error("no column of the table shows the primary metric '" + table.primary + "'",
                node.find("primary")->origin,
                did_you_mean(table.primary, metrics, "its metrics: " + join(metrics, ", ")));
}

}  // namespace

TableSpec read_table(const std::string& path, const std::vector<std::string>& configs) {
  const yaml::NodePtr file = yaml::parse_file(path);
  const yaml::Node& node = *file;
  if (!node.is_mapping()) {
    throw Error("a table file is a mapping, this is " + yaml::describe_kind(node), node.origin);
  }
  yaml::require_no_repeated_keys(node);
  TableSpec table = config::read_fields<TableSpec>(node);
  table.name = std::filesystem::path(path).stem().string();
  check_rows(node, table, configs);
  check_columns(node, table);
  check_equality(node, table);
  check_claims(node, table);
  check_best_of(node, table);
  check_budget(node, table);
  check_primary(node, table);
  read_expressions(node, table);
  return table;
}

}  // namespace forge::tables

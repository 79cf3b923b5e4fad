#include "core/report/table_spec.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/keys.h"
#include "core/config/reader.h"
#include "core/yaml/parse.h"

namespace forge::report {

using config::required;

template <class Visitor>
void fields(Visitor& visit, ColumnSpec& column) {
  visit.field("kind", column.kind, "what the column shows", required());
  visit.field("title", column.title, "its header", required());
  visit.field("score", column.score, "which figure of the task");
  visit.field("format", column.format, "of a score; by_name: accuracies and validities in percent");
  visit.field("value", column.value, "expression over figures, for kind derived");
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
  visit.field("below", claim.below, "row whose figure is the higher one");
  visit.field("above", claim.above, "row whose figure is the lower one");
  visit.field("at_least", claim.at_least, "number that the figure reaches");
  visit.field("at_most", claim.at_most, "number that the figure does not exceed");
  visit.field("score", claim.score, "the figure, a score of the task or eval_loss");
  visit.field("profile", claim.profile, "profile of the runs that can decide it");
  visit.field("claim", claim.claim, "the sentence, beside holds or value");
  visit.field("holds", claim.holds, "comparison of two expressions over figures of rows");
  visit.field("value", claim.value, "expression that is at_least, at_most or between both");
  visit.field("unit", claim.unit, "of the expression's value");
}

template <class Visitor>
void fields(Visitor& visit, BestOfSpec& best_of) {
  visit.field("key", best_of.key, "config key that the runs of a row differ in", required());
  visit.field("values", best_of.values, "that it takes", required());
  visit.field("by", best_of.by, "the figure that decides, a score or eval_loss", required());
  visit.field("take", best_of.take, "highest or lowest", required());
  visit.field("selection_rows",
              best_of.selection_rows,
              "train.selection_rows of the runs that the table's commands make",
              config::up_to(1 << 20));
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
  visit.field("claims", table.claims, "what the table is to decide");
  visit.field("best_of", table.best_of, "the values of a key of which a row shows the best");
  visit.field("published", table.published, "file with published figures");
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

void check_columns(const yaml::Node& node, const TableSpec& table) {
  if (table.columns.empty()) throw Error("the table has no columns", node.find("columns")->origin);
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const ColumnSpec& column = table.columns[i];
    const yaml::Node& place = item(node, "columns", i);
    const bool is_score = column.kind == ColumnKind::score;
    if (is_score && column.score.empty()) {
      throw Error("a column of kind score names the score",
                  place.origin,
                  "e.g. score: token_accuracy; docs/TASKS.md lists those of each task");
    }
    for (const char* key : {"score", "format"}) {
      if (is_score || column.kind == ColumnKind::difference || !place.find(key)) continue;
      throw Error(std::string("'") + key + "' is for columns of kind score or difference",
                  place.find(key)->origin);
    }
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
  if (claim.has_own_words() == claim.claim.empty()) {
    throw Error("a claim of expressions says in words what it claims, others do by themselves",
                place.origin,
                "claim: SENTENCE stands beside holds: or value: EXPRESSION");
  }
  if (claim.has_own_words() != claim.config.empty()) {
    throw Error("a claim names the config that it is about, one of expressions none", place.origin);
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

/// The rows and figures that an expression may name.
struct Known {
  std::vector<std::string> figures;
  std::vector<std::string> configs;
};

Known known_of(const TableSpec& table) {
  Known known{run_figures(), {}};
  known.figures.emplace_back(loss_at_equal_time_name);
  known.figures.emplace_back(loss_at_equal_flops_name);
  for (const std::string& score : scores_of(table)) known.figures.push_back(score);
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
    check_names(column.expression, known.figures, known.configs);
  }
  for (size_t i = 0; i < table.claims.size(); ++i) {
    ClaimSpec& claim = table.claims[i];
    const yaml::Node& place = item(node, "claims", i);
    if (!claim.holds.empty()) {
      claim.comparison = parse_comparison(claim.holds, place.find("holds")->origin);
      check_names(*claim.comparison, known.figures, known.configs);
    } else if (!claim.value.empty()) {
      claim.expression = parse_expression(claim.value, place.find("value")->origin);
      check_names(*claim.expression, known.figures, known.configs);
    }
  }
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
    throw Error("the value " + shortest(best_of.values[i]) + " is given twice",
                item(place, "values", i).origin);
  }
}

void check_equality(const yaml::Node& node, const TableSpec& table) {
  const std::vector<std::string>& words = equality_words();
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

}  // namespace

const std::vector<std::string>& names_of(ColumnKind) {
  static const std::vector<std::string> names = {"model",
                                                 "positions",
                                                 "parameters",
                                                 "eval_loss",
                                                 "train_loss",
                                                 "tokens_per_second",
                                                 "peak_memory",
                                                 "overhead",
                                                 "score",
                                                 "difference",
                                                 "seeds",
                                                 "eval_loss_at_equal_time",
                                                 "eval_loss_at_equal_flops",
                                                 "derived",
                                                 "varied",
                                                 "by",
                                                 "notes",
                                                 "published_eval_loss",
                                                 "published_tokens_per_second",
                                                 "published_peak_memory"};
  return names;
}

void divide_by(TableSpec& table, const std::string& key) {
  const std::vector<std::string>& known = config::all_key_paths();
  if (key != "backend" && std::find(known.begin(), known.end(), key) == known.end()) {
    throw Error("there is no key '" + key + "' to divide rows by",
                {},
                did_you_mean(key, known).empty() ? "for example backend, seed or optimizer.lr"
                                                 : did_you_mean(key, known));
  }
  table.by = key;
  table.claims.clear();
  table.tokens_per_second = SpeedSource::runs;
  const auto model = std::find_if(table.columns.begin(), table.columns.end(), [](const auto& c) {
    return c.kind == ColumnKind::model;
  });
  const auto place = model == table.columns.end() ? table.columns.begin() : model + 1;
  table.columns.insert(place, {ColumnKind::by, key == "backend" ? "Backend" : key});
}

const std::vector<std::string>& names_of(ScoreFormat) {
  static const std::vector<std::string> names = {"by_name", "percent", "decimals"};
  return names;
}

const std::vector<std::string>& names_of(Extreme) {
  static const std::vector<std::string> names = {"highest", "lowest"};
  return names;
}

const std::vector<std::string>& names_of(SpeedSource) {
  static const std::vector<std::string> names = {"runs", "benchmark"};
  return names;
}

std::string figure_name(const ColumnSpec& column) {
  switch (column.kind) {
    case ColumnKind::eval_loss: return eval_loss_name;
    case ColumnKind::train_loss: return train_loss_name;
    case ColumnKind::tokens_per_second: return tokens_per_second_name;
    case ColumnKind::peak_memory: return peak_memory_name;
    case ColumnKind::score: return column.score;
    case ColumnKind::eval_loss_at_equal_time: return loss_at_equal_time_name;
    case ColumnKind::eval_loss_at_equal_flops: return loss_at_equal_flops_name;
    case ColumnKind::difference: return column.score.empty() ? eval_loss_name : column.score;
    default: return "";
  }
}

bool is_published(ColumnKind kind) {
  return kind == ColumnKind::published_eval_loss ||
         kind == ColumnKind::published_tokens_per_second ||
         kind == ColumnKind::published_peak_memory;
}

namespace {

bool is_of_equal_budget(const std::string& figure) {
  return figure == loss_at_equal_time_name || figure == loss_at_equal_flops_name;
}

bool names_equal_budget(const std::vector<Name>& names) {
  return std::any_of(
      names.begin(), names.end(), [](const Name& name) { return is_of_equal_budget(name.figure); });
}

}  // namespace

bool shows_equal_budgets(const TableSpec& table) {
  const auto in_column = [](const ColumnSpec& column) {
    return is_of_equal_budget(figure_name(column)) ||
           names_equal_budget(names_of(column.expression));
  };
  const auto in_claim = [](const ClaimSpec& claim) {
    return is_of_equal_budget(claim.score) ||
           (claim.comparison && names_equal_budget(names_of(*claim.comparison))) ||
           (claim.expression && names_equal_budget(names_of(*claim.expression)));
  };
  return std::any_of(table.columns.begin(), table.columns.end(), in_column) ||
         std::any_of(table.claims.begin(), table.claims.end(), in_claim);
}

std::vector<std::string> scores_of(const TableSpec& table) {
  std::vector<std::string> scores;
  const auto add = [&](const std::string& score) {
    if (std::find(scores.begin(), scores.end(), score) == scores.end()) scores.push_back(score);
  };
  const std::vector<std::string>& figures = run_figures();
  for (const ColumnSpec& column : table.columns) {
    const bool is_figure =
        std::find(figures.begin(), figures.end(), figure_name(column)) != figures.end();
    const bool is_score = !is_figure && !is_of_equal_budget(figure_name(column));
    if (!figure_name(column).empty() && is_score) add(column.score);
  }
  if (table.best_of &&
      std::find(figures.begin(), figures.end(), table.best_of->by) == figures.end())
    add(table.best_of->by);
  return scores;
}

const std::vector<std::string>& equality_words() {
  static const std::vector<std::string> words = {
      "data", "tokenizer", "evaluation", "device", "code"};
  return words;
}

TableSpec table_from_node(const yaml::Node& node, const std::vector<std::string>& configs) {
  if (!node.is_mapping()) {
    throw Error("a table file is a mapping, this is " + yaml::describe_kind(node), node.origin);
  }
  TableSpec table = config::read_fields<TableSpec>(node);
  check_rows(node, table, configs);
  check_columns(node, table);
  check_equality(node, table);
  check_claims(node, table);
  check_best_of(node, table);
  read_expressions(node, table);
  return table;
}

TableSpec read_table(const std::string& path, const std::vector<std::string>& configs) {
  TableSpec table = table_from_node(*yaml::parse_file(path), configs);
  table.name = std::filesystem::path(path).stem().string();
  return table;
}

}  // namespace forge::report

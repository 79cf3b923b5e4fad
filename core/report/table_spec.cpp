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
  visit.field("config", claim.config, "row whose loss is the lower one", required());
  visit.field("below", claim.below, "row whose loss is the higher one", required());
  visit.field("profile", claim.profile, "profile of the runs that can decide it");
}

template <class Visitor>
void fields(Visitor& visit, TableSpec& table) {
  visit.field("title", table.title, "heading", required());
  visit.field("baseline", table.baseline, "config that the others are compared with", required());
  visit.field("rows", table.rows, "one a config, in the order of the table", required());
  visit.field("columns", table.columns, "from left to right", required());
  visit.field("must_be_equal", table.must_be_equal, "what makes runs comparable", required());
  visit.field("claims", table.claims, "what the table is to decide");
  visit.field("published", table.published, "file with published figures");
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

void check_claims(const yaml::Node& node, const TableSpec& table) {
  std::vector<std::string> rows;
  for (const RowSpec& row : table.rows) rows.push_back(row.config);
  for (size_t i = 0; i < table.claims.size(); ++i) {
    const ClaimSpec& claim = table.claims[i];
    const yaml::Node& place = item(node, "claims", i);
    for (const auto& [key, config] : {std::pair("config", claim.config), {"below", claim.below}}) {
      if (std::find(rows.begin(), rows.end(), config) != rows.end()) continue;
      throw Error("the claim is about '" + config + "', which has no row",
                  place.find(key)->origin,
                  did_you_mean(config, rows));
    }
    if (claim.config == claim.below) {
      throw Error("'" + claim.config + "' cannot be below itself", place.find("below")->origin);
    }
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
                                                 "notes",
                                                 "published_eval_loss",
                                                 "published_tokens_per_second",
                                                 "published_peak_memory"};
  return names;
}

bool is_published(ColumnKind kind) {
  return kind == ColumnKind::published_eval_loss ||
         kind == ColumnKind::published_tokens_per_second ||
         kind == ColumnKind::published_peak_memory;
}

const std::vector<std::string>& equality_words() {
  static const std::vector<std::string> words = {"data", "tokenizer", "evaluation", "device"};
  return words;
}

TableSpec table_from_node(const yaml::Node& node, const std::vector<std::string>& configs) {
  if (!node.is_mapping()) {
    throw Error("a table file is a mapping, this is " + yaml::describe_kind(node), node.origin);
  }
  TableSpec table = config::read_fields<TableSpec>(node);
  check_rows(node, table, configs);
  if (table.columns.empty()) throw Error("the table has no columns", node.find("columns")->origin);
  check_equality(node, table);
  check_claims(node, table);
  return table;
}

TableSpec read_table(const std::string& path, const std::vector<std::string>& configs) {
  TableSpec table = table_from_node(*yaml::parse_file(path), configs);
  table.name = std::filesystem::path(path).stem().string();
  return table;
}

}  // namespace forge::report

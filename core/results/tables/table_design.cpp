#include "core/results/tables/table_design.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/results/tables/best_of.h"

namespace forge::tables {

std::string claim_key(const ClaimSpec& claim) {
  const auto number = [](const std::optional<double>& limit) {
    return limit ? shortest(*limit) : "";
  };
  return hash_hex(join({claim.config,
                        claim.below,
                        claim.above,
                        number(claim.at_least),
                        number(claim.at_most),
                        claim.score,
                        claim.profile,
                        claim.holds,
                        claim.value},
                       "\n"))
      .substr(0, 12);
}

namespace {

std::string key_of(const nlohmann::json& design) { return hash_hex(design.dump()).substr(0, 12); }

nlohmann::json number_or_null(const std::optional<double>& number) {
  return number ? nlohmann::json(*number) : nlohmann::json();
}

/// What keys held before they held all that decides which rows and runs are compared.
nlohmann::json first_design(const TableSpec& table) {
  nlohmann::json design = {{"baseline", table.baseline},
                           {"primary", primary_metric(table)},
                           {"must_be_equal", table.must_be_equal}};
  for (const RowSpec& row : table.rows) design["rows"].push_back(row.config);
  for (const ColumnSpec& column : table.columns)
    if (metric_of(column)) design["metrics"].push_back(column.metric);
  for (const ClaimSpec& claim : table.claims)
    design["claims"].push_back({claim_key(claim), claim.claim});
  if (table.best_of)
    design["best_of"] = {table.best_of->key, table.best_of->values, table.best_of->by};
  if (table.budget)
    design["budget"] = {names_of(Budget())[static_cast<size_t>(table.budget->equal)],
                        table.budget->of};
  return design;
}

}  // namespace

std::string design_key(const TableSpec& table) {
  nlohmann::json design = first_design(table);
  // Larger and more expensive rows are compared with nothing: a limit that is chosen when the
  // losses are known chooses rows.
  design["parameters_within"] = number_or_null(table.parameters_within);
  design["flops_within"] = number_or_null(table.flops_within);
  // A speed of `forge bench` is one number, which decides no claim.
  design["tokens_per_second"] =
      names_of(SpeedSource())[static_cast<size_t>(table.tokens_per_second)];
  if (const auto& best_of = table.best_of)
    design["best_of"].insert(design["best_of"].end(),
                             {names_of(Extreme())[static_cast<size_t>(best_of->take)],
                              best_of->validation_rows,
                              best_of->tuning_seeds,
                              best_of->extend});
  return key_of(design);
}

std::string recorded_design(const TableSpec& table) {
  std::vector<std::string> seeds;
  if (table.best_of)
    for (const int64_t seed : table.best_of->tuning_seeds) seeds.push_back(std::to_string(seed));
  return design_key(table) + (seeds.empty() ? "" : " " + join(seeds, ","));
}

bool is_design_of(const TableSpec& table, const std::string& recorded) {
  const std::string key = recorded.substr(0, recorded.find(' '));
  return key == design_key(table) || key == key_of(first_design(table));
}

namespace {

/// What the run recorded of the table; "" if the table did not exist, or nothing is known.
std::string recorded_by(const store::RunSummary& run, const std::string& table) {
  if (run.planned_tables.empty()) return "";
  const nlohmann::json planned = parse_json(run.planned_tables);
  const auto found = planned.find(table);
  return found == planned.end() ? "" : found->get<std::string>();
}

/// The tuning seeds of what was recorded of a table: those behind the key.
std::set<std::string> seeds_in(const std::string& recorded) {
  const size_t behind_key = recorded.find(' ');
  if (behind_key == std::string::npos) return {};
  const std::vector<std::string> seeds = split(recorded.substr(behind_key + 1), ',');
  return {seeds.begin(), seeds.end()};
}

bool names_seed(const std::string& recorded, int64_t seed) {
  return seeds_in(recorded).count(std::to_string(seed)) > 0;
}

}  // namespace

std::string table_tuned_by(const store::RunSummary& run, const TableSpec& own) {
  if (run.planned_seeds.empty() || run.planned_tables.empty()) return "";
  const std::vector<int64_t>& shown = own.shown_tuning_seeds;
  if ((own.best_of && is_tuning_seed(*own.best_of, run.seed)) ||
      std::find(shown.begin(), shown.end(), run.seed) != shown.end())
    return "";
  const std::vector<std::string> planned = split(run.planned_seeds, ',');
  const nlohmann::json tables = parse_json(run.planned_tables);
  for (const auto& [name, recorded] : tables.items()) {
    const std::set<std::string> tuning = seeds_in(recorded.get<std::string>());
    const auto is_one = [&](const std::string& seed) { return tuning.count(seed) > 0; };
    if (name != own.name && std::all_of(planned.begin(), planned.end(), is_one)) return name;
  }
  return "";
}

bool was_tuning_seed(const std::string& table, const store::RunSummary& run) {
  return names_seed(recorded_by(run, table), run.seed);
}

bool is_tuning_run(const TableSpec& table, const store::RunSummary& run) {
  if (!table.best_of || !is_tuning_seed(*table.best_of, run.seed)) return false;
  if (run.planned_tables.empty()) return true;
  const std::string recorded = recorded_by(run, table.name);
  if (recorded.find(' ') == std::string::npos)
    return !recorded.empty() && is_design_of(table, recorded);
  return names_seed(recorded, run.seed);
}

}  // namespace forge::tables

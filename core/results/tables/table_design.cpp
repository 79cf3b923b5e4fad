#include "core/results/tables/table_design.h"

#include <nlohmann/json.hpp>

#include "core/base/hash.h"
#include "core/base/text.h"

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

std::string design_key(const TableSpec& table) {
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
  return hash_hex(design.dump()).substr(0, 12);
}

}  // namespace forge::tables

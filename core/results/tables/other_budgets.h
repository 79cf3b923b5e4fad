#pragma once

#include <string>
#include <vector>

#include "core/results/tables/ablation.h"
#include "core/results/tables/made_runs.h"
#include "core/results/tables/set_place.h"

/// At which other budgets rows could have been compared: losses at equal time and FLOPs are those
/// at the budget of the row that needs the least, and who runs that row with another size or length
/// compares all others at another point of their curves.
namespace forge::tables {

/// Finds, for each row, what else runs of its config cost that could stand in it: of one seed, too,
/// for that sets a budget, shown, archived, left out by a filter or of another model.
void count_other_budgets(const MadeRuns& made, Ablation& ablation);

/// As place_of, of what is compared in these metrics. At an equal budget each one that another row
/// could have set before, in the way in which it was run then, is an attempt as another set is: in
/// each place that place_of counts, at each of these budgets.
SetPlace place_at_budget(const std::vector<const AblationRow*>& rows,
                         const std::vector<std::string>& metrics,
                         const Ablation& ablation);

/// What the line above the table says of them; without a name if there are none.
SetupEntry describe_other_budgets(const Ablation& ablation);

}  // namespace forge::tables

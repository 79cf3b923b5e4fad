#pragma once

#include <vector>

#include "core/results/tables/ablation.h"

/// The place of the compared sets of runs among all that were made: each earlier one is a look.
namespace forge::tables {

/// Which of several sets of runs is compared.
struct SetPlace {
  size_t number = 1;  ///< in the order in which the sets were made
  size_t tables = 0;  ///< declared together with this one, with runs that were made before
  size_t views = 1;   ///< along so many keys, of runs that were trained together

  /// By what each p is multiplied for it (statistics::set_factor).
  double factor() const;
};

/// That of rows which are compared with each other. Before it come the sets that were made before
/// the last of these rows was, here or where they were imported from. Where sets of two rows go
/// together in several ways, each way is a set. What is made later changes nothing, and neither
/// does what other rows were tried with.
SetPlace place_of(const std::vector<const AblationRow*>& rows);

/// Whether a set was there before the other one, or at the same time: here, or where both were made
/// before they were imported, in whatever order.
bool is_before(const RunSet& set, const RunSet& other);

/// Whether two sets were trained together: the first one was known no sooner, and was begun before
/// this was.
bool is_trained_with(const RunSet& other, const RunSet& shown);

/// What the line above the table says of the other sets; without a name if there are none.
SetupEntry describe_other_sets(const Ablation& ablation);

}  // namespace forge::tables

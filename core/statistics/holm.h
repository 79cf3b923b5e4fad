#pragma once

#include <optional>
#include <vector>

namespace forge::statistics {

/// The p of several tests, adjusted for their number by Holm's step-down procedure (S. Holm,
/// Scandinavian J. Statistics 6 (1979) 65), in the order given: who calls those real that are at
/// most 0.05 errs in at most 5 % of tables in any of their rows, however the tests depend on each
/// other. Equal p stay equal. What was not tested (none or NaN) stays none and does not count as a
/// test. Throws Error for a p outside of 0 to 1.
std::vector<std::optional<double>> holm_adjusted(const std::vector<std::optional<double>>& p);

}  // namespace forge::statistics

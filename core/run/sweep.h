#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/run/sweep_values.h"

namespace forge::run {

/// A key with the values that it is to take, one after the other.
struct Sweep {
  std::string path;  ///< dotted, e.g. "optimizer.lr"
  std::vector<std::string> values;
};

/// "optimizer.lr=3e-4,1e-3": commas part values, but for those inside of brackets, braces and
/// quotes. "optimizer.lr=log(1e-4,1e-2,5)" and linear(…): range_values of the ends and the number.
/// Throws Error where there is no key, no value or one twice, and for values that are drawn.
Sweep parse_sweep(const std::string& text);

/// "optimizer.lr=log_uniform(1e-4,1e-2)", uniform(…) and choice(A,AC,ABCD); none for a sweep whose
/// values are not drawn.
std::optional<RandomKey> parse_random_key(const std::string& text);

/// "seeds are whole numbers from 0 to 9007199254740992": records have no larger integers.
std::string seeds_are();

/// The sweep of the key `seed` over "1,2,3" or "1..5" (both ends count). Throws Error for anything
/// but seeds, each once.
Sweep parse_seeds(const std::string& text);

/// `count` seeds from `first` on. Throws Error where the last one is too large.
Sweep seeds_from(int64_t first, int64_t count);

/// Throws Error where a value is there twice.
void check_distinct(const Sweep& sweep);

/// Every combination of the sweeps' values, the last sweep's changing fastest; a single empty one
/// without sweeps. Where there are samples, each combination with each of them, the samples
/// changing fastest. Throws Error where two of them change one key, and for more than 100,000.
std::vector<Overrides> sweep_points(const std::vector<Sweep>& sweeps,
                                    const std::vector<Overrides>& samples = {});

/// How many samples of the keys whose values are drawn.
struct SampleCount {
  int64_t count = 0;  ///< 0: not said
  uint64_t seed = 1;  ///< of the draws
};

}  // namespace forge::run

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace forge::run {

/// A key with the values that it is to take, one after the other.
struct Sweep {
  std::string path;  ///< dotted, e.g. "optimizer.lr"
  std::vector<std::string> values;
};

/// "optimizer.lr=3e-4,1e-3": commas part values, but for those inside of brackets, braces and
/// quotes. Throws Error where there is no key, no value or one twice.
Sweep parse_sweep(const std::string& text);

/// The sweep of the key `seed` over "1,2,3" or "1..5" (both ends count). Throws Error for anything
/// but whole numbers from 0 on, each once.
Sweep parse_seeds(const std::string& text);

/// `count` seeds from `first` on.
Sweep seeds_from(int64_t first, int64_t count);

/// Throws Error where a value is there twice.
void check_distinct(const Sweep& sweep);

/// What a run's config is changed by: "path=value" for each sweep.
using Overrides = std::vector<std::string>;

/// Every combination of the sweeps' values, the last sweep's changing fastest; a single empty one
/// without sweeps. Throws Error where two sweeps change one key.
std::vector<Overrides> sweep_points(const std::vector<Sweep>& sweeps);

/// Runs that a project declares in a file of its own, sweeps/NAME.yaml, so that they are asked for
/// by a name.
struct SweepFile {
  std::string name;  ///< of the file, without .yaml
  std::string title;
  std::vector<std::string> configs;  ///< names and patterns; none: those of the command line
  std::vector<Sweep> sweeps;         ///< seeds first, then the keys in the order of the file
};

/// Reads and checks a sweep file. Throws Error at the place of what is wrong.
SweepFile read_sweep_file(const std::string& path);

}  // namespace forge::run

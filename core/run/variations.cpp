#include "core/run/variations.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "core/base/error.h"
#include "core/base/text.h"

namespace forge::run {
namespace {

constexpr int64_t most_seeds = 100000;

/// The parts of a text between commas that stand outside of brackets, braces and quotes.
std::vector<std::string> split_values(const std::string& text) {
  std::vector<std::string> values(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      values.emplace_back();
      continue;
    }
    values.back() += c;
  }
  return values;
}

int64_t seed_of(const std::string& text) {
  int64_t seed = 0;
  const char* end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, seed);
  if (text.empty() || problem != std::errc() || rest != end || seed < 0) {
    throw Error("'" + text + "' is no seed",
                {},
                "seeds are whole numbers from 0 on: --seed 1,2,3 or --seed 1..5");
  }
  return seed;
}

}  // namespace

void require_different(const Sweep& sweep) {
  std::set<std::string> seen;
  for (const std::string& value : sweep.values) {
    if (!seen.insert(value).second)
      throw Error("the sweep of '" + sweep.path + "' has the value " + value + " twice");
  }
}

Sweep parse_sweep(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw Error("'" + text + "' is no sweep",
                {},
                "a sweep names a key and its values: --sweep optimizer.lr=3e-4,1e-3");
  }
  Sweep sweep{text.substr(0, equals), split_values(text.substr(equals + 1))};
  for (const std::string& value : sweep.values) {
    if (value.empty())
      throw Error("the sweep of '" + sweep.path + "' has an empty value",
                  {},
                  "an empty text is written \"\"");
  }
  require_different(sweep);
  return sweep;
}

Sweep parse_seeds(const std::string& text) {
  const size_t dots = text.find("..");
  if (dots == std::string::npos) {
    Sweep sweep{"seed", {}};
    for (const std::string& part : split(text, ','))
      sweep.values.push_back(std::to_string(seed_of(part)));
    require_different(sweep);
    return sweep;
  }
  const int64_t first = seed_of(text.substr(0, dots)), last = seed_of(text.substr(dots + 2));
  if (last < first) throw Error("the seeds " + text + " are none: the last is before the first");
  if (last - first >= most_seeds)
    throw Error("the seeds " + text + " are more than " + std::to_string(most_seeds));
  return seeds_from(first, last - first + 1);
}

Sweep seeds_from(int64_t first, int64_t count) {
  Sweep sweep{"seed", {}};
  for (int64_t i = 0; i < count; ++i) sweep.values.push_back(std::to_string(first + i));
  return sweep;
}

std::vector<Variation> variations_of(const std::vector<Sweep>& sweeps) {
  std::set<std::string> keys;
  std::vector<Variation> variations(1);
  for (const Sweep& sweep : sweeps) {
    if (!keys.insert(sweep.path).second)
      throw Error("two sweeps change '" + sweep.path + "'", {}, "give all of its values in one");
    std::vector<Variation> longer;
    for (const Variation& variation : variations) {
      for (const std::string& value : sweep.values) {
        longer.push_back(variation);
        longer.back().push_back(sweep.path + "=" + value);
      }
    }
    variations = std::move(longer);
  }
  return variations;
}

}  // namespace forge::run

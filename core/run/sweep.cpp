#include "core/run/sweep.h"

#include <charconv>
#include <set>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"

namespace forge::run {
namespace {

constexpr int64_t max_seeds = 100000;
constexpr size_t most_points = 100000;

int64_t seed_of(const std::string& text) {
  int64_t seed = 0;
  const char* end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, seed);
  if (text.empty() || problem != std::errc() || rest != end || seed < 0 ||
      seed > largest_exact_integer) {
    throw Error("'" + text + "' is no seed", seeds_are() + ": --seed 1,2,3 or --seed 1..5");
  }
  return seed;
}

}  // namespace

std::string seeds_are() {
  return "seeds are whole numbers from 0 to " + std::to_string(largest_exact_integer);
}

void check_distinct(const Sweep& sweep) {
  std::set<std::string> seen;
  for (const std::string& value : sweep.values) {
    if (!seen.insert(value).second)
      throw Error("the sweep of '" + sweep.path + "' has the value " + value + " twice");
  }
}

namespace {

/// "optimizer.lr=log(1e-4,1e-2,5)", parted.
struct SweepText {
  std::string path;
  std::string values;
};

SweepText part_at_equals(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw Error("'" + text + "' is no sweep",
                "a sweep names a key and its values: --sweep optimizer.lr=3e-4,1e-3");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

bool is_drawn(ValueKind kind) { return kind != ValueKind::linear && kind != ValueKind::log; }

void require_arguments(const SweepText& sweep, const ValueCall& call, size_t count) {
  if (call.arguments.size() == count) return;
  const std::string& name = value_kind_names()[static_cast<size_t>(call.kind)];
  throw Error("'" + sweep.values + "' has " + counted(call.arguments.size(), "part"),
              is_drawn(call.kind)
                  ? "the two ends: " + name + "(1e-4,1e-2)"
                  : "the two ends and the number of values: " + name + "(1e-4,1e-2,5)");
}

std::vector<std::string> values_of(const SweepText& sweep) {
  const std::optional<ValueCall> call = parse_call(sweep.values);
  if (!call) return split_values(sweep.values);
  if (is_drawn(call->kind))
    throw Error("the values of '" + sweep.path + "' are drawn, and are none of a list");
  require_arguments(sweep, *call, 3);
  const std::string what = "an end of the sweep of '" + sweep.path + "'";
  return range_values(sweep.path,
                      call->kind,
                      sweep_number(call->arguments[0], what),
                      sweep_number(call->arguments[1], what),
                      sweep_count(call->arguments[2], "values"));
}

}  // namespace

Sweep parse_sweep(const std::string& text) {
  const SweepText parted = part_at_equals(text);
  Sweep sweep{parted.path, values_of(parted)};
  for (const std::string& value : sweep.values) {
    if (value.empty())
      throw Error("the sweep of '" + sweep.path + "' has an empty value",
                  "an empty text is written \"\"");
  }
  check_distinct(sweep);
  return sweep;
}

std::optional<RandomKey> parse_random_key(const std::string& text) {
  const SweepText parted = part_at_equals(text);
  const std::optional<ValueCall> call = parse_call(parted.values);
  if (!call || !is_drawn(call->kind)) return std::nullopt;
  RandomKey key{parted.path, {}};
  key.distribution.kind = call->kind;
  if (call->kind == ValueKind::choice) {
    key.distribution.choices = call->arguments;
  } else {
    require_arguments(parted, *call, 2);
    const std::string what = "an end of the sweep of '" + parted.path + "'";
    key.distribution.low = sweep_number(call->arguments[0], what);
    key.distribution.high = sweep_number(call->arguments[1], what);
  }
  check_distribution(key);
  return key;
}

Sweep parse_seeds(const std::string& text) {
  const size_t dots = text.find("..");
  if (dots == std::string::npos) {
    Sweep sweep{"seed", {}};
    for (const std::string& part : split(text, ','))
      sweep.values.push_back(std::to_string(seed_of(part)));
    check_distinct(sweep);
    return sweep;
  }
  const int64_t first = seed_of(text.substr(0, dots)), last = seed_of(text.substr(dots + 2));
  if (last < first) throw Error("the seeds " + text + " are none: the last is before the first");
  if (last - first >= max_seeds)
    throw Error("the seeds " + text + " are more than " + std::to_string(max_seeds),
                "give fewer of them");
  return seeds_from(first, last - first + 1);
}

Sweep seeds_from(int64_t first, int64_t count) {
  if (count > max_seeds)
    throw Error(
        counted(static_cast<size_t>(count), "seed") + " are more than " + std::to_string(max_seeds),
        "'--seeds' is the number of seeds, '--seed " + std::to_string(count) +
            "' is one of that name");
  if (count - 1 > largest_exact_integer - first)
    throw Error(
        counted(size_t(count), "seed") + " from " + std::to_string(first) + " on go too far",
        seeds_are());
  Sweep sweep{"seed", {}};
  for (int64_t i = 0; i < count; ++i) sweep.values.push_back(std::to_string(first + i));
  return sweep;
}

std::vector<Overrides> sweep_points(const std::vector<Sweep>& sweeps,
                                    const std::vector<Overrides>& samples) {
  std::set<std::string> keys;
  const auto require_new = [&](const std::string& path) {
    if (!keys.insert(path).second)
      throw Error("two sweeps change '" + path + "'", "give all of its values in one");
  };
  std::vector<Overrides> points(1);
  const auto extend = [&](const std::vector<Overrides>& by) {
    std::vector<Overrides> longer;
    if (points.size() * by.size() > most_points)
      throw Error("the sweeps make " +
                      with_thousands(static_cast<int64_t>(points.size() * by.size())) +
                      " runs of a config, and more than " + with_thousands(int64_t{most_points}) +
                      " are no sweep",
                  "every combination of the values is one: draw some, --sweep "
                  "\"optimizer.lr=log_uniform(1e-4,1e-2)\" --samples 100");
    for (const Overrides& point : points) {
      for (const Overrides& settings : by) {
        longer.push_back(point);
        longer.back().insert(longer.back().end(), settings.begin(), settings.end());
      }
    }
    points = std::move(longer);
  };
  for (const Sweep& sweep : sweeps) {
    require_new(sweep.path);
    std::vector<Overrides> settings;
    for (const std::string& value : sweep.values) settings.push_back({sweep.path + "=" + value});
    extend(settings);
  }
  if (samples.empty()) return points;
  for (const std::string& setting : samples.front())
    require_new(setting.substr(0, setting.find('=')));
  extend(samples);
  return points;
}

}  // namespace forge::run

#include "core/run/sweep_values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <unordered_set>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/random.h"
#include "core/base/text.h"
#include "core/config/keys.h"

namespace forge::run {
namespace {

constexpr int64_t most_values = 10000;
constexpr int fewest_digits = 3;
constexpr int most_digits = 17;
constexpr auto largest_integer = static_cast<double>(largest_exact_integer);

/// The number rounded to so many significant digits. By its decimal text, which every C++ library
/// rounds alike.
double rounded(double number, int digits) {
  char text[64];
  const auto [end, problem] =
      std::to_chars(text, text + sizeof text, number, std::chars_format::scientific, digits - 1);
  double value = number;
  if (problem == std::errc()) std::from_chars(text, end, value);
  return value;
}

std::string number_text(double number) {
  const std::string text = shortest(number);
  return ends_with(text, ".0") ? text.substr(0, text.size() - 2) : text;
}

bool takes_integers(const std::string& path) {
  const config::Key* const key = config::find_key(path);
  return key && starts_with(key->type, "integer");
}

const std::string& name_of(ValueKind kind) { return value_kind_names()[static_cast<size_t>(kind)]; }

/// Throws Error where the key takes no numbers, or there are none between the ends.
void check_ends(const std::string& path, ValueKind kind, double low, double high) {
  const config::Key* const key = config::find_key(path);
  const bool takes_numbers = !key || starts_with(key->type, "integer") ||
                             starts_with(key->type, "number") || key->type == "any value";
  if (!takes_numbers)
    throw Error("the sweep of '" + path + "' asks for numbers, and the key takes " + key->type,
                "list its values, or draw them: choice(A,B)");
  const std::string ends = number_text(low) + " to " + number_text(high);
  if (!(low < high))
    throw Error("the sweep of '" + path + "' has no values from " + ends,
                "the smaller end comes first");
  const bool is_log = kind == ValueKind::log || kind == ValueKind::log_uniform;
  if (is_log && low <= 0)
    throw Error("the sweep of '" + path + "' has the ends " + ends +
                    ", and a logarithm needs numbers above 0",
                kind == ValueKind::log ? "use linear" : "use uniform");
  if (!takes_integers(path)) return;
  if (std::trunc(low) != low || std::trunc(high) != high || std::abs(low) > largest_integer ||
      std::abs(high) > largest_integer)
    throw Error("'" + path + "' takes integers, and its sweep has the ends " + ends);
}

/// The number at a fraction of the way from one end to the other.
double between(ValueKind kind, double low, double high, double fraction) {
  const bool is_log = kind == ValueKind::log || kind == ValueKind::log_uniform;
  if (!is_log) return low + fraction * (high - low);
  return portable_exp(portable_log(low) + fraction * (portable_log(high) - portable_log(low)));
}

std::vector<double> range_with_digits(
    const std::string& path, ValueKind kind, double low, double high, int64_t count, int digits) {
  const bool integers = takes_integers(path);
  std::vector<double> values = {low};
  for (int64_t i = 1; i + 1 < count; ++i) {
    const double value = between(kind, low, high, double(i) / double(count - 1));
    values.push_back(integers ? std::round(value) : rounded(value, digits));
  }
  values.push_back(high);
  return values;
}

bool is_increasing(const std::vector<double>& values) {
  return std::adjacent_find(values.begin(), values.end(), std::greater_equal<>()) == values.end();
}

std::string drawn_value(const Distribution& from, bool integers, RandomStream& random) {
  if (from.kind == ValueKind::choice)
    return from.choices[static_cast<size_t>(random.below(from.choices.size()))];
  if (integers && from.kind == ValueKind::uniform) {
    const auto numbers = static_cast<uint64_t>(from.high - from.low) + 1;
    return number_text(from.low + static_cast<double>(random.below(numbers)));
  }
  const double value = between(from.kind, from.low, from.high, random.uniform());
  const double near = integers ? std::round(value) : rounded(value, fewest_digits);
  return number_text(std::clamp(near, from.low, from.high));
}

}  // namespace

const std::vector<std::string>& value_kind_names() {
  static const std::vector<std::string> names = {
      "linear", "log", "uniform", "log_uniform", "choice"};
  return names;
}

std::vector<std::string> range_values(
    const std::string& path, ValueKind kind, double low, double high, int64_t count) {
  check_ends(path, kind, low, high);
  if (count < 2)
    throw Error("the sweep of '" + path + "' asks for " + std::to_string(count) +
                    " value, and a range has two ends",
                "list the value alone");
  const int last_digits = takes_integers(path) ? fewest_digits : most_digits;
  for (int digits = fewest_digits; digits <= last_digits; ++digits) {
    const std::vector<double> values = range_with_digits(path, kind, low, high, count, digits);
    if (is_increasing(values)) return texts_of(values, number_text);
  }
  throw Error("the sweep of '" + path + "' asks for " + std::to_string(count) + " values, and " +
                  name_of(kind) + " gives fewer different ones from " + number_text(low) + " to " +
                  number_text(high),
              "ask for fewer, or list them");
}

void check_distribution(const RandomKey& key) {
  const Distribution& from = key.distribution;
  if (from.kind != ValueKind::choice) return check_ends(key.path, from.kind, from.low, from.high);
  if (from.choices.empty())
    throw Error("the sweep of '" + key.path + "' has nothing to choose from",
                "for example choice(A,AC)");
  std::set<std::string> seen;
  for (const std::string& choice : from.choices) {
    if (!seen.insert(choice).second)
      throw Error("the sweep of '" + key.path + "' has the value " + choice + " twice");
  }
}

std::vector<Overrides> draw_samples(const std::vector<RandomKey>& keys,
                                    int64_t count,
                                    uint64_t seed) {
  if (count > most_values)
    throw Error(with_thousands(count) + " are too many samples",
                "at most " + with_thousands(most_values));
  std::vector<RandomStream> streams;
  std::vector<bool> integers;  // looked up once: a point is drawn many times where few are left
  for (const RandomKey& key : keys) {
    check_distribution(key);
    streams.emplace_back(seed, stream_number("sweep " + key.path));
    integers.push_back(takes_integers(key.path));
  }
  std::vector<Overrides> points;
  std::unordered_set<std::string> seen;
  int64_t repeats = 0;  // in a row
  // Where one point of n is left, 100 n draws miss it once in e^100 times.
  while (int64_t(points.size()) < count && repeats < 100 * (int64_t(points.size()) + 10)) {
    Overrides point;
    for (size_t i = 0; i < keys.size(); ++i)
      point.push_back(keys[i].path + "=" +
                      drawn_value(keys[i].distribution, integers[i], streams[i]));
    ++repeats;
    if (!seen.insert(join(point, "\n")).second) continue;
    points.push_back(std::move(point));
    repeats = 0;
  }
  if (int64_t(points.size()) < count)
    throw Error("the sweep asks for " + std::to_string(count) + " samples, and only " +
                    std::to_string(points.size()) + " different ones were found",
                "ask for fewer, or list the values: every combination is run");
  return points;
}

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

std::optional<ValueCall> parse_call(const std::string& text) {
  const size_t open = text.find('(');
  if (open == std::string::npos) return std::nullopt;
  const auto& names = value_kind_names();
  const auto name = std::find(names.begin(), names.end(), text.substr(0, open));
  if (name == names.end()) return std::nullopt;
  if (text.back() != ')')
    throw Error("'" + text + "' does not end with ')'",
                "for example optimizer.lr=log(1e-4,1e-2,5), in quotes for the shell");
  ValueCall call{static_cast<ValueKind>(name - names.begin()), {}};
  const std::string inside = text.substr(open + 1, text.size() - open - 2);
  if (inside.empty()) return call;
  for (const std::string& argument : split_values(inside))
    call.arguments.emplace_back(trim(argument));
  return call;
}

double sweep_number(const std::string& text, const std::string& what) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, number);
  if (text.empty() || problem != std::errc() || rest != end || !std::isfinite(number))
    throw Error("'" + text + "' is no number for " + what, "for example 1e-4");
  return number;
}

int64_t sweep_integer(const std::string& text, int64_t least, const std::string& what) {
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, number);
  if (text.empty() || problem != std::errc() || rest != end || number < least)
    throw Error("'" + text + "' is no number for " + what,
                "a whole number from " + std::to_string(least) + " on");
  return number;
}

int64_t sweep_count(const std::string& text, const std::string& what) {
  const int64_t count = sweep_integer(text, 1, "the number of " + what);
  if (count > most_values)
    throw Error("'" + text + "' are too many " + what, "at most " + with_thousands(most_values));
  return count;
}

}  // namespace forge::run

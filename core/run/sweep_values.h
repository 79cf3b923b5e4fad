#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace forge::run {

/// What a run's config is changed by: "path=value" for each key.
using Overrides = std::vector<std::string>;

/// Kinds of values that are computed from two ends, or drawn.
enum class ValueKind { linear, log, uniform, log_uniform, choice };
/// "linear", "log", "uniform", "log_uniform", "choice": as files and the command line have them.
const std::vector<std::string>& value_kind_names();

/// Numbers from `low` to `high`, both included, at equal distances (`linear`) or ratios (`log`).
/// They are rounded to three significant digits, or to as many as keep them apart; of a key that
/// takes integers to integers. The ends stay as they are. Throws Error where there are no such
/// values.
std::vector<std::string> range_values(
    const std::string& path, ValueKind kind, double low, double high, int64_t count);

/// What the values of a key are drawn from.
struct Distribution {
  ValueKind kind = ValueKind::uniform;  ///< uniform, log_uniform or choice
  double low = 0, high = 0;             ///< uniform and log_uniform: the ends
  std::vector<std::string> choices;     ///< choice: the values, equally likely
};

/// A key whose values are drawn.
struct RandomKey {
  std::string path;
  Distribution distribution;
};

/// Throws Error where nothing can be drawn: ends in the wrong order, a logarithm of 0, no choice,
/// numbers for a key that takes none.
void check_distribution(const RandomKey& key);

/// `count` different points, each with one value for every key, all drawn anew (random search:
/// Bergstra and Bengio 2012). Numbers have three significant digits, or are integers where the key
/// takes these. The seed gives the same points on every machine; a larger count begins with those
/// of a smaller one, and a key more changes none of the others' first draws. Throws Error where
/// there are not so many different points, and for more than 10,000.
std::vector<Overrides> draw_samples(const std::vector<RandomKey>& keys,
                                    int64_t count,
                                    uint64_t seed);

/// The parts of a text between commas that stand outside of brackets, braces and quotes.
std::vector<std::string> split_values(const std::string& text);

/// "log(1e-4,1e-2,5)" or "choice(A,AC)", parted.
struct ValueCall {
  ValueKind kind = ValueKind::linear;
  std::vector<std::string> arguments;
};
/// None for a text that begins with none of the kinds' names and a parenthesis. Throws Error where
/// the closing one is missing.
std::optional<ValueCall> parse_call(const std::string& text);

/// A finite number as sweeps write it: "1e-4". Throws Error naming `what`.
double sweep_number(const std::string& text, const std::string& what);
/// A whole number of at least `least`. Throws Error naming `what`.
int64_t sweep_integer(const std::string& text, int64_t least, const std::string& what);
/// A number of values or samples, 1 to 10,000. Throws Error naming `what`.
int64_t sweep_count(const std::string& text, const std::string& what);

}  // namespace forge::run

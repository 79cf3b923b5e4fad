#include "core/results/statistics/value_range.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace forge::statistics {

double product(const Point& a, const Point& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

Point product(const Matrix& matrix, const Point& point) {
  Point result;
  for (const Point& row : matrix) result.push_back(product(row, point));
  return result;
}

std::optional<Point> slopes(const FunctionOfMeans& function, const Point& point) {
  Point result;
  for (size_t moved = 0; moved < point.size(); ++moved) {
    const double step = function.steps[moved];
    if (step == 0) {
      result.push_back(0);
      continue;
    }
    Point beside = point;
    beside[moved] = point[moved] + step;
    const std::optional<double> above = function.value_at(beside);
    beside[moved] = point[moved] - step;
    const std::optional<double> below = function.value_at(beside);
    if (!above || !below) return std::nullopt;
    result.push_back((*above - *below) / (2 * step));
  }
  return result;
}

Reach within_ellipsoid(Matrix squares) {
  return [squares = std::move(squares)](const Point& slope) {
    Point move = product(squares, slope);
    const double length = std::sqrt(std::max(0.0, product(move, slope)));
    for (double& each : move) each = length > 0 ? each / length : 0;
    return move;
  };
}

Reach within_box(Point halves) {
  return [halves = std::move(halves)](const Point& slope) {
    Point move(halves.size());
    for (size_t i = 0; i < halves.size(); ++i) move[i] = std::copysign(halves[i], slope[i]);
    return move;
  };
}

Reach within_both(Reach a, Reach b) {
  return [a = std::move(a), b = std::move(b)](const Point& slope) {
    Point move = a(slope);
    const Point other = b(slope);
    const double of_a = product(move, slope), of_b = product(other, slope);
    const double length = std::hypot(of_a, of_b);
    for (size_t i = 0; i < move.size(); ++i)
      move[i] = length > 0 ? (of_a * move[i] + of_b * other[i]) / length : 0;
    return move;
  };
}

namespace {

Point moved_by(const Point& move, double times, Point point) {
  for (size_t i = 0; i < point.size(); ++i) point[i] += times * move[i];
  return point;
}

/// Whether the function changes in the direction of `sign`, 1 or -1, all the way of a move.
bool goes_one_way(const FunctionOfMeans& function, const Point& move, double sign) {
  constexpr int parts = 16;
  std::optional<double> before = function.value_at(function.means);
  for (int i = 1; i <= parts; ++i) {
    const auto value = function.value_at(moved_by(move, sign * i / double{parts}, function.means));
    if (!value || !before || sign * (*value - *before) <= 0) return false;
    before = value;
  }
  return true;
}

/// The largest (`sign` 1) or smallest (-1) value at means within reach. It lies where the slopes
/// there point at: they are followed from the means on, and turned less where that overshoots. None
/// where the function has no value within reach, turns or has a pole there.
std::optional<double> end_of(const FunctionOfMeans& function, const Reach& reach, double sign) {
  constexpr int most_steps = 100;
  const Point& means = function.means;
  const auto value_after = [&](const Point& move, double times) {
    return function.value_at(moved_by(move, times, means));
  };
  std::optional<Point> slope = slopes(function, means);
  if (!slope) return std::nullopt;
  Point move = reach(*slope);
  const std::optional<double> at_means = function.value_at(means);
  std::optional<double> value = value_after(move, sign);
  const double change = product(move, *slope);
  if (!value || change == 0) return value;
  const auto is_straight = [&](double part) {
    const auto there = value_after(move, sign * part);
    return there && std::fabs(*there - *at_means - sign * part * change) <= 1e-7 * change;
  };
  if (is_straight(1) && is_straight(0.5)) return value;
  Point direction = moved_by(*slope, 1 / change - 1, *slope);  // a move along it counts 1
  double turn = 1;
  for (int i = 0; i < most_steps; ++i) {
    slope = slopes(function, moved_by(move, sign, means));
    if (!slope) return std::nullopt;
    const double most = product(reach(*slope), *slope);
    // Where nothing within reach lies farther along the slopes, it is found.
    if (!(most > 0)) return std::nullopt;
    if (product(move, *slope) >= (1 - 1e-6) * most)
      return goes_one_way(function, move, sign) ? value : std::nullopt;
    Point turned = direction;
    for (size_t k = 0; k < turned.size(); ++k)
      turned[k] += turn * ((*slope)[k] / most - direction[k]);
    const Point next = reach(turned);
    const auto there = value_after(next, sign);
    if (there && sign * (*there - *value) > 0) {
      direction = turned;
      move = next;
      value = there;
      turn = std::min(1.0, 2 * turn);
    } else {
      turn /= 2;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Interval> values_within(const FunctionOfMeans& function, const Reach& reach) {
  const std::optional<double> low = end_of(function, reach, -1);
  const std::optional<double> high = end_of(function, reach, 1);
  if (!low || !high) return std::nullopt;
  return Interval{*low, *high};
}

}  // namespace forge::statistics

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
std::optional<End> end_of(const FunctionOfMeans& function, const Reach& reach, double sign) {
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
  const auto end = [&] { return End{*value, moved_by(move, sign, means)}; };
  if (!value) return std::nullopt;
  if (change == 0) return end();
  const auto is_straight = [&](double part) {
    const auto there = value_after(move, sign * part);
    return there && std::fabs(*there - *at_means - sign * part * change) <= 1e-7 * change;
  };
  if (is_straight(1) && is_straight(0.5)) return end();
  Point direction = moved_by(*slope, 1 / change - 1, *slope);  // a move along it counts 1
  double turn = 1;
  for (int i = 0; i < most_steps; ++i) {
    slope = slopes(function, moved_by(move, sign, means));
    if (!slope) return std::nullopt;
    const double most = product(reach(*slope), *slope);
    // Where nothing within reach lies farther along the slopes, it is found.
    if (!(most > 0)) return std::nullopt;
    if (product(move, *slope) >= (1 - 1e-6) * most)
      return goes_one_way(function, move, sign) ? std::optional(end()) : std::nullopt;
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

std::optional<Ends> ends_within(const FunctionOfMeans& function, const Reach& reach) {
  std::optional<End> low = end_of(function, reach, -1);
  if (!low) return std::nullopt;
  std::optional<End> high = end_of(function, reach, 1);
  if (!high) return std::nullopt;
  return Ends{std::move(*low), std::move(*high)};
}

namespace {

/// Directions that are apart from each other by more than an angle, in the measure of an ellipsoid.
class Directions {
 public:
  explicit Directions(const Matrix& squares) : squares_(squares) {}

  void add(Point slope) {
    constexpr double least_sine = 0.035;  // two degrees
    const double whole = std::sqrt(length_of(slope));
    if (!(whole > 0)) return;
    for (const Point& known : known_) slope = moved_by(known, -inner(slope, known), slope);
    const double rest = std::sqrt(length_of(slope));
    if (!(rest > least_sine * whole)) return;
    for (double& each : slope) each /= rest;
    known_.push_back(std::move(slope));
  }

  int count() const { return std::max(1, static_cast<int>(known_.size())); }

 private:
  double inner(const Point& a, const Point& b) const { return product(product(squares_, a), b); }
  double length_of(const Point& a) const { return std::max(0.0, inner(a, a)); }

  const Matrix& squares_;
  std::vector<Point> known_;  ///< of length 1, at right angles to each other
};

}  // namespace

int directions_at_ends(const FunctionOfMeans& function,
                       const Ends& ends,
                       const Reach& reach,
                       const Matrix& squares) {
  int most = 1;
  for (const End* end : {&ends.low, &ends.high}) {
    const std::optional<Point> slope = slopes(function, end->means);
    if (!slope) continue;
    Directions directions(squares);
    directions.add(*slope);
    const Point outwards = reach(*slope);
    const double length = product(outwards, *slope);
    for (size_t i = 0; i < slope->size(); ++i) {
      Point along(slope->size());
      along[i] = 1;
      Point aside = reach(along);
      // On the plane through the end on which the slope is the same in all directions.
      if (length > 0) aside = moved_by(outwards, -product(aside, *slope) / length, aside);
      for (const double side : {-1.0, 1.0})
        if (const auto beside = slopes(function, moved_by(aside, side, end->means)))
          directions.add(*beside);
    }
    most = std::max(most, directions.count());
  }
  return most;
}

}  // namespace forge::statistics

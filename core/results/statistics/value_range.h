#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/results/statistics/sample.h"

/// The range of a function's values at all means that chance leaves possible.
namespace forge::statistics {

using Point = std::vector<double>;  ///< a number for each mean
using Matrix = std::vector<Point>;  ///< square, of such points

double product(const Point& a, const Point& b);
Point product(const Matrix& matrix, const Point& point);

/// A function of the means of several samples.
struct FunctionOfMeans {
  std::function<std::optional<double>(const Point&)> value_at;  ///< none: it has no value there
  Point means;
  /// In which its slopes are taken, small against what the means vary; 0: that mean adds nothing.
  Point steps;
};

/// How fast it changes with each mean at a point; none where it has no value beside it.
std::optional<Point> slopes(const FunctionOfMeans& function, const Point& point);

/// By how much chance moves the means where that moves a function most that has these slopes.
using Reach = std::function<Point(const Point& slope)>;

/// Within an ellipsoid around the means, from its matrix: where that is the covariance of the
/// means, a function with slopes b is moved by √(b' covariance b).
Reach within_ellipsoid(Matrix squares);

/// Each mean by so much, whatever they have in common.
Reach within_box(Point halves);

/// By two errors that are independent of each other: in any direction as far as the root of the
/// squares of what each alone reaches.
Reach within_both(Reach a, Reach b);

/// An end of the range of a function's values.
struct End {
  double value = 0;
  Point means;  ///< at which the function has it
};

struct Ends {
  End low, high;
};

/// The ends of the values of the function at all means within reach. None where it has a pole or no
/// value there, or turns on the way to one of the ends, so that the ends are not all that it takes:
/// it must not decide anything then.
std::optional<Ends> ends_within(const FunctionOfMeans& function, const Reach& reach);

/// In how many directions the means can lie from an end of a range within `reach`: in one where the
/// means at which the function has the value of the end lie on a plane, as those of a sum, a ratio
/// or a function of one sum do. Where they bend, as around a sum of squares, chance chooses the
/// direction in which the truth seems to be, and so many dimensions must be covered at once.
/// `squares`: of the ellipsoid that `reach` stays within, or is near to.
int directions_at_ends(const FunctionOfMeans& function,
                       const Ends& ends,
                       const Reach& reach,
                       const Matrix& squares);

}  // namespace forge::statistics

#include "core/report/plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/report/display_text.h"
#include "core/report/figures.h"

namespace forge::report {
namespace {

constexpr int label_width = 9;  ///< of the y axis, with the space behind
constexpr double shown_from = 0.1;

/// Colours that differ for colour-blind eyes too, of the 256 that terminals have.
constexpr int palette[] = {33, 208, 36, 170, 220, 75, 124, 245};

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  double length() const { return high > low ? high - low : 1; }
};

bool is_finite(const std::pair<double, double>& point) {
  return std::isfinite(point.first) && std::isfinite(point.second);
}

std::string letter_of(size_t curve) {
  static const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  return std::string(1, letters[curve % letters.size()]);
}

std::string painted(const std::string& text, size_t curve, bool colour) {
  if (!colour) return text;
  const int shade = palette[curve % (sizeof palette / sizeof palette[0])];
  return "\x1b[38;5;" + std::to_string(shade) + "m" + text + "\x1b[0m";
}

Range x_range(const std::vector<Curve>& curves) {
  Range range;
  for (const Curve& curve : curves) {
    for (const auto& point : curve.points) {
      if (is_finite(point)) range.include(point.first);
    }
  }
  return range;
}

Range y_range(const std::vector<Curve>& curves, const Range& x) {
  Range range;
  for (const double from : {shown_from, 0.0}) {
    for (const Curve& curve : curves) {
      for (const auto& point : curve.points) {
        if (is_finite(point) && point.first >= x.low + from * x.length())
          range.include(point.second);
      }
    }
    if (range.high > range.low) break;
  }
  return range;
}

/// Which curve is seen at each place, -1: none.
std::vector<std::vector<int>> drawn(
    const std::vector<Curve>& curves, const Range& x, const Range& y, int columns, int lines) {
  std::vector<std::vector<int>> canvas(static_cast<size_t>(lines),
                                       std::vector<int>(static_cast<size_t>(columns), -1));
  for (size_t k = 0; k < curves.size(); ++k) {
    std::vector<double> sums(static_cast<size_t>(columns), 0), counts(sums);
    for (const auto& point : curves[k].points) {
      if (!is_finite(point)) continue;
      const auto column =
          static_cast<size_t>(std::lround((point.first - x.low) / x.length() * (columns - 1)));
      sums[column] += point.second;
      ++counts[column];
    }
    for (size_t column = 0; column < sums.size(); ++column) {
      if (counts[column] == 0) continue;
      const double height = (sums[column] / counts[column] - y.low) / y.length();
      if (height < 0 || height > 1) continue;
      const auto line = static_cast<size_t>(std::lround((1 - height) * (lines - 1)));
      canvas[line][column] = static_cast<int>(k);
    }
  }
  return canvas;
}

}  // namespace

std::string plot(const std::vector<Curve>& curves, const PlotOptions& options) {
  const Range x = x_range(curves);
  if (!(x.high >= x.low)) return "nothing to plot yet\n";
  const Range y = y_range(curves, x);
  const int columns = std::max(20, options.width - label_width - 1);
  const auto canvas = drawn(curves, x, y, columns, options.height);
  std::string text;
  for (int line = 0; line < options.height; ++line) {
    const bool labelled = line == 0 || line == options.height - 1 || line == options.height / 2;
    const double value = y.high - y.length() * line / (options.height - 1);
    text += pad_left(labelled ? loss_text(value) : "", label_width - 1) + " \u2502";
    std::string drawn_line;
    size_t blank = 0;
    for (const int curve : canvas[static_cast<size_t>(line)]) {
      if (curve < 0) {
        ++blank;
        continue;
      }
      drawn_line += std::string(blank, ' ') + painted(letter_of(static_cast<size_t>(curve)),
                                                      static_cast<size_t>(curve),
                                                      options.colour);
      blank = 0;
    }
    text += drawn_line + "\n";
  }
  std::string axis;
  for (int i = 0; i < columns; ++i) axis += "\u2500";
  text += std::string(label_width, ' ') + "\u2514" + axis + "\n";
  const std::string low = throughput_text(x.low),
                    high = throughput_text(x.high) + " " + options.x_label;
  text += std::string(label_width + 1, ' ') + low +
          pad_left(high, columns - static_cast<int>(low.size())) + "\n";
  for (size_t k = 0; k < curves.size(); ++k)
    text +=
        "  " + painted(letter_of(k), k, options.colour) + "  " + printable(curves[k].name) + "\n";
  return text;
}

}  // namespace forge::report

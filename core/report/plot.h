#pragma once

#include <string>
#include <utility>
#include <vector>

namespace forge::report {

/// A line of a plot.
struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< sorted by x; what is not finite is left out
};

struct PlotOptions {
  int width = 80;   ///< columns, axis labels included
  int height = 16;  ///< lines of the drawing alone
  bool colour = false;
  std::string x_label;  ///< e.g. "tokens"
};

/// Curves as text, each drawn with a letter of its own that the legend below names; where several
/// meet, the later one is seen. The y axis ends where the largest value after the first tenth of
/// the way lies, so that the fall of the beginning does not flatten all that follows. Ends with a
/// newline.
std::string plot(const std::vector<Curve>& curves, const PlotOptions& options = {});

}  // namespace forge::report

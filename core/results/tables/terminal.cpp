#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/base/display_text.h"
#include "core/base/text.h"
#include "core/results/metrics.h"
#include "core/results/tables/sheet.h"

namespace forge::tables {
namespace {

constexpr int gap = 2;               ///< columns between two columns
constexpr int narrowest_prose = 18;  ///< a column of prose is not squeezed below this

std::string bold(const std::string& text, bool colour) {
  return colour ? "\x1b[1m" + text + "\x1b[0m" : text;
}

std::string wrapped_lines(const std::string& text, int width) {
  return join(wrap(printable(text), width), "\n") + "\n";
}

int longest_word(const std::string& text) {
  int width = 0;
  for (const std::string& word : split(text, ' ')) width = std::max(width, display_width(word));
  return width;
}

/// Columns that the cells of a column take, its title not counted.
int cell_width(const Sheet& sheet, size_t column) {
  int width = 0;
  for (const auto& row : sheet.rows)
    width = std::max(width, display_width(printable(row[column].text)));
  return width;
}

/// Widths at which nothing is wrapped; where that is too wide, titles go over several lines first
/// and then prose, from the right, as far as that helps.
std::vector<int> column_widths(const Sheet& sheet, int limit) {
  std::vector<int> widths;
  std::vector<int> with_wrapped_titles;
  std::vector<int> least;
  for (size_t column = 0; column < sheet.columns.size(); ++column) {
    const std::string title = printable(sheet.columns[column].title);
    const int cells = cell_width(sheet, column);
    widths.push_back(std::max(cells, display_width(title)));
    with_wrapped_titles.push_back(std::max(cells, longest_word(title)));
    const bool wraps = sheet.columns[column].wraps;
    least.push_back(wraps ? std::min(cells, std::max(narrowest_prose, longest_word(title)))
                          : with_wrapped_titles.back());
  }
  int total = gap * (static_cast<int>(widths.size()) - 1);
  for (const int width : widths) total += width;
  for (const std::vector<int>& bounds : {with_wrapped_titles, least}) {
    for (size_t column = widths.size(); column-- > 0 && total > limit;) {
      const int narrowed = std::max(bounds[column], widths[column] - (total - limit));
      total -= widths[column] - narrowed;
      widths[column] = narrowed;
    }
  }
  return widths;
}

struct RowStyle {
  bool colour = false;
  bool is_header = false;  ///< titles, which may go over several lines
};

/// The text with blanks to the column's width.
std::string padded(const std::string& text, int width, bool is_number, bool is_bold) {
  const std::string blanks(static_cast<size_t>(std::max(0, width - display_width(text))), ' ');
  return is_number ? blanks + bold(text, is_bold) : bold(text, is_bold) + blanks;
}

/// One row over as many lines as its longest cell takes.
std::string row_lines(const Sheet& sheet,
                      const std::vector<SheetCell>& cells,
                      const std::vector<int>& widths,
                      RowStyle style) {
  std::vector<std::vector<std::string>> wrapped;
  size_t height = 1;
  for (size_t column = 0; column < cells.size(); ++column) {
    const std::string text = printable(cells[column].text);
    const bool wraps = style.is_header || sheet.columns[column].wraps;
    wrapped.push_back(wraps ? wrap(text, widths[column]) : std::vector<std::string>{text});
    height = std::max(height, wrapped.back().size());
  }
  std::string lines;
  for (size_t i = 0; i < height; ++i) {
    std::string line;
    for (size_t column = 0; column < cells.size(); ++column) {
      const std::string text = i < wrapped[column].size() ? wrapped[column][i] : "";
      const bool is_bold = style.colour && cells[column].bold && !text.empty();
      if (column > 0) line += std::string(gap, ' ');
      line += padded(text, widths[column], sheet.columns[column].is_number, is_bold);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    lines += line + "\n";
  }
  return lines;
}

std::string header_lines(const Sheet& sheet, const std::vector<int>& widths) {
  std::vector<SheetCell> titles;
  for (const SheetColumn& column : sheet.columns) titles.push_back({column.title, std::nullopt});
  std::string lines = row_lines(sheet, titles, widths, {false, true});
  lines.pop_back();
  return lines;
}

/// A paragraph with a heading, its lines indented; "" where there are none.
std::string section(const std::string& heading, const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string text = "\n" + heading + "\n";
  for (const std::string& line : lines) text += "  " + printable(line) + "\n";
  return text;
}

}  // namespace

std::string table_lines(const Sheet& sheet, const TerminalOptions& options) {
  const std::vector<int> widths = column_widths(sheet, options.width);
  std::string text = bold(header_lines(sheet, widths), options.colour) + "\n";
  for (const auto& row : sheet.rows) text += row_lines(sheet, row, widths, {options.colour, false});
  return text;
}

std::string to_terminal(const Sheet& sheet, const TerminalOptions& options) {
  std::string text = bold(printable(sheet.title), options.colour) + "\n";
  if (!sheet.setup.empty()) text += wrapped_lines(sheet.setup, options.width);
  text += "\n" + table_lines(sheet, options);
  for (size_t i = 0; i < sheet.footnotes.size(); ++i) {
    const std::string mark = (i == 0 ? "\n[" : "[") + std::to_string(i + 1) + "] ";
    text += mark + printable(sheet.footnotes[i]) + "\n";
  }
  if (options.points) text += section("Chosen from", sheet.points);
  text += section("Claims", sheet.verdicts);
  text += section("Missing runs are made by", sheet.commands);
  text += section("Left out", sheet.excluded);
  if (!sheet.notes.empty()) text += "\n";
  for (const std::string& note : sheet.notes) text += wrapped_lines(note, options.width);
  return text;
}

std::string to_terminal(const Ablation& ablation, const TerminalOptions& options) {
  return to_terminal(make_sheet(ablation), options);
}

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

constexpr int dots_across = 2, dots_down = 4;  ///< of a character of Braille

/// A character of the drawing. Dots of several curves lie in it side by side; its colour is that of
/// the last one.
struct PlotCell {
  unsigned dots = 0;  ///< as Unicode numbers them, from U+2800 on
  size_t curve = 0;
  bool letter = false;  ///< the curve's letter stands here instead of dots
};

class Canvas {
 public:
  Canvas(int columns, int lines)
      : cells_(static_cast<size_t>(lines), std::vector<PlotCell>(static_cast<size_t>(columns))) {}

  int width() const { return static_cast<int>(cells_[0].size()) * dots_across; }
  int height() const { return static_cast<int>(cells_.size()) * dots_down; }
  const std::vector<std::vector<PlotCell>>& lines() const { return cells_; }

  void dot(int x, int y, size_t curve) {
    static constexpr unsigned bits[dots_down][dots_across] = {
        {0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    PlotCell& cell = at(x, y);
    cell.dots |= bits[y % dots_down][x % dots_across];
    if (!cell.letter) cell.curve = curve;
  }

  /// False where another letter stands already.
  bool letter(int x, int y, size_t curve) {
    PlotCell& cell = at(x, y);
    if (cell.letter) return false;
    cell.curve = curve;
    return cell.letter = true;
  }

 private:
  PlotCell& at(int x, int y) {
    return cells_[static_cast<size_t>(y / dots_down)][static_cast<size_t>(x / dots_across)];
  }

  std::vector<std::vector<PlotCell>> cells_;
};

/// The height of a curve at each column of dots, from above: the mean of the points that fall on
/// it, between them a straight line; NaN before the first and behind the last.
std::vector<double> heights(const Curve& curve,
                            const Range& x,
                            const Range& y,
                            const Canvas& canvas) {
  const auto width = static_cast<size_t>(canvas.width());
  std::vector<double> sums(width, 0), counts(width, 0);
  for (const auto& point : curve.points) {
    if (!is_finite(point)) continue;
    const auto column =
        static_cast<size_t>(std::lround((point.first - x.low) / x.length() * (canvas.width() - 1)));
    sums[column] += (y.high - point.second) / y.length() * (canvas.height() - 1);
    ++counts[column];
  }
  std::vector<double> result(width, std::nan(""));
  size_t last = width;
  for (size_t column = 0; column < width; ++column) {
    if (counts[column] == 0) continue;
    result[column] = sums[column] / counts[column];
    for (size_t i = last + 1; last < width && i < column; ++i) {
      const double share = static_cast<double>(i - last) / static_cast<double>(column - last);
      result[i] = result[last] + share * (result[column] - result[last]);
    }
    last = column;
  }
  return result;
}

void draw_line(const std::vector<double>& heights, size_t curve, Canvas& canvas) {
  std::optional<int> last;
  for (size_t column = 0; column < heights.size(); ++column) {
    if (std::isnan(heights[column])) continue;
    const double seen = std::clamp(heights[column], -1.0, static_cast<double>(canvas.height()));
    const int y = static_cast<int>(std::lround(seen));
    // Where the line is steep, all that lies between two columns belongs to the second.
    const int begin = last && *last < y ? *last + 1 : y;
    const int end = last && *last > y ? *last - 1 : y;
    for (int dot = std::max(begin, 0); dot <= std::min(end, canvas.height() - 1); ++dot)
      canvas.dot(static_cast<int>(column), dot, curve);
    last = y;
  }
}

/// The curve's letter a few times along its line, where no other curve has its own.
void write_letters(const std::vector<double>& heights,
                   size_t curve,
                   size_t curves,
                   Canvas& canvas) {
  const auto write = [&](int x) {
    const double y = heights[static_cast<size_t>(x)];
    const bool is_seen = y >= 0 && y <= canvas.height() - 1;
    return is_seen && canvas.letter(x, static_cast<int>(std::lround(y)), curve);
  };
  const int count = static_cast<int>(curves);
  const int distance = dots_across * std::max(12, 4 * count);
  bool any = false;
  for (int x = distance * static_cast<int>(2 * curve + 1) / (2 * count); x < canvas.width();
       x += distance)
    any = write(x) || any;
  for (int x = canvas.width() - 1; x >= 0 && !any; --x) any = write(x);
}

/// All curves: each line is seen through the others, and has letters of its own.
Canvas drawn(
    const std::vector<Curve>& curves, const Range& x, const Range& y, int columns, int lines) {
  Canvas canvas(columns, lines);
  for (size_t k = 0; k < curves.size(); ++k) draw_line(heights(curves[k], x, y, canvas), k, canvas);
  for (size_t k = 0; k < curves.size(); ++k)
    write_letters(heights(curves[k], x, y, canvas), k, curves.size(), canvas);
  return canvas;
}

std::string plot_cell_text(const PlotCell& cell, bool colour) {
  if (cell.letter) return painted(letter_of(cell.curve), cell.curve, colour);
  if (cell.dots == 0) return " ";
  const char braille[] = {'\xe2',
                          static_cast<char>(0xa0 | (cell.dots >> 6)),
                          static_cast<char>(0x80 | (cell.dots & 0x3f)),
                          '\0'};
  return painted(braille, cell.curve, colour);
}

}  // namespace

std::string plot(const std::vector<Curve>& curves, const PlotOptions& options) {
  const Range x = x_range(curves);
  if (!(x.high >= x.low)) return "nothing to plot yet\n";
  const Range y = y_range(curves, x);
  const int columns = std::max(20, options.width - label_width - 1);
  const Canvas canvas = drawn(curves, x, y, columns, options.height);
  std::string text;
  for (int line = 0; line < options.height; ++line) {
    const bool labelled = line == 0 || line == options.height - 1 || line == options.height / 2;
    const double value = y.high - y.length() * line / (options.height - 1);
    text += pad_left(labelled ? results::loss_text(value) : "", label_width - 1) + " \u2502";
    std::string drawn_line;
    for (const PlotCell& cell : canvas.lines()[static_cast<size_t>(line)])
      drawn_line += plot_cell_text(cell, options.colour);
    drawn_line.erase(drawn_line.find_last_not_of(' ') + 1);
    text += drawn_line + "\n";
  }
  std::string axis;
  for (int i = 0; i < columns; ++i) axis += "\u2500";
  text += std::string(label_width, ' ') + "\u2514" + axis + "\n";
  const std::string low = results::throughput_text(x.low),
                    high = results::throughput_text(x.high) + " " + options.x_label;
  text += std::string(label_width + 1, ' ') + low +
          pad_left(high, columns - static_cast<int>(low.size())) + "\n";
  for (size_t k = 0; k < curves.size(); ++k)
    text +=
        "  " + painted(letter_of(k), k, options.colour) + "  " + printable(curves[k].name) + "\n";
  return text;
}

}  // namespace forge::tables

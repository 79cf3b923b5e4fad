#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/results/statistics/sample.h"
#include "core/results/tables/ablation.h"

namespace forge::tables {

struct SheetColumn {
  std::string title;
  bool is_number = false;  ///< right-aligned
  bool wraps = false;      ///< prose, which may go over several lines
};

struct SheetCell {
  std::string text;
  std::optional<double> value;  ///< what to sort by; none: the text
  bool bold = false;
  std::optional<statistics::Interval> interval = {};  ///< of the mean of a metric over seeds
};

/// A table as text for people, before it is laid out for a terminal or as Markdown.
struct Sheet {
  std::string title;
  std::vector<SheetColumn> columns;
  std::vector<std::vector<SheetCell>> rows;
  std::vector<std::string> footnotes;  ///< the first is marked [1] in its row
  std::vector<std::string> verdicts;   ///< on the table's claims
  std::vector<std::string> points;     ///< of best_of: all that a row was chosen from
  std::vector<std::string> commands;   ///< make the runs that are missing
  std::vector<std::string> excluded;   ///< runs that are not shown and why
  std::vector<std::string> sources;    ///< of the published metrics
};

Sheet make_sheet(const Ablation& ablation);

/// The columns that are shown: published ones only where there are published metrics.
std::vector<ColumnSpec> shown_columns(const Ablation& ablation);

struct TerminalOptions {
  bool colour = false;  ///< headers, and cells that stand out, in bold
  int width = 100;      ///< columns of the terminal; prose is wrapped to fit where it can
  bool points = false;  ///< of best_of: all that each row was chosen from
};

/// Header and rows alone, laid out in columns; ends with a newline.
std::string table_lines(const Sheet& sheet, const TerminalOptions& options = {});

/// A table for people at a terminal, with what it leaves out below; ends with a newline.
std::string to_terminal(const Ablation& ablation, const TerminalOptions& options = {});

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

/// Header and rows alone.
std::string markdown_table(const Sheet& sheet);

/// The table alone with its footnotes and what it leaves out, under a second-level heading.
std::string to_markdown(const Ablation& ablation);

/// A document of its own: the setup, every table, how to make the numbers again. The same runs give
/// the same bytes: nothing in it depends on when or where it is written.
std::string export_markdown(const std::string& title, const std::vector<Ablation>& ablations);

/// A text that LaTeX shows as it stands: its special characters escaped, ± ≈ − and the like in math
/// mode. Letters beyond ASCII stay UTF-8, which LaTeX reads since 2018.
std::string latex_escaped(const std::string& text);

/// A `table` with booktabs' rules, whose label is tab:NAME: cells as on the sheet, bold ones bold;
/// below, small, `setup` (how the runs were made and what ± stands for; "": nothing) and the
/// footnotes. What the sheet says besides (claims, missing and left-out runs, sources) stands above
/// as comments. The same sheet gives the same text.
std::string to_latex(const Sheet& sheet, const std::string& name, const std::string& setup = "");
/// The table's sheet with its setup.
std::string to_latex(const Ablation& ablation);

/// Several tables in one file, under a comment that says how to include it.
std::string latex_document_part(const std::vector<std::string>& tables);

}  // namespace forge::tables

/// Tables for programs: metrics in full, under the names that configs and the store use.
namespace forge::tables {

/// RFC 4180 with a header line. A metric that is not there is empty, one that is no number "nan".
std::string to_csv(const Ablation& ablation);

/// {"table", "title", "baseline", "profile", "setup", "rows": [{"config", "status", "run_id", …}],
///  "left_out"}. A metric that is not there is null.
nlohmann::ordered_json to_json(const Ablation& ablation);

}  // namespace forge::tables

/// RFC 4180: comma-separated values.
namespace forge::tables {

/// In quotes where it needs them.
std::string csv_field(const std::string& text);

/// Fields that are quoted already where they need it, as a line.
std::string csv_line(const std::vector<std::string>& fields);

}  // namespace forge::tables

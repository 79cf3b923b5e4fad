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

/// A table as text, before it is laid out for a terminal, Markdown or LaTeX.
struct Sheet {
  std::string title;
  std::string setup = {};  ///< what holds for all metrics, "profile quick · 300 steps of …"
  std::vector<SheetColumn> columns;
  std::vector<std::vector<SheetCell>> rows;
  std::vector<std::string> footnotes;  ///< the first is marked [1] in its cells
  std::vector<std::string> verdicts;   ///< on the table's claims
  std::vector<std::string> points;     ///< of best_of: each row's values and their means
  std::vector<std::string> commands;   ///< that make missing runs
  std::vector<std::string> excluded;   ///< runs that are not shown and why
  std::vector<std::string> notes;      ///< on the whole table; of published metrics the source
};

Sheet make_sheet(const Ablation& ablation);

/// The line above the table, in every format that has text: all that its setup says in short.
std::string line_above(const Ablation& ablation);

/// The columns that are shown: published ones only where there are published metrics.
std::vector<ColumnSpec> shown_columns(const Ablation& ablation);

struct TerminalOptions {
  bool colour = false;  ///< headers, and cells that stand out, in bold
  int width = 100;      ///< columns of the terminal; prose is wrapped to fit
  bool points = false;  ///< shows the values of best_of
};

/// Header and rows alone, laid out in columns; ends with a newline.
std::string table_lines(const Sheet& sheet, const TerminalOptions& options = {});

/// "canon_a: optimizer.lr 0.003, the run shown has 0.001 (canon_a-12)", a line a reason.
std::vector<std::string> excluded_lines(const std::vector<ExcludedRuns>& excluded);

/// The same for programs: [{"config", "reason", "runs", "ids"}].
nlohmann::ordered_json to_json(const std::vector<ExcludedRuns>& excluded);

/// A table for a terminal, with claims, missing and excluded runs below; ends with a newline.
std::string to_terminal(const Sheet& sheet, const TerminalOptions& options = {});
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

/// Curves as lines of Braille dots, each with a letter that the legend below names and, where that
/// is allowed, a colour. Lines that cross are both seen. The y axis covers the values after the
/// first tenth of the x axis, so that the initial fall does not flatten the rest. Ends with a
/// newline.
std::string plot(const std::vector<Curve>& curves, const PlotOptions& options = {});

/// Header and rows alone.
std::string markdown_table(const Sheet& sheet);

/// The table with everything that it says, under a second-level heading.
std::string to_markdown(const Sheet& sheet);
std::string to_markdown(const Ablation& ablation);

/// A document: the setup, every table, the commands that reproduce them. The same runs give the
/// same bytes.
std::string export_markdown(const std::string& title, const std::vector<Ablation>& ablations);

/// A text that LaTeX shows as it stands: special characters escaped, ± ≈ − and the like in math
/// mode. Other letters stay UTF-8.
std::string latex_escaped(const std::string& text);

/// A `table` with booktabs' rules and the label tab:NAME. Below it, small: `setup` and the
/// footnotes. Above it, as comments: claims, missing and excluded runs, sources. The same sheet
/// gives the same text.
std::string to_latex(const Sheet& sheet, const std::string& name);
std::string to_latex(const Ablation& ablation);

/// Several tables in one file, with a comment on how to include it.
std::string latex_document_part(const std::vector<std::string>& tables);

// Tables for programs: unrounded metrics under their names in configs and the store.

/// RFC 4180 with a header line. A missing metric is empty, one that is not a number "nan".
std::string to_csv(const Ablation& ablation);

/// {"table", "title", "baseline", "profile", "setup", "rows": [{"config", "status", "run_id", …}],
///  "left_out"}. A missing metric is null.
nlohmann::ordered_json to_json(const Ablation& ablation);

// RFC 4180: comma-separated values.

/// In quotes where it needs them, without control characters. A text that a spreadsheet would run
/// as a formula (it begins with = + - @ and is no number) gets a leading apostrophe, as OWASP
/// advises.
std::string csv_field(const std::string& text);

/// Fields that are quoted already where they need it, as a line.
std::string csv_line(const std::vector<std::string>& fields);

}  // namespace forge::tables

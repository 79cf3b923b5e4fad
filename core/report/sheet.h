#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/report/ablation.h"

namespace forge::report {

struct SheetColumn {
  std::string title;
  bool is_number = false;  ///< right-aligned
  bool wraps = false;      ///< prose, which may go over several lines
};

struct SheetCell {
  std::string text;
  std::optional<double> value;  ///< what to sort by; none: the text
  bool bold = false;
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
  std::vector<std::string> left_out;   ///< runs that are not shown and why
  std::vector<std::string> sources;    ///< of the published figures
};

Sheet make_sheet(const Ablation& ablation);

/// The columns that are shown: published ones only where there are published figures.
std::vector<ColumnSpec> shown_columns(const Ablation& ablation);

}  // namespace forge::report

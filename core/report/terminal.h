#pragma once

#include <string>

#include "core/report/ablation.h"
#include "core/report/sheet.h"

namespace forge::report {

struct TerminalOptions {
  bool colour = false;  ///< headers, and cells that stand out, in bold
  int width = 100;      ///< columns of the terminal; prose is wrapped to fit where it can
  bool points = false;  ///< of best_of: all that each row was chosen from
};

/// Header and rows alone, laid out in columns; ends with a newline.
std::string table_lines(const Sheet& sheet, const TerminalOptions& options = {});

/// A table for people at a terminal, with what it leaves out below; ends with a newline.
std::string to_terminal(const Ablation& ablation, const TerminalOptions& options = {});

}  // namespace forge::report

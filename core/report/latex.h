#pragma once

#include <string>

#include "core/report/sheet.h"

namespace forge::report {

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

}  // namespace forge::report

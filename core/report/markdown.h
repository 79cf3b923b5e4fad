#pragma once

#include <string>
#include <vector>

#include "core/report/ablation.h"
#include "core/report/sheet.h"

namespace forge::report {

/// Header and rows alone.
std::string markdown_table(const Sheet& sheet);

/// The table alone with its footnotes and what it leaves out, under a second-level heading.
std::string to_markdown(const Ablation& ablation);

/// A document of its own: the setup, every table, how to make the numbers again. The same runs give
/// the same bytes: nothing in it depends on when or where it is written.
std::string export_markdown(const std::string& title, const std::vector<Ablation>& ablations);

}  // namespace forge::report

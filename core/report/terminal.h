#pragma once

#include <string>

#include "core/report/ablation.h"

namespace forge::report {

struct TerminalOptions {
  bool colour = false;  ///< headers in bold
  int width = 100;      ///< columns of the terminal; prose is wrapped to fit where it can
};

/// A table for people at a terminal, with what it leaves out below; ends with a newline.
std::string to_terminal(const Ablation& ablation, const TerminalOptions& options = {});

}  // namespace forge::report

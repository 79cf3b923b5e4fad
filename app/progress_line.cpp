#include "app/progress_line.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "app/terminal.h"
#include "core/base/clock.h"
#include "core/base/text.h"
#include "core/report/display_text.h"

namespace forge::app {
namespace {

constexpr int bar_cells = 20;
constexpr double redraw_seconds = 0.1;

std::string bar(double fraction) {
  const int full = static_cast<int>(std::lround(fraction * bar_cells));
  std::string cells;
  for (int i = 0; i < bar_cells; ++i) cells += i < full ? "█" : "░";
  return cells;
}

}  // namespace

ProgressLine::ProgressLine(std::string label)
    : label_(std::move(label)), terminal_(is_terminal(STDERR_FILENO)) {}

void ProgressLine::show(double fraction, const std::string& text) {
  fraction = std::clamp(fraction, 0.0, 1.0);
  if (terminal_) {
    const double now = steady_seconds();
    if (drawn_ && now - drawn_at_ < redraw_seconds) return;
    std::string line = label_ + "  " + bar(fraction) + "  " + text;
    // A line that wraps could not be redrawn in place.
    const int width = std::max(20, terminal_width(STDERR_FILENO) - 1);
    while (report::display_width(line) > width) line.pop_back();
    std::cerr << "\r\033[K" << line << std::flush;
    drawn_ = true;
    drawn_at_ = now;
    return;
  }
  const int tenths = static_cast<int>(fraction * 10);
  if (tenths <= said_tenths_) return;
  said_tenths_ = tenths;
  std::cerr << label_ << "  " << std::lround(fraction * 100) << "%  " << text << "\n";
}

void ProgressLine::show_phase(double fraction, const std::string& phase) {
  const double now = steady_seconds();
  if (phase != phase_) {
    phase_ = phase;
    phase_began_ = now;
    phase_fraction_ = fraction;
    said_tenths_ = -1;
  }
  const double seconds = now - phase_began_;
  const double done = fraction - phase_fraction_;
  const bool can_tell = seconds > 1 && done > 0 && fraction < 1;
  const double left = can_tell ? seconds * (1 - fraction) / done : 0;
  show(fraction, can_tell ? phase + ", " + human_duration(left) + " left" : phase);
}

void ProgressLine::show_last(const std::string& text) {
  if (!terminal_) {
    std::cerr << label_ << "  " << text << "\n";
    return;
  }
  std::cerr << "\r\033[K" << label_ << "  " << text << std::flush;
  drawn_ = true;
}

void ProgressLine::say(const std::string& text) {
  clear();
  std::cerr << text << "\n";
}

void ProgressLine::clear() {
  if (drawn_) std::cerr << "\r\033[K" << std::flush;
  drawn_ = false;
}

}  // namespace forge::app

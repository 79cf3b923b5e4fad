#pragma once

#include <cstdint>
#include <string>

namespace forge::app {

/// Progress on stderr: on a terminal one line that is redrawn in place, elsewhere plain lines, one
/// for each tenth of the work at most.
class ProgressLine {
 public:
  explicit ProgressLine(std::string label);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// `fraction` of the work done, 0 to 1, and what to say of it.
  void show(double fraction, const std::string& text);
  /// The same with the time that a phase of the work will still take, once that can be told.
  void show_phase(double fraction, const std::string& phase);
  /// For work whose end is not known: what was done last.
  void show_last(const std::string& text);
  /// A line that stays; the progress goes on below it.
  void say(const std::string& text);
  /// Removes the redrawn line.
  void clear();

 private:
  std::string label_;
  bool terminal_;
  bool drawn_ = false;
  int said_tenths_ = -1;
  double drawn_at_ = 0;
  std::string phase_;
  double phase_began_ = 0;  ///< when it was first shown, and how far it was then
  double phase_fraction_ = 0;
};

}  // namespace forge::app

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "app/command_line.h"

namespace forge::app {

/// Whether the descriptor is a terminal that can move its cursor.
bool is_terminal(int fd);

/// Whether to colour what goes to the descriptor: a terminal, and NO_COLOR is not set.
bool use_colour(int fd);

/// Columns of the terminal, 80 where it is none.
int terminal_width(int fd);

enum class Style { plain, bold, dim, red, green, yellow };
/// The text in a style, as it is where `colour` is false.
std::string styled(const std::string& text, Style style, bool colour);

/// Lines of cells in columns, two blanks apart, each column as wide as its widest cell; the last is
/// not padded. `right` names the columns that are aligned right.
std::string aligned(const std::vector<std::vector<std::string>>& lines,
                    const std::vector<size_t>& right = {});

/// How a command that prints a text hands it over.
struct OutputOptions {
  std::string file;  ///< -o, "": standard output
  bool json = false;
};

/// -o and --json.
void add_output_options(const Command& command, OutputOptions& options);

/// On standard output, with two spaces a level.
void print_json(const nlohmann::json& json);
void print_json(const nlohmann::ordered_json& json);

/// Prints the text, or writes it to the file of -o and says so.
void hand_over(const std::string& text, const OutputOptions& options);
void hand_over(const nlohmann::ordered_json& json, const OutputOptions& options);

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

/// Counts Ctrl-C while it lives, instead of ending the program. SIGTERM, SIGHUP and SIGUSR2 count
/// as the first one.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  int count() const;
};

}  // namespace forge::app

#pragma once

#include <unistd.h>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <iterator>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/clock.h"
#include "core/base/progress.h"

namespace forge::app {

/// Whether the descriptor is a terminal that can move its cursor.
bool is_terminal(int fd);

/// Whether output to the descriptor is coloured: it is a terminal, and NO_COLOR is not set.
bool use_colour(int fd = STDOUT_FILENO);

/// Clears the terminal of stdout, where it is one, for what is redrawn in place.
void clear_screen();

/// Columns of the terminal, 80 where it is none.
int terminal_width(int fd = STDOUT_FILENO);

/// Escape codes of terminals (ECMA-48, "select graphic rendition").
enum class Style { plain = 0, bold = 1, dim = 2, red = 31, green = 32, yellow = 33 };
/// The text in a style, for output to the descriptor; plain where that is not coloured.
std::string styled(const std::string& text, Style style, int fd = STDOUT_FILENO);

/// Lines of cells in columns, two blanks apart, each column as wide as its widest cell; the last is
/// not padded. Cells are `printable`; those of the column `coloured` keep colours, which only
/// forge's own words may have. `right` names the columns that are aligned right.
std::string aligned(std::vector<std::vector<std::string>> lines,
                    const std::vector<size_t>& right = {},
                    std::optional<size_t> coloured = std::nullopt);

/// The same with the first line in bold.
std::string bold_table(const std::vector<std::vector<std::string>>& lines,
                       const std::vector<size_t>& right);

/// A text on stdout that is redrawn in place. On a terminal it has a screen of its own, so that
/// nothing scrolls away, and shows as many lines as fit; at the end the screen from before is
/// restored and the last text stays there in full. Elsewhere each text is printed.
class LiveText {
 public:
  LiveText();
  ~LiveText();
  LiveText(const LiveText&) = delete;
  LiveText& operator=(const LiveText&) = delete;

  void show(const std::string& text);

 private:
  bool terminal_;
  std::string text_;
};

/// Says of what the command prints that it can be read again: where it cannot be written, a warning
/// on stderr tells, and the exit code stays the command's. `shown_by` is the command that shows it.
void allow_lost_output(const std::string& shown_by);
/// That command, "" where lost output is a failure.
const std::string& lost_output_is_shown_by();

/// Where a command that prints a text writes it.
struct OutputOptions {
  std::string file;    ///< -o, "": standard output
  bool force = false;  ///< replace a file
  bool json = false;
};

/// On standard output, with two spaces a level. Returns 0, the exit code of a command that prints
/// nothing else.
int print_json(const nlohmann::json& json);
int print_json(const nlohmann::ordered_json& json);

/// The value; null where there is none.
template <class T>
nlohmann::json or_null(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

/// A list with `to_json(item)` for each item.
template <class Items, class ToJson>
auto json_list(const Items& items, const ToJson& to_json) {
  using Json = decltype(to_json(*std::begin(items)));
  Json list = Json::array();
  for (const auto& item : items) list.push_back(to_json(item));
  return list;
}

/// A text of others on standard output, of a model or template: another program gets its bytes, and
/// a terminal is not steered by them.
void print_bytes(const std::string& text);

/// Prints the text, or writes it to the file of -o and reports that. Returns 0 as print_json does.
int write_output(const std::string& text, const OutputOptions& options);
int write_output(const nlohmann::ordered_json& json, const OutputOptions& options);

/// A line on stderr, unless the command has printed it before. Any thread may print.
void print_once(const std::string& line);
/// "warning: …" on stderr, a line for each.
void print_warnings(const std::vector<std::string>& warnings);
/// The same, but for those that the command has printed before: many runs share their data.
void print_new_warnings(const std::vector<std::string>& warnings);

/// Progress on stderr: on a terminal one line that is redrawn in place, elsewhere plain lines, one
/// for each tenth of the work at most.
class ProgressLine {
 public:
  explicit ProgressLine(std::string label);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// `fraction` of the work done, 0 to 1, and a text about it.
  void show(double fraction, const std::string& text);
  /// The same with an estimate of the time that is left.
  void show_phase(double fraction, const std::string& phase);
  /// Both as functions for work that reports its progress, in the lifetime of the line.
  std::function<void(double, const std::string&)> reporter() {
    return [this](double fraction, const std::string& text) { show(fraction, text); };
  }
  std::function<void(double, const std::string&)> phase_reporter() {
    return [this](double fraction, const std::string& phase) { show_phase(fraction, phase); };
  }
  /// For work of unknown length: the latest status.
  void show_status(const std::string& text);
  /// A line that stays; the progress continues below it.
  void print_line(const std::string& text);
  /// Removes the redrawn line.
  void clear();

 private:
  void draw(const std::string& text);

  std::string label_;
  bool terminal_;
  bool drawn_ = false;
  int said_tenths_ = -1;
  double drawn_at_ = 0;
  std::string phase_;
  double phase_began_ = 0;  ///< when it was first shown, and how far it was then
  double phase_fraction_ = 0;
};

/// Progress of work that is mostly over at once. In its first two seconds nothing is shown, then a
/// ProgressLine: "reading runs  40%  4,000 of 10,000". Work in several parts counts from 0 in each.
/// Any thread may report.
class LateProgress {
 public:
  enum class Counts { things, bytes };
  /// `clock` gives seconds.
  explicit LateProgress(const std::string& label,
                        Counts counts = Counts::things,
                        std::function<double()> clock = steady_seconds);

  void operator()(size_t done, size_t all);
  /// The same as a function for work that reports its progress, in the lifetime of this object.
  CountProgress reporter() {
    return [this](size_t done, size_t all) { (*this)(done, all); };
  }

 private:
  std::mutex mutex_;
  std::string label_;
  std::optional<ProgressLine> line_;  ///< always one; a new one for each part of the work
  Counts counts_;
  std::function<double()> clock_;
  double began_;
  size_t done_ = 0;
};

/// Counts Ctrl-C during its lifetime, instead of ending the program. SIGTERM and SIGUSR2 count as
/// the first one. There is one object at a time.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  int count() const;
  /// From here on the second Ctrl-C ends the program, or is counted as the first is. For work that
  /// may not notice the first one for a while.
  void let_second_end_program(bool ends);
};

/// From here on waits for other processes are told on stderr, and a Ctrl-C that an Interrupts
/// counts ends them (core/base/waiting.h).
void tell_of_waiting();

/// Reports as `report` does. After a Ctrl-C that an Interrupts counts it throws Error, which ends
/// the work that reports.
std::function<void(double, const std::string&)> interruptible(
    std::function<void(double, const std::string&)> report);

/// From here on a closed terminal (SIGHUP), Ctrl-\ (SIGQUIT) and a reader of the output that is
/// gone, as `less` (SIGPIPE), no longer end the program, but ask it to leave its runs running and
/// end. Where the starter ignores one of them, as nohup does, it stays ignored. SIGUSR1 asks for
/// checkpoints, as it does a worker.
void allow_detaching();
bool detach_requested();
/// Whether checkpoints were asked for since the last call.
bool take_save_request();

}  // namespace forge::app

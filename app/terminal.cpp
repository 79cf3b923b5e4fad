#include "app/terminal.h"

#include <sys/ioctl.h>
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <mutex>
#include <set>

#include <nlohmann/json.hpp>

#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/base/waiting.h"
#include "core/manage/written_files.h"

namespace forge::app {

bool is_terminal(int fd) {
  const char* kind = std::getenv("TERM");
  return ::isatty(fd) && (!kind || std::strcmp(kind, "dumb") != 0);
}

bool use_colour(int fd) {
  const char* no_color = std::getenv("NO_COLOR");
  return is_terminal(fd) && !(no_color && *no_color);
}

void clear_screen() {
  std::cout.flush();
  if (is_terminal(STDOUT_FILENO)) tables::PrintableOutput::write_raw(std::cout, "\033[H\033[J");
}

int terminal_width(int fd) {
  struct winsize size {};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

std::string styled(const std::string& text, Style style, int fd) {
  if (style == Style::plain || !use_colour(fd)) return text;
  return "\033[" + std::to_string(static_cast<int>(style)) + "m" + text + "\033[0m";
}

std::string aligned(std::vector<std::vector<std::string>> lines,
                    const std::vector<size_t>& right,
                    std::optional<size_t> coloured) {
  std::vector<int> widths;
  for (auto& line : lines) {
    widths.resize(std::max(widths.size(), line.size()), 0);
    for (size_t i = 0; i < line.size(); ++i) {
      line[i] = i == coloured ? tables::printable_cell(line[i]) : tables::printable(line[i]);
      widths[i] = std::max(widths[i], tables::display_width(line[i]));
    }
  }
  std::string text;
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) {
      const bool is_last = i + 1 == line.size();
      const bool to_the_right = std::find(right.begin(), right.end(), i) != right.end();
      if (to_the_right) {
        text += tables::pad_left(line[i], widths[i]);
      } else {
        text += is_last ? line[i] : tables::pad_right(line[i], widths[i]);
      }
      if (!is_last) text += "  ";
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  return text;
}

std::string bold_table(const std::vector<std::vector<std::string>>& lines,
                       const std::vector<size_t>& right) {
  const std::string text = aligned(lines, right);
  const size_t head = text.find('\n');
  return styled(text.substr(0, head), Style::bold) + text.substr(head);
}

int print_json(const nlohmann::json& json) { return print_json(nlohmann::ordered_json(json)); }

int print_json(const nlohmann::ordered_json& json) {
  std::cout << tables::printable_json(json_text(json, 2)) << "\n";
  return 0;
}

void print_bytes(const std::string& text) {
  if (::isatty(STDOUT_FILENO) != 0) {
    std::cout << tables::printable_lines(text);
  } else {
    tables::PrintableOutput::write_raw(std::cout, text);
  }
}

int write_output(const std::string& text, const OutputOptions& options) {
  if (options.file.empty()) {
    std::cout << text;
    return 0;
  }
  if (!options.force) manage::require_new(options.file, "name another file, or give --force");
  write_output_file(options.file, text);
  std::cout << "Wrote output to " << options.file << "\n";
  return 0;
}

int write_output(const nlohmann::ordered_json& json, const OutputOptions& options) {
  // json_text replaces bytes that are not UTF-8, which JSON cannot hold.
  return write_output(tables::printable_json(json_text(json, 2)) + "\n", options);
}

void print_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings)
    std::cerr << "warning: " << tables::printable(warning) << "\n";
}

void print_once(const std::string& line) {
  static std::mutex mutex;
  static std::set<std::string> printed;
  const std::lock_guard lock(mutex);
  if (printed.insert(line).second) std::cerr << tables::printable(line) << "\n";
}

void print_new_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) print_once("warning: " + warning);
}

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
    : label_(tables::printable(label)), terminal_(is_terminal(STDERR_FILENO)) {}

void ProgressLine::show(double fraction, const std::string& text) {
  fraction = std::clamp(fraction, 0.0, 1.0);
  if (terminal_) {
    const double now = steady_seconds();
    if (drawn_ && now - drawn_at_ < redraw_seconds) return;
    draw(bar(fraction) + "  " + text);
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
  constexpr double least_done = 0.01;  // less of the work says little of the rest
  const bool can_tell = seconds > 1 && done >= least_done && fraction < 1;
  const double left = can_tell ? seconds * (1 - fraction) / done : 0;
  show(fraction, can_tell ? phase + ", " + human_duration(left) + " left" : phase);
}

void ProgressLine::show_status(const std::string& text) {
  if (!terminal_) {
    std::cerr << label_ << "  " << text << "\n";
    return;
  }
  draw(text);
}

void ProgressLine::draw(const std::string& text) {
  std::string line = tables::printable(label_ + "  " + text);
  // A line that wraps could not be redrawn in place.
  const int width = std::max(20, terminal_width(STDERR_FILENO) - 1);
  while (tables::display_width(line) > width) line.pop_back();
  tables::PrintableOutput::draw_line(std::cerr, line);
  drawn_ = true;
}

void ProgressLine::print_line(const std::string& text) {
  clear();
  std::cerr << tables::printable(text) << "\n";
}

void ProgressLine::clear() {
  if (drawn_) tables::PrintableOutput::draw_line(std::cerr, "");
  drawn_ = false;
}

namespace {

constexpr double patience = 2;  // seconds

std::string done_text(size_t done, size_t all, LateProgress::Counts counts) {
  if (counts == LateProgress::Counts::bytes)
    return human_bytes(double(done)) + " of " + human_bytes(double(all));
  return with_thousands(int64_t(done)) + " of " + with_thousands(int64_t(all));
}

}  // namespace

LateProgress::LateProgress(const std::string& label, Counts counts, std::function<double()> clock)
    : label_(label),
      line_(std::in_place, label),
      counts_(counts),
      clock_(std::move(clock)),
      began_(clock_()) {}

void LateProgress::operator()(size_t done, size_t all) {
  const std::lock_guard lock(mutex_);
  const bool begins_again = done < done_;
  done_ = done;
  if (all == 0 || clock_() - began_ < patience) return;
  if (begins_again) line_.emplace(label_);
  line_->show(double(done) / double(all), done_text(done, all, counts_));
}

namespace {

/// A command to the terminal of stdout, behind what was printed.
void send_to_terminal(const std::string& command) {
  std::cout.flush();
  // A terminal that is gone needs nothing.
  [[maybe_unused]] const ssize_t sent = ::write(STDOUT_FILENO, command.data(), command.size());
}

int terminal_height() {
  struct winsize size {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0) return size.ws_row;
  return 24;
}

/// The first lines of a text, with the last one saying how many more there are. No newline at the
/// end: on the last line of a screen it would scroll.
std::string first_lines(const std::string& text, size_t height) {
  std::vector<std::string> lines = split(text, '\n');
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  if (lines.size() > height) {
    const size_t more = lines.size() - (height - 1);
    lines.resize(height - 1);
    lines.push_back("\u2026 and " + std::to_string(more) + " more lines");
  }
  return join(lines, "\n");
}

// Control sequences of xterm (ctlseqs): the alternate screen (1049), the cursor (25), and the wrap
// of long lines (7).
constexpr const char* enter_screen = "\033[?1049h\033[?25l\033[?7l";
constexpr const char* leave_screen = "\033[?7h\033[?25h\033[?1049l";
constexpr const char* erase_screen = "\033[H\033[J";

}  // namespace

LiveText::LiveText() : terminal_(is_terminal(STDOUT_FILENO)) {
  if (terminal_) send_to_terminal(enter_screen);
}

LiveText::~LiveText() {
  if (!terminal_) return;
  send_to_terminal(leave_screen);
  std::cout << text_ << std::flush;
}

void LiveText::show(const std::string& text) {
  if (terminal_) send_to_terminal(erase_screen);
  std::cout << (terminal_ ? first_lines(text, size_t(terminal_height())) : text) << std::flush;
  text_ = text;
}

namespace {

volatile std::sig_atomic_t interrupts = 0;
volatile std::sig_atomic_t second_ends_program = 0;

/// A second Ctrl-C means more than the first; other signals may come in a row and mean the same.
void on_signal(int signal) {
  if (signal == SIGINT && interrupts > 0 && second_ends_program != 0) {
    std::signal(signal, SIG_DFL);
    ::raise(signal);
  }
  if (signal == SIGINT || interrupts == 0) interrupts = interrupts + 1;
}

void set_handler(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  for (const int signal : {SIGINT, SIGTERM, SIGUSR2}) ::sigaction(signal, &action, nullptr);
}

}  // namespace

Interrupts::Interrupts() {
  interrupts = 0;
  second_ends_program = 0;
  set_handler(on_signal);
}

Interrupts::~Interrupts() {
  set_handler(SIG_DFL);
  interrupts = 0;
}

int Interrupts::count() const { return interrupts; }

void tell_of_waiting() {
  set_waiting({[](const std::string& text) { std::cerr << tables::printable(text) << "\n"; },
               [] { return static_cast<int>(interrupts); }});
}

void Interrupts::let_second_end_program(bool ends) { second_ends_program = ends ? 1 : 0; }

std::function<void(double, const std::string&)> interruptible(
    std::function<void(double, const std::string&)> report) {
  return [report = std::move(report)](double fraction, const std::string& text) {
    if (interrupts > 0) throw Error("interrupted", ExitCode::failed);
    report(fraction, text);
  };
}

namespace {

volatile std::sig_atomic_t detach = 0;
volatile std::sig_atomic_t save = 0;

}  // namespace

void allow_detaching() {
  struct sigaction action {};
  action.sa_handler = [](int) { detach = 1; };
  for (const int signal : {SIGHUP, SIGQUIT, SIGPIPE}) {
    struct sigaction before {};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);
  }
  action.sa_handler = [](int) { save = 1; };
  ::sigaction(SIGUSR1, &action, nullptr);
}

bool detach_requested() { return detach != 0; }

bool take_save_request() {
  if (save == 0) return false;
  save = 0;
  return true;
}

namespace {

std::string& command_for_lost_output() {
  static std::string command;
  return command;
}

}  // namespace

void allow_lost_output(const std::string& shown_by) { command_for_lost_output() = shown_by; }

const std::string& lost_output_is_shown_by() { return command_for_lost_output(); }

}  // namespace forge::app

#pragma once

#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>
#include <vector>

namespace forge::tables {

/// Columns that UTF-8 text takes on a terminal: wide characters two, combining ones and colours
/// none. Bytes that are no UTF-8 count as one each.
int display_width(std::string_view text);

// Names, labels and messages that come from outside must not steer the terminal. What is removed:
// control characters, format characters that turn the direction of what follows, invalid bytes.

/// A name or message on one line: a tab or line break becomes a space.
std::string printable(std::string_view text);
/// The same, with the colours that forge itself uses.
std::string printable_cell(std::string_view text);
/// A text of several lines: tabs and line breaks stay.
std::string printable_lines(std::string_view text);

/// JSON with the characters escaped that a stream of PrintableOutput would lack: the same value.
std::string printable_json(std::string_view json);

/// Everything that a program prints, on its way to the terminal or file: text as printable_lines
/// leaves it, but with emoji joiners and the colours that forge itself uses. So a command that
/// forgets `printable` cannot be made to steer the terminal. Replaces the buffer of `stream` during
/// its lifetime.
class PrintableOutput : public std::streambuf {
 public:
  explicit PrintableOutput(std::ostream& stream);
  ~PrintableOutput() override;
  PrintableOutput(const PrintableOutput&) = delete;
  PrintableOutput& operator=(const PrintableOutput&) = delete;

  /// Writes bytes as they are: forge's own control sequences, and a text whose bytes another
  /// program wants.
  static void write_raw(std::ostream& stream, std::string_view bytes);
  /// Draws a line on the terminal of a stream, in the place of the one that was drawn before; ""
  /// erases that. Whatever else the program prints erases it first.
  static void draw_line(std::ostream& stream, std::string_view line);

 protected:
  int_type overflow(int_type character) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int sync() override;

 private:
  static std::streambuf* sink_of(std::ostream& stream);
  bool write(std::string_view text);

  std::ostream& stream_;
  std::streambuf* sink_;
  std::string rest_;  ///< the beginning of a character or colour whose end is not yet written
};

/// The text followed or led by spaces up to `width` columns.
std::string pad_right(const std::string& text, int width);
std::string pad_left(const std::string& text, int width);

/// Lines of at most `width` columns, broken at spaces; a longer word stands alone and whole.
std::vector<std::string> wrap(std::string_view text, int width);

}  // namespace forge::tables

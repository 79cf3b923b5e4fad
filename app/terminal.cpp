#include "app/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/report/display_text.h"

namespace forge::app {

bool is_terminal(int fd) {
  const char* kind = std::getenv("TERM");
  return ::isatty(fd) && (!kind || std::strcmp(kind, "dumb") != 0);
}

bool use_colour(int fd) {
  const char* no_color = std::getenv("NO_COLOR");
  return is_terminal(fd) && !(no_color && *no_color);
}

int terminal_width(int fd) {
  struct winsize size {};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

std::string styled(const std::string& text, Style style, bool colour) {
  if (!colour || style == Style::plain) return text;
  const char* code = "";
  switch (style) {
    case Style::bold: code = "1"; break;
    case Style::dim: code = "2"; break;
    case Style::red: code = "31"; break;
    case Style::green: code = "32"; break;
    case Style::yellow: code = "33"; break;
    case Style::plain: break;
  }
  return "\033[" + std::string(code) + "m" + text + "\033[0m";
}

std::string aligned(const std::vector<std::vector<std::string>>& lines,
                    const std::vector<size_t>& right) {
  std::vector<int> widths;
  for (const auto& line : lines) {
    widths.resize(std::max(widths.size(), line.size()), 0);
    for (size_t i = 0; i < line.size(); ++i) {
      widths[i] = std::max(widths[i], report::display_width(line[i]));
    }
  }
  std::string text;
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) {
      const bool is_last = i + 1 == line.size();
      const bool to_the_right = std::find(right.begin(), right.end(), i) != right.end();
      if (to_the_right) {
        text += report::pad_left(line[i], widths[i]);
      } else {
        text += is_last ? line[i] : report::pad_right(line[i], widths[i]);
      }
      if (!is_last) text += "  ";
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  return text;
}

}  // namespace forge::app

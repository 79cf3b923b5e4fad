#include "core/jinja/line_preprocessor.h"

#include <optional>

#include "core/base/text.h"
#include "core/python/unicode.h"

namespace forge::jinja {

using namespace python;
namespace {

struct Line {
  std::string text;
  LineOrigin origin;
};

bool is_comment(std::string_view line) {
  return starts_with(line.substr(leading_space(line)), "##");
}

/// Cuts a trailing ` ## …`: the last one, with the one white-space character before it.
std::string_view without_trailing_comment(std::string_view line) {
  for (size_t at = line.rfind("##"); at != std::string_view::npos && at > 0;
       at = line.rfind("##", at - 1)) {
    const std::string_view before = line.substr(0, at);
    if (trailing_space(before) == 0) continue;
    return line.substr(0, previous_code_point(line, at));
  }
  return line;
}

struct LinePrefix {
  const char* text;
  const char* open;
  const char* close;
};

/// The statement or expression of a prefix line, in Jinja's delimiters.
std::optional<Line> line_statement(std::string_view line, int number) {
  static const LinePrefix prefixes[] = {{"--", "{% ", " %}"},
                                        {"<<", "{%- ", " %}"},
                                        {">>", "{% ", " -%}"},
                                        {"==", "{{ ", " }}"},
                                        {"=>", "{{ ", "|trim('\\n')}}"}};
  const size_t indent = leading_space(line);
  const std::string_view statement = line.substr(indent);
  for (const LinePrefix& prefix : prefixes) {
    if (!starts_with(statement, prefix.text)) continue;
    const std::string_view rest = statement.substr(2);
    if (rest.empty() || leading_space(rest) == 0) return std::nullopt;
    size_t blank = 0;
    next_code_point(rest, blank);
    const std::string_view open = prefix.open;
    Line result;
    result.text = std::string(open) + std::string(rest.substr(blank)) + prefix.close;
    result.origin.line = number;
    result.origin.column_shift =
        static_cast<int>(indent + 2 + blank) - static_cast<int>(open.size());
    return result;
  }
  return std::nullopt;
}

struct Header {
  size_t indent = 0;  ///< in characters
  std::string name;
  bool trimmed = false;  ///< `[name!]`
};

std::optional<Header> block_header(std::string_view line) {
  const size_t indent = leading_space(line);
  std::string_view rest = line.substr(indent);
  rest.remove_suffix(trailing_space(rest));
  if (rest.size() < 3 || rest.front() != '[' || rest.back() != ']') return std::nullopt;
  rest = rest.substr(1, rest.size() - 2);
  Header header;
  header.indent = length_of(line.substr(0, indent));
  while (!rest.empty() && rest.back() == '!') {
    header.trimmed = true;
    rest.remove_suffix(1);
  }
  if (rest.empty()) return std::nullopt;
  for (size_t i = 0; i < rest.size();) {
    if (!is_word(next_code_point(rest, i))) return std::nullopt;
  }
  header.name = rest;
  return header;
}

/// Replaces block headers by tags. A block is closed at the end of the line emitted before the
/// header (or the end of text) that closes it.
class BlockWriter {
 public:
  void add(Line line) {
    const std::optional<Header> header = block_header(line.text);
    if (!header) {
      lines_.push_back(std::move(line));
      return;
    }
    while (!open_.empty() && open_.back().indent >= header->indent) close_block();
    line.text =
        (header->trimmed ? "{% filter trim %}{% block " : "{% block ") + header->name + " %}";
    line.origin.column_shift =
        static_cast<int>(header->indent) - static_cast<int>(line.text.find("block"));
    lines_.push_back(std::move(line));
    open_.push_back(*header);
  }

  std::vector<Line> finish() {
    while (!open_.empty()) close_block();
    return std::move(lines_);
  }

 private:
  void close_block() {
    std::string& last = lines_.back().text;
    if (!last.empty()) last += "{{'\\n'}}";
    last += "{% endblock " + open_.back().name + " +%}";
    if (open_.back().trimmed) last += "{% endfilter %}";
    open_.pop_back();
  }

  std::vector<Line> lines_;
  std::vector<Header> open_;
};

/// Takes the next line off `text`; false after the last one.
bool take_line(std::string_view& text, bool& at_end, std::string_view& line) {
  if (at_end) return false;
  const size_t end = text.find_first_of("\r\n");
  line = text.substr(0, end);
  at_end = end == std::string_view::npos;
  if (at_end) return true;
  const bool is_pair = text[end] == '\r' && end + 1 < text.size() && text[end + 1] == '\n';
  text.remove_prefix(end + (is_pair ? 2 : 1));
  return true;
}

}  // namespace

PreprocessedText preprocess_lines(std::string_view text) {
  BlockWriter writer;
  std::string_view line;
  bool at_end = false;
  for (int number = 1; take_line(text, at_end, line); ++number) {
    if (is_comment(line)) continue;
    const std::string_view kept = without_trailing_comment(line);
    Line result = line_statement(kept, number).value_or(Line{std::string(kept), {number, 0, 0}});
    result.origin.length = static_cast<int>(line.size());
    writer.add(std::move(result));
  }
  PreprocessedText result;
  const std::vector<Line> lines = writer.finish();
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) result.text += '\n';
    result.text += lines[i].text;
    result.lines.push_back(lines[i].origin);
  }
  if (result.lines.empty()) result.lines.push_back({});
  return result;
}

}  // namespace forge::jinja

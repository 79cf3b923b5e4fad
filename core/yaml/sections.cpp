#include "core/yaml/sections.h"

#include <algorithm>

#include <yaml-cpp/exceptions.h>

#include "core/base/text.h"
#include "core/python/unicode.h"

namespace forge::yaml {
namespace {

bool begins_key(char c) { return python::is_ascii_letter(c) || c == '_' || c == '.'; }

bool is_comment_or_empty(std::string_view line) {
  return line.find_first_not_of(' ') == std::string_view::npos || line[0] == '#';
}

bool is_plain_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

bool contains(std::string_view text, char c) { return text.find(c) != std::string_view::npos; }

std::optional<Literal> quoted_literal(std::string_view line) {
  const size_t quote = line.find('"');
  if (quote == 0 || line[quote - 1] != ' ' || quote + 1 == line.size()) return std::nullopt;
  const std::string_view text = line.substr(quote + 1, line.size() - quote - 2);
  const bool has_blank_end = !text.empty() && (text.front() == ' ' || text.back() == ' ');
  if (has_blank_end || contains(text, '"') || contains(text, '\\') || !is_plain_ascii(text))
    return std::nullopt;
  return Literal{0, static_cast<int>(quote) + 1, text};
}

/// A number or bool right behind `: ` or `- `.
std::optional<Literal> plain_literal(std::string_view line) {
  const size_t blank = line.rfind(' ');
  if (blank == 0 || blank == std::string_view::npos) return std::nullopt;
  if (line[blank - 1] != ':' && line[blank - 1] != '-') return std::nullopt;
  const std::string_view text = line.substr(blank + 1);
  const auto is_part_of_number = [](char c) {
    return python::is_ascii_digit(c) || c == '.' || c == 'e' || c == '-' || c == '+';
  };
  const bool is_number = !text.empty() && python::is_ascii_digit(text[0]) &&
                         std::all_of(text.begin(), text.end(), is_part_of_number);
  if (!is_number && text != "True" && text != "False") return std::nullopt;
  return Literal{0, static_cast<int>(blank) + 1, text};
}

/// A tag without its '!'.
std::optional<Literal> tag_literal(std::string_view line) {
  const size_t sign = line.rfind(" !");
  if (sign == std::string_view::npos) return std::nullopt;
  const std::string_view text = line.substr(sign + 2);
  const auto is_part_of_tag = [](char c) {
    return python::is_ascii_letter_or_digit(c) ||
           std::string_view("_-.:/@").find(c) != std::string_view::npos;
  };
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_part_of_tag)) return std::nullopt;
  return Literal{0, static_cast<int>(sign) + 2, text};
}

/// The literal that ends a line, if there is one.
std::optional<Literal> trailing_literal(std::string_view line) {
  const bool is_quoted = line.size() > 2 && line.back() == '"';
  auto literal = is_quoted ? quoted_literal(line) : plain_literal(line);
  if (!literal && !is_quoted) literal = tag_literal(line);
  if (!literal) return std::nullopt;
  return contains(line.substr(0, static_cast<size_t>(literal->column)), '#') ? std::nullopt
                                                                             : literal;
}

/// Collects the lines of one document.
class SectionCutter {
 public:
  explicit SectionCutter(std::string_view text) : text_(text) {}

  std::optional<SectionedText> run() {
    if (contains(text_, '\r')) return std::nullopt;
    for (size_t begin = 0; begin < text_.size();) {
      const size_t newline = text_.find('\n', begin);
      const size_t end = std::min(newline, text_.size());
      if (!add_line(text_.substr(begin, end - begin))) return std::nullopt;
      result_.line_starts.push_back(begin);
      begin = end + 1;
    }
    result_.size = text_.size();
    if (result_.sections.size() < 2) return std::nullopt;
    result_.sections.front().position = Section::Position::first;
    result_.sections.back().position = Section::Position::last;
    // What a last section ends with matters (a final newline in a block scalar does).
    flush_empty_lines();
    if (text_.back() == '\n') {
      result_.line_starts.push_back(text_.size());
    } else {
      result_.sections.back().skeleton.pop_back();
    }
    return std::move(result_);
  }

 private:
  bool add_line(std::string_view line) {
    const bool is_mark = starts_with(line, "---") || starts_with(line, "...");
    if (is_mark || starts_with(line, "%")) return false;
    std::vector<Section>& sections = result_.sections;
    if (!line.empty() && begins_key(line[0])) {
      // In a block scalar empty lines at the end count.
      if (may_be_block_scalar_) flush_empty_lines();
      empty_lines_.clear();
      may_be_block_scalar_ = false;
      sections.emplace_back().line = static_cast<int>(result_.line_starts.size());
    }
    if (is_comment_or_empty(line)) {
      empty_lines_.push_back(line);
      return true;
    }
    if (sections.empty()) return false;
    flush_empty_lines();
    add_content(line);
    return true;
  }

  void add_content(std::string_view line) {
    Section& section = result_.sections.back();
    may_be_block_scalar_ = may_be_block_scalar_ || contains(line, '|') || contains(line, '>');
    const size_t content = line.find_first_not_of(' ');
    std::optional<Literal> literal;
    if (may_be_block_scalar_) {
      section.skeleton.append(line) += '\n';
    } else if (line[content] == '#') {
      section.skeleton.append(line.substr(0, content)).append(comment_placeholder) += '\n';
    } else if (literal = trailing_literal(line); literal) {
      literal->line = static_cast<int>(result_.line_starts.size()) - section.line;
      section.skeleton.append(line.substr(0, static_cast<size_t>(literal->column)));
      // A literal 0 becomes a literal, too, so that no other line has this skeleton.
      section.skeleton += line.back() == '"' ? "\"\n" : "0\n";
      section.literals.push_back(*literal);
    } else {
      section.skeleton.append(line) += '\n';
    }
  }

  /// Comments and empty lines belong to the section where something follows in it.
  void flush_empty_lines() {
    if (result_.sections.empty()) return empty_lines_.clear();
    std::string& skeleton = result_.sections.back().skeleton;
    for (const std::string_view line : empty_lines_) {
      const bool is_comment = !may_be_block_scalar_ && !line.empty() && line[0] == '#';
      skeleton.append(is_comment ? comment_placeholder : line) += '\n';
    }
    empty_lines_.clear();
  }

  std::string_view text_;
  SectionedText result_;
  std::vector<std::string_view> empty_lines_;  ///< comments and empty lines since the last other
  bool may_be_block_scalar_ = false;           ///< in the section: it holds a '|' or '>'
};

}  // namespace

std::optional<SectionedText> cut_sections(std::string_view text) {
  return SectionCutter(text).run();
}

namespace {

/// Names of all anchors that a text may refer to: what stands behind a '*'.
void add_alias_names(std::string_view text, std::set<std::string_view>& names) {
  for (size_t star = text.find('*'); star != std::string_view::npos;
       star = text.find('*', star + 1)) {
    const std::string_view rest = text.substr(star + 1);
    const std::string_view name = rest.substr(0, rest.find_first_of("[]{}, \t\n"));
    if (!name.empty()) names.insert(name);
  }
}

bool begins_at(const Event& event, int line) {
  return event.mark.line == line && event.mark.column == 0;
}

/// Replaces a literal while its section is parsed. If it becomes the whole value or tag of an
/// event, so does the literal.
constexpr std::string_view literal_placeholder = "literal@";

std::string placeholder(size_t index) {
  return std::string(literal_placeholder) + std::to_string(index) + "@";
}

/// The section's text with placeholders for its literals.
std::string with_placeholders(const Section& section) {
  std::string text;
  int line = 0;
  auto literal = section.literals.begin();
  for (size_t begin = 0; begin < section.skeleton.size(); ++line) {
    const size_t end =
        std::min(section.skeleton.find('\n', begin), section.skeleton.size() - 1) + 1;
    if (literal != section.literals.end() && literal->line == line) {
      const size_t place = begin + static_cast<size_t>(literal->column);
      text.append(section.skeleton, begin, place - begin);
      text += placeholder(static_cast<size_t>(literal - section.literals.begin()));
      begin = place + (section.skeleton[place] == '"' ? 0 : 1);  // without the `0` of the skeleton
      ++literal;
    }
    text.append(section.skeleton, begin, end - begin);
    begin = end;
  }
  return text;
}

/// Finds the events whose values and tags are the section's literals. False if a literal is
/// neither, or if a supposed comment is part of a value.
bool find_literals(const Section& section, std::vector<Event>& events) {
  size_t next = 0;
  const auto take = [&](int& literal) { literal = static_cast<int>(next++); };
  for (Event& event : events) {
    if (event.value.find(comment_placeholder) != std::string::npos) return false;
    if (event.tag == "!" + placeholder(next)) take(event.tag_literal);
    if (event.value == placeholder(next)) take(event.literal);
  }
  return next == section.literals.size();
}

}  // namespace

void SectionDocument::add(const Section& section) {
  add_alias_names(section.skeleton, aliases_);
  sections_.push_back(&section);
}

std::vector<std::vector<Event>> SectionDocument::parse() {
  for (const Section* section : sections_) {
    if (section->skeleton.find(literal_placeholder) != std::string::npos) return {};
  }
  write();
  std::vector<Event> events;
  try {
    parse_events(text_, [&](const Event& event) { events.push_back(event); });
  } catch (const YAML::Exception&) {
    return {};
  }
  const auto is_document = [](const Event& event) { return event.kind == Event::Kind::document; };
  const bool is_mapping = std::count_if(events.begin(), events.end(), is_document) == 1 &&
                          events.size() > 1 && events[1].kind == Event::Kind::mapping_begin &&
                          !events[1].is_flow;
  return is_mapping ? split(events) : std::vector<std::vector<Event>>();
}

void SectionDocument::write() {
  auto next = sections_.begin();
  if ((*next)->position == Section::Position::first) {
    append(with_placeholders(**next), *next);
    ++next;
  }
  std::string anchors = "_: [";
  for (const std::string_view name : aliases_) {
    anchors += (anchors.back() == '[' ? "&" : ", &") + std::string(name) + " _";
  }
  append(anchors + "]\n", nullptr);
  for (; next != sections_.end(); ++next) append(with_placeholders(**next), *next);
  if (sections_.back()->position != Section::Position::last) append("_: _\n", nullptr);
}

void SectionDocument::append(std::string_view text, const Section* section) {
  parts_.push_back({lines_, section});
  text_ += text;
  lines_ += static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

/// Distributes the root's events to the parts. Each part must begin with a key at its place.
std::vector<std::vector<Event>> SectionDocument::split(std::vector<Event>& events) const {
  std::vector<std::vector<Event>> distributed;  // to each part
  int depth = 0;
  bool expects_key = true;
  for (size_t i = 2; i + 1 < events.size(); ++i) {
    Event& event = events[i];
    if (event.ends_collection()) --depth;
    const bool is_key = depth == 0 && expects_key && !event.ends_collection();
    if (is_key && distributed.size() < parts_.size() &&
        begins_at(event, parts_[distributed.size()].line))
      distributed.emplace_back();
    if (distributed.empty() || !make_relative(event, distributed.size() - 1)) return {};
    if (event.begins_collection()) ++depth;
    if (depth == 0) expects_key = !expects_key;
    distributed.back().push_back(std::move(event));
  }
  if (depth != 0 || !expects_key || distributed.size() != parts_.size()) return {};
  std::vector<std::vector<Event>> result;  // those of the sections
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (!parts_[i].section) continue;
    if (!find_literals(*parts_[i].section, distributed[i])) return {};
    result.push_back(std::move(distributed[i]));
  }
  return result;
}

/// Makes the event's line relative to the part's first line. False for a line outside the part,
/// except for an absent value: its mark lies on the next key.
bool SectionDocument::make_relative(Event& event, size_t index) const {
  if (event.ends_collection()) return true;
  if (event.mark.line < parts_[index].line) return false;
  if (index + 1 < parts_.size() && event.mark.line >= parts_[index + 1].line) {
    if (event.kind != Event::Kind::null || !begins_at(event, parts_[index + 1].line)) return false;
    event.mark.line = next_section_line;
    return true;
  }
  event.at_end = static_cast<size_t>(event.mark.pos) >= text_.size();
  event.mark.line -= parts_[index].line;
  return true;
}

}  // namespace forge::yaml

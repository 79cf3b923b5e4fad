#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/yaml/node_builder.h"

namespace forge::yaml {

/// A literal that ends a line: a double-quoted text without escapes, a plain number or bool, or the
/// tag of the lines below. Sections that differ only in literals share one parse.
struct Literal {
  int line = 0;    ///< 0-based, from the section's beginning
  int column = 0;  ///< 0-based, of the text (behind a quote or '!')
  std::string_view text;
};

/// The lines of one key of a document's root mapping, from the line with the key in the first
/// column to the line before the next such key.
struct Section {
  enum class Position { first, inner, last };

  int line = 0;  ///< 0-based, in the document
  Position position = Position::inner;
  /// The cache key: the text with `0` or `""` in place of literals, a placeholder for each comment,
  /// and no comments or empty lines at the end.
  std::string skeleton;
  std::vector<Literal> literals;
};

/// A document in sections.
struct SectionedText {
  std::vector<Section> sections;
  size_t size = 0;
  std::vector<size_t> line_starts;  ///< offsets of the document's lines, also of an empty last one
};

/// The text of every comment within a skeleton.
constexpr std::string_view comment_placeholder = "#@comment@";

/// Cuts a document into two or more sections. Gives nothing where that is not safe: only comments
/// may precede the first section, and no line may be a directive or a document marker. The parser
/// checks later that each line is a key and each literal a value. `text` outlives the result.
std::optional<SectionedText> cut_sections(std::string_view text);

/// The line of an absent value's mark, which lies on the next section's key.
constexpr int next_section_line = -1;

/// Some sections of a document as a document of their own. An added line `_: […]` defines every
/// anchor that they may refer to; only the document's first section precedes it. A line `_: _` ends
/// them unless the document's last section does.
class SectionDocument {
 public:
  /// `section` outlives the object.
  void add(const Section& section);
  /// The events of each section, with lines counted from its beginning. Empty where yaml-cpp finds
  /// an error, or where a section turns out to be something else.
  std::vector<std::vector<Event>> parse();

 private:
  /// A section, or an added line, and its first line in the document.
  struct Part {
    int line = 0;
    const Section* section = nullptr;  ///< null: a line that was added
  };

  void write();
  void append(std::string_view text, const Section* section);
  std::vector<std::vector<Event>> split(std::vector<Event>& events) const;
  bool make_relative(Event& event, size_t index) const;

  std::vector<const Section*> sections_;
  std::set<std::string_view> aliases_;
  std::string text_;
  int lines_ = 0;  ///< of text_
  std::vector<Part> parts_;
};

}  // namespace forge::yaml

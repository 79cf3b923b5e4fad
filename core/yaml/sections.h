#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <yaml-cpp/emitterstyle.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/mark.h>

namespace forge::yaml {

/// A recorded event of yaml-cpp. Anchors are recorded by name: their numbers differ from document
/// to document.
struct Event {
  enum class Kind { null, alias, scalar, sequence_begin, sequence_end, mapping_begin, mapping_end };

  Kind kind = Kind::null;
  YAML::EmitterStyle::value style = YAML::EmitterStyle::Default;
  YAML::Mark mark;      ///< none at the end of a collection
  bool at_end = false;  ///< the mark is that of the text's end, whose column yaml-cpp sets to 0
  /// Indices of the section's literals that are the value and the tag (less its '!'), -1: none.
  int literal = -1, tag_literal = -1;
  std::string anchor;  ///< of the node, or the one that an alias names; "" for none
  std::string tag;
  std::string value;

  bool begins_collection() const {
    return kind == Kind::sequence_begin || kind == Kind::mapping_begin;
  }
  bool ends_collection() const { return kind == Kind::sequence_end || kind == Kind::mapping_end; }
};

/// Records the events of one document.
class EventRecorder : public YAML::EventHandler {
 public:
  std::vector<Event> events;
  int documents = 0;

  void OnDocumentStart(const YAML::Mark&) override { ++documents; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(Event::Kind::null, mark, anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(Event::Kind::alias, mark, 0).anchor = names_[anchor];
  }
  void OnScalar(const YAML::Mark& mark,
                const std::string& tag,
                YAML::anchor_t anchor,
                const std::string& value) override {
    Event& event = add(Event::Kind::scalar, mark, anchor);
    event.tag = tag;
    event.value = value;
  }
  void OnSequenceStart(const YAML::Mark& mark,
                       const std::string& tag,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    Event& event = add(Event::Kind::sequence_begin, mark, anchor);
    event.tag = tag;
    event.style = style;
  }
  void OnSequenceEnd() override { add(Event::Kind::sequence_end, {}, 0); }
  void OnMapStart(const YAML::Mark& mark,
                  const std::string& tag,
                  YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    Event& event = add(Event::Kind::mapping_begin, mark, anchor);
    event.tag = tag;
    event.style = style;
  }
  void OnMapEnd() override { add(Event::Kind::mapping_end, {}, 0); }
  void OnAnchor(const YAML::Mark&, const std::string& name) override { pending_anchor_ = name; }

 private:
  Event& add(Event::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    Event& event = events.emplace_back();
    event.kind = kind;
    event.mark = mark;
    if (anchor != 0) {
      event.anchor = pending_anchor_;
      names_[anchor] = pending_anchor_;
    }
    return event;
  }

  std::string pending_anchor_;
  std::unordered_map<YAML::anchor_t, std::string> names_;
};

/// Replays recorded events to a handler as yaml-cpp would send them, with new anchor numbers.
class EventReplayer {
 public:
  explicit EventReplayer(YAML::EventHandler& handler) : handler_(handler) {}

  /// False, without a call, for an alias of an anchor that no earlier event defined.
  bool replay(const Event& event,
              const YAML::Mark& mark,
              const std::string& tag,
              const std::string& value) {
    YAML::anchor_t anchor = 0;
    if (event.kind == Event::Kind::alias) {
      const auto found = numbers_.find(event.anchor);
      if (found == numbers_.end()) return false;
      anchor = found->second;
    } else if (!event.anchor.empty()) {
      handler_.OnAnchor(mark, event.anchor);
      anchor = numbers_[event.anchor] = ++last_number_;
    }
    switch (event.kind) {
      case Event::Kind::null: handler_.OnNull(mark, anchor); break;
      case Event::Kind::alias: handler_.OnAlias(mark, anchor); break;
      case Event::Kind::scalar: handler_.OnScalar(mark, tag, anchor, value); break;
      case Event::Kind::sequence_begin:
        handler_.OnSequenceStart(mark, tag, anchor, event.style);
        break;
      case Event::Kind::sequence_end: handler_.OnSequenceEnd(); break;
      case Event::Kind::mapping_begin: handler_.OnMapStart(mark, tag, anchor, event.style); break;
      case Event::Kind::mapping_end: handler_.OnMapEnd(); break;
    }
    return true;
  }

 private:
  YAML::EventHandler& handler_;
  std::unordered_map<std::string, YAML::anchor_t> numbers_;
  YAML::anchor_t last_number_ = 0;
};

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

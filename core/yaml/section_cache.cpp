#include "core/yaml/section_cache.h"

#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <set>
#include <sstream>

#include "core/yaml/events.h"
#include "core/yaml/sections.h"

namespace forge::yaml {
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

/// The line of a mark at the next section's beginning.
constexpr int behind_section = -1;

/// Some sections of a document as a document of their own. A line `_: […]` defines every anchor
/// that they may refer to; it stands before all but a document's first section. Where a document's
/// last section is not among them, a line `_: _` ends them.
class SectionDocument {
 public:
  void add(const Section& section) {
    add_alias_names(section.text, aliases_);
    sections_.push_back(&section);
  }

  /// The events of each section, with marks counted from its beginning; nothing where yaml-cpp
  /// finds an error or sees another thing in the sections than this class takes them for.
  std::vector<std::vector<Event>> parse() {
    write();
    EventRecorder recorder;
    try {
      std::istringstream stream(text_);
      YAML::Parser parser(stream);
      while (parser.HandleNextDocument(recorder)) {
      }
    } catch (const YAML::Exception&) {
      return {};
    }
    const std::vector<Event>& events = recorder.events;
    const bool is_mapping = recorder.documents == 1 && !events.empty() &&
                            events.front().kind == Event::Kind::mapping_begin &&
                            events.front().style == YAML::EmitterStyle::Block;
    return is_mapping ? split(recorder.events) : std::vector<std::vector<Event>>();
  }

 private:
  /// What is written at the first column of the document.
  struct Part {
    YAML::Mark begin;
    const Section* section = nullptr;  ///< null: a line that was added
  };

  void write() {
    size_t next = 0;
    if (sections_.front()->position == Section::Position::first)
      append(sections_[next++]->text, sections_.front());
    std::string anchors = "_: [";
    for (const std::string_view name : aliases_) {
      anchors += (anchors.back() == '[' ? "&" : ", &") + std::string(name) + " _";
    }
    append(anchors + "]\n", nullptr);
    for (; next < sections_.size(); ++next) append(sections_[next]->text, sections_[next]);
    if (sections_.back()->position != Section::Position::last) append("_: _\n", nullptr);
  }

  void append(std::string_view text, const Section* section) {
    Part part;
    part.begin.line = lines_;
    part.begin.pos = static_cast<int>(text_.size());
    part.section = section;
    parts_.push_back(part);
    text_ += text;
    for (const char c : text) lines_ += c == '\n' ? 1 : 0;
  }

  /// Deals the root's events out to the parts: each part must begin with a key, at its place.
  std::vector<std::vector<Event>> split(std::vector<Event>& events) const {
    std::vector<std::vector<Event>> dealt;  // to each part
    int depth = 0;
    bool expects_key = true;
    for (size_t i = 1; i + 1 < events.size(); ++i) {
      Event& event = events[i];
      if (event.ends_collection()) --depth;
      const bool is_key = depth == 0 && expects_key && !event.ends_collection();
      if (is_key && dealt.size() < parts_.size() && begins(event, parts_[dealt.size()]))
        dealt.emplace_back();
      if (dealt.empty() || !move_into_part(event, dealt.size() - 1)) return {};
      if (event.begins_collection()) ++depth;
      if (depth == 0) expects_key = !expects_key;
      dealt.back().push_back(std::move(event));
    }
    if (depth != 0 || !expects_key || dealt.size() != parts_.size()) return {};
    std::vector<std::vector<Event>> result;  // those of the sections
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i].section) result.push_back(std::move(dealt[i]));
    }
    return result;
  }

  static bool begins(const Event& event, const Part& part) {
    return event.mark.line == part.begin.line && event.mark.column == 0;
  }

  /// Counts the event's place from the part's beginning. False where it lies outside, other than
  /// that of a value that is not there, which is that of the next key.
  bool move_into_part(Event& event, size_t index) const {
    if (event.ends_collection()) return true;
    const YAML::Mark& begin = parts_[index].begin;
    if (event.mark.line < begin.line) return false;
    if (index + 1 < parts_.size() && event.mark.line >= parts_[index + 1].begin.line) {
      if (event.kind != Event::Kind::null || !begins(event, parts_[index + 1])) return false;
      event.mark.line = behind_section;
      return true;
    }
    event.mark.line -= begin.line;
    event.mark.pos -= begin.pos;
    return true;
  }

  std::vector<const Section*> sections_;
  std::set<std::string_view> aliases_;
  std::string text_;
  int lines_ = 0;  ///< of text_
  std::vector<Part> parts_;
};

YAML::Mark place_of(const Section& section) {
  YAML::Mark mark;
  mark.line = section.line;
  mark.pos = static_cast<int>(section.begin);
  return mark;
}

}  // namespace

SectionCache::SectionCache() = default;
SectionCache::~SectionCache() = default;

/// Null where a section is not known yet.
std::vector<SectionCache::Events> SectionCache::known_events(
    const std::vector<Section>& sections) const {
  std::vector<Events> events(sections.size());
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < sections.size(); ++i) {
    const auto& known = known_[static_cast<size_t>(sections[i].position)];
    const auto found = known.find(sections[i].text);
    if (found != known.end()) events[i] = found->second;
  }
  return events;
}

/// Parses the sections whose events are null, all at once, and keeps them.
bool SectionCache::parse_unknown(const std::vector<Section>& sections,
                                 std::vector<Events>& events) {
  SectionDocument document;
  std::vector<size_t> unknown;
  for (size_t i = 0; i < sections.size(); ++i) {
    if (events[i]) continue;
    document.add(sections[i]);
    unknown.push_back(i);
  }
  if (unknown.empty()) return true;
  std::vector<std::vector<Event>> parsed = document.parse();
  if (parsed.size() != unknown.size()) return false;
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < unknown.size(); ++i) {
    const Section& section = sections[unknown[i]];
    events[unknown[i]] = std::make_shared<const std::vector<Event>>(std::move(parsed[i]));
    const auto& text = texts_.emplace_back(std::make_unique<const std::string>(section.text));
    known_[static_cast<size_t>(section.position)].emplace(*text, events[unknown[i]]);
  }
  return true;
}

bool SectionCache::handle_document(const std::string& text, YAML::EventHandler& handler) {
  const auto sections = cut_sections(text);
  if (!sections) return false;
  std::vector<Events> events = known_events(*sections);
  if (!parse_unknown(*sections, events)) return false;
  EventPlayer player(handler);
  const YAML::Mark first = place_of(sections->front());
  handler.OnDocumentStart(first);
  handler.OnMapStart(first, "?", 0, YAML::EmitterStyle::Block);
  for (size_t i = 0; i < sections->size(); ++i) {
    const YAML::Mark begin = place_of((*sections)[i]);
    for (const Event& event : *events[i]) {
      YAML::Mark mark = event.mark;
      if (mark.line == behind_section) {
        mark = place_of((*sections)[i + 1]);
      } else {
        mark.line += begin.line;
        mark.pos += begin.pos;
      }
      if (!player.play(event, mark)) return false;
    }
  }
  handler.OnMapEnd();
  handler.OnDocumentEnd();
  return true;
}

}  // namespace forge::yaml

#include "core/yaml/section_cache.h"

#include "core/yaml/sections.h"

namespace forge::yaml {
namespace {

YAML::Mark mark_at(const SectionedText& text, int line, int column) {
  YAML::Mark mark;
  mark.line = line;
  mark.column = column;
  mark.pos = static_cast<int>(text.line_starts.at(static_cast<size_t>(line))) + column;
  return mark;
}

/// Gives the builder the events of one section of a document.
void replay_section(const SectionedText& text,
                    size_t index,
                    const std::vector<Event>& events,
                    NodeBuilder& builder) {
  const Section& section = text.sections[index];
  Event event;
  for (const Event& known : events) {
    event = known;
    if (known.mark.line == next_section_line) {
      event.mark = mark_at(text, text.sections[index + 1].line, 0);
    } else if (!known.ends_collection()) {
      event.mark = mark_at(text, section.line + known.mark.line, known.mark.column);
      if (known.at_end) event.mark.pos = static_cast<int>(text.size);
    }
    if (known.literal >= 0) {
      event.value = section.literals.at(static_cast<size_t>(known.literal)).text;
    }
    if (known.tag_literal >= 0) {
      event.tag = "!";
      event.tag += section.literals.at(static_cast<size_t>(known.tag_literal)).text;
    }
    builder.add(event);
  }
}

}  // namespace

/// Null where a section is not known yet.
std::vector<SectionCache::Events> SectionCache::known_events(
    const std::vector<Section>& sections) const {
  std::vector<Events> events(sections.size());
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < sections.size(); ++i) {
    const auto& known = known_[static_cast<size_t>(sections[i].position)];
    const auto found = known.find(sections[i].skeleton);
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
    known_[static_cast<size_t>(section.position)].emplace(section.skeleton, events[unknown[i]]);
  }
  return true;
}

bool SectionCache::build(const std::string& text, NodeBuilder& builder) {
  const auto cut = cut_sections(text);
  if (!cut) return false;
  std::vector<Events> events = known_events(cut->sections);
  if (!parse_unknown(cut->sections, events)) return false;
  Event event;
  event.kind = Event::Kind::document;
  event.mark = mark_at(*cut, cut->sections.front().line, 0);
  builder.add(event);
  event.kind = Event::Kind::mapping_begin;
  event.tag = "?";
  builder.add(event);
  for (size_t i = 0; i < events.size(); ++i) replay_section(*cut, i, *events[i], builder);
  event.kind = Event::Kind::mapping_end;
  builder.add(event);
  return true;
}

}  // namespace forge::yaml

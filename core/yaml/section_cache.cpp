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

/// Replays the events of one section of a document.
bool replay_section(const SectionedText& text,
                    size_t index,
                    const std::vector<Event>& events,
                    EventReplayer& replayer) {
  const Section& section = text.sections[index];
  std::string tag, value;
  for (const Event& event : events) {
    YAML::Mark mark;
    if (event.mark.line == next_section_line) {
      mark = mark_at(text, text.sections[index + 1].line, 0);
    } else if (!event.ends_collection()) {
      mark = mark_at(text, section.line + event.mark.line, event.mark.column);
      if (event.at_end) mark.pos = static_cast<int>(text.size);
    }
    if (event.literal >= 0) value = section.literals.at(static_cast<size_t>(event.literal)).text;
    if (event.tag_literal >= 0) {
      tag = "!";
      tag += section.literals.at(static_cast<size_t>(event.tag_literal)).text;
    }
    const bool is_replayed = replayer.replay(event,
                                             mark,
                                             event.tag_literal >= 0 ? tag : event.tag,
                                             event.literal >= 0 ? value : event.value);
    if (!is_replayed) return false;
  }
  return true;
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

bool SectionCache::handle_document(const std::string& text, YAML::EventHandler& handler) {
  const auto cut = cut_sections(text);
  if (!cut) return false;
  std::vector<Events> events = known_events(cut->sections);
  if (!parse_unknown(cut->sections, events)) return false;
  EventReplayer replayer(handler);
  const YAML::Mark first = mark_at(*cut, cut->sections.front().line, 0);
  handler.OnDocumentStart(first);
  handler.OnMapStart(first, "?", 0, YAML::EmitterStyle::Block);
  for (size_t i = 0; i < events.size(); ++i) {
    if (!replay_section(*cut, i, *events[i], replayer)) return false;
  }
  handler.OnMapEnd();
  handler.OnDocumentEnd();
  return true;
}

}  // namespace forge::yaml

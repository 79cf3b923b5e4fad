#include "core/yaml/section_document.h"

#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>

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

bool begins_at(const Event& event, int line) {
  return event.mark.line == line && event.mark.column == 0;
}

/// What stands for a leaf while its section is parsed. Where it is the whole value or tag of an
/// event, the leaf would be that, too.
constexpr std::string_view leaf_stand_in = "leaf@";

std::string stand_in(size_t index) {
  return std::string(leaf_stand_in) + std::to_string(index) + "@";
}

/// The section's text with stand-ins for its leaves.
std::string with_stand_ins(const Section& section) {
  std::string text;
  int line = 0;
  auto leaf = section.leaves.begin();
  for (size_t begin = 0; begin < section.outline.size(); ++line) {
    const size_t end = std::min(section.outline.find('\n', begin), section.outline.size() - 1) + 1;
    if (leaf != section.leaves.end() && leaf->line == line) {
      const size_t place = begin + static_cast<size_t>(leaf->column);
      text.append(section.outline, begin, place - begin);
      text += stand_in(static_cast<size_t>(leaf - section.leaves.begin()));
      begin = place + (section.outline[place] == '"' ? 0 : 1);  // without the `0` of the outline
      ++leaf;
    }
    text.append(section.outline, begin, end - begin);
    begin = end;
  }
  return text;
}

/// Finds the events whose values and tags are the section's leaves. False where a leaf is neither,
/// or what was taken for a comment is in a value.
bool find_leaves(const Section& section, std::vector<Event>& events) {
  size_t next = 0;
  const auto take = [&](int& leaf) { leaf = static_cast<int>(next++); };
  for (Event& event : events) {
    if (event.value.find(comment_stand_in) != std::string::npos) return false;
    if (event.tag == "!" + stand_in(next)) take(event.tag_leaf);
    if (event.value == stand_in(next)) take(event.leaf);
  }
  return next == section.leaves.size();
}

}  // namespace

void SectionDocument::add(const Section& section) {
  add_alias_names(section.outline, aliases_);
  sections_.push_back(&section);
}

std::vector<std::vector<Event>> SectionDocument::parse() {
  for (const Section* section : sections_) {
    if (section->outline.find(leaf_stand_in) != std::string::npos) return {};
  }
  write();
  EventRecorder recorder;
  try {
    std::istringstream stream(text_);
    YAML::Parser parser(stream);
    // yaml-cpp finds documents without end behind a stray ','.
    while (recorder.documents < 2 && parser.HandleNextDocument(recorder)) {
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

void SectionDocument::write() {
  auto next = sections_.begin();
  if ((*next)->position == Section::Position::first) {
    append(with_stand_ins(**next), *next);
    ++next;
  }
  std::string anchors = "_: [";
  for (const std::string_view name : aliases_) {
    anchors += (anchors.back() == '[' ? "&" : ", &") + std::string(name) + " _";
  }
  append(anchors + "]\n", nullptr);
  for (; next != sections_.end(); ++next) append(with_stand_ins(**next), *next);
  if (sections_.back()->position != Section::Position::last) append("_: _\n", nullptr);
}

void SectionDocument::append(std::string_view text, const Section* section) {
  parts_.push_back({lines_, section});
  text_ += text;
  lines_ += static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

/// Deals the root's events out to the parts: each part must begin with a key, at its place.
std::vector<std::vector<Event>> SectionDocument::split(std::vector<Event>& events) const {
  std::vector<std::vector<Event>> dealt;  // to each part
  int depth = 0;
  bool expects_key = true;
  for (size_t i = 1; i + 1 < events.size(); ++i) {
    Event& event = events[i];
    if (event.ends_collection()) --depth;
    const bool is_key = depth == 0 && expects_key && !event.ends_collection();
    if (is_key && dealt.size() < parts_.size() && begins_at(event, parts_[dealt.size()].line))
      dealt.emplace_back();
    if (dealt.empty() || !move_into_part(event, dealt.size() - 1)) return {};
    if (event.begins_collection()) ++depth;
    if (depth == 0) expects_key = !expects_key;
    dealt.back().push_back(std::move(event));
  }
  if (depth != 0 || !expects_key || dealt.size() != parts_.size()) return {};
  std::vector<std::vector<Event>> result;  // those of the sections
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (!parts_[i].section) continue;
    if (!find_leaves(*parts_[i].section, dealt[i])) return {};
    result.push_back(std::move(dealt[i]));
  }
  return result;
}

/// Counts the event's line from the part's beginning. False where it lies outside, other than that
/// of a value that is not there, which is that of the next key.
bool SectionDocument::move_into_part(Event& event, size_t index) const {
  if (event.ends_collection()) return true;
  if (event.mark.line < parts_[index].line) return false;
  if (index + 1 < parts_.size() && event.mark.line >= parts_[index + 1].line) {
    if (event.kind != Event::Kind::null || !begins_at(event, parts_[index + 1].line)) return false;
    event.mark.line = behind_section;
    return true;
  }
  event.at_end = static_cast<size_t>(event.mark.pos) >= text_.size();
  event.mark.line -= parts_[index].line;
  return true;
}

}  // namespace forge::yaml

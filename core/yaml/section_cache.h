#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace forge::yaml {

class NodeBuilder;
struct Event;
struct Section;

/// Caches yaml-cpp's events for the sections (see sections.h) of earlier documents, keyed by the
/// section's position and skeleton. The configs of a project share most sections up to literals,
/// and parsing YAML dominates the time to resolve a config. Any thread may call.
///
/// Why the result is exact: at a key in the first column of a block mapping, yaml-cpp's scanner
/// remembers only the anchors by name. So a section has the same events in every document in which
/// it begins and ends at such a key. The first section also opens the mapping; it has a key of its
/// own. A literal is the value or tag of one event and changes no other event. Each parsed section
/// is checked: it begins and ends at such keys, and its literals are whole values or tags. If a
/// check fails, or the document has an error, the document is parsed as a whole.
class SectionCache {
 public:
  /// Gives the builder the events of the document `text`, as parse_events would. If false, or if
  /// the builder throws, the caller parses the whole text with a new builder.
  bool build(const std::string& text, NodeBuilder& builder);

 private:
  using Events = std::shared_ptr<const std::vector<Event>>;

  std::vector<Events> known_events(const std::vector<Section>& sections) const;
  bool parse_unknown(const std::vector<Section>& sections, std::vector<Events>& events);

  mutable std::mutex mutex_;
  std::array<std::unordered_map<std::string, Events>, 3> known_;  ///< by position and skeleton
};

}  // namespace forge::yaml

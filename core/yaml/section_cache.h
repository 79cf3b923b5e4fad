#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace YAML {
class EventHandler;
}

namespace forge::yaml {

struct Event;
struct Section;

/// What yaml-cpp made of the sections (see sections.h) of earlier documents. The configs of a
/// project have most of their sections in common, all but texts in quotes word for word, and
/// reading YAML is what costs most in resolving one.
///
/// Why the result is exact: where a key begins in the first column of a block mapping, yaml-cpp's
/// scanner has no memory but the anchors by name. So a section has the same events in every
/// document in which it begins at such a place, and it ends at such a place if it did once. (The
/// first section is another matter, as it makes the mapping; it is known by itself.) What stands in
/// double quotes at the end of a line, without a quote or backslash, is the value of one event and
/// nothing to the others. For each section that is parsed it is verified that it began and ended
/// so, and that its quoted texts are events; where that fails, and for every document with an
/// error, the document is parsed as a whole. Any thread may call.
class SectionCache {
 public:
  SectionCache();
  ~SectionCache();
  SectionCache(const SectionCache&) = delete;
  SectionCache& operator=(const SectionCache&) = delete;

  /// Hands the handler the events of the document `text`, as YAML::Parser would. False where the
  /// text is to be parsed as a whole by the caller, with a new handler.
  bool handle_document(const std::string& text, YAML::EventHandler& handler);

 private:
  using Events = std::shared_ptr<const std::vector<Event>>;

  std::vector<Events> known_events(const std::vector<Section>& sections) const;
  bool parse_unknown(const std::vector<Section>& sections, std::vector<Events>& events);

  mutable std::mutex mutex_;
  std::array<std::unordered_map<std::string, Events>, 3> known_;  ///< by position and outline
};

}  // namespace forge::yaml

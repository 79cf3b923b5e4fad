#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace YAML {
class EventHandler;
}

namespace forge::yaml {

struct Event;
struct Section;

/// What yaml-cpp made of the sections (see sections.h) of earlier documents. The configs of a
/// project have most of their sections in common, word for word, and reading YAML is what costs
/// most in resolving one.
///
/// Why the result is exact: where a key begins in the first column of a block mapping, yaml-cpp's
/// scanner has no memory but the anchors by name. So a section has the same events in every
/// document in which it begins at such a place, and it ends at such a place if it did once. (The
/// first section is another matter, as it makes the mapping; it is known by itself.) For each
/// section that is parsed it is verified that it began and ended so; where that fails, and for
/// every document with an error, the document is parsed as a whole. Any thread may call.
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
  std::array<std::unordered_map<std::string_view, Events>, 3> known_;  ///< by position and text
  std::vector<std::unique_ptr<const std::string>> texts_;              ///< the keys' memory
};

}  // namespace forge::yaml

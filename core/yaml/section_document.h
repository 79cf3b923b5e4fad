#pragma once

#include <yaml-cpp/mark.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/yaml/events.h"
#include "core/yaml/sections.h"

namespace forge::yaml {

/// The line of a mark at the next section's beginning.
constexpr int behind_section = -1;

/// Some sections of a document as a document of their own. A line `_: […]` defines every anchor
/// that they may refer to; it stands before all but a document's first section. Where a document's
/// last section is not among them, a line `_: _` ends them.
class SectionDocument {
 public:
  /// `section` outlives the object.
  void add(const Section& section);
  /// The events of each section, with lines counted from its beginning; nothing where yaml-cpp
  /// finds an error or sees another thing in the sections than they were taken for.
  std::vector<std::vector<Event>> parse();

 private:
  /// What is written at the first column of the document.
  struct Part {
    int line = 0;
    const Section* section = nullptr;  ///< null: a line that was added
  };

  void write();
  void append(std::string_view text, const Section* section);
  std::vector<std::vector<Event>> split(std::vector<Event>& events) const;
  bool move_into_part(Event& event, size_t index) const;

  std::vector<const Section*> sections_;
  std::set<std::string_view> aliases_;
  std::string text_;
  int lines_ = 0;  ///< of text_
  std::vector<Part> parts_;
};

}  // namespace forge::yaml

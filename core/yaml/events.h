#pragma once

#include <yaml-cpp/emitterstyle.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/mark.h>

#include <string>
#include <unordered_map>
#include <vector>

namespace forge::yaml {

/// One event of yaml-cpp, kept. Anchors are kept by name, since their numbers differ from document
/// to document.
struct Event {
  enum class Kind { null, alias, scalar, sequence_begin, sequence_end, mapping_begin, mapping_end };

  Kind kind = Kind::null;
  YAML::EmitterStyle::value style = YAML::EmitterStyle::Default;
  YAML::Mark mark;      ///< none at the end of a collection
  bool at_end = false;  ///< the mark is that of the text's end, whose column yaml-cpp sets to 0
  /// Indices of the section's leaves that are the value and the tag (less its '!'), -1: none.
  int leaf = -1, tag_leaf = -1;
  std::string anchor;  ///< of the node, or the one that an alias names; "" for none
  std::string tag;
  std::string value;

  bool begins_collection() const {
    return kind == Kind::sequence_begin || kind == Kind::mapping_begin;
  }
  bool ends_collection() const { return kind == Kind::sequence_end || kind == Kind::mapping_end; }
};

/// Keeps the events of one document.
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

/// Hands kept events to a handler as yaml-cpp would, with anchors numbered anew.
class EventPlayer {
 public:
  explicit EventPlayer(YAML::EventHandler& handler) : handler_(handler) {}

  /// False for an alias of an anchor that no event before it had; nothing is handed on then.
  bool play(const Event& event,
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

}  // namespace forge::yaml

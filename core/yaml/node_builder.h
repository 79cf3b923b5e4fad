#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <yaml-cpp/mark.h>

#include "core/yaml/yaml.h"

namespace forge::yaml {

/// An event of yaml-cpp.
struct Event {
  enum class Kind {
    document,
    null,
    alias,
    scalar,
    sequence_begin,
    sequence_end,
    mapping_begin,
    mapping_end,
  };

  Kind kind = Kind::null;
  bool is_flow = false;  ///< of a collection: in brackets or braces
  YAML::Mark mark;       ///< none at the end of a collection
  bool at_end = false;   ///< the mark is that of the text's end, whose column yaml-cpp sets to 0
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

/// Calls `take` with each event of a text, up to the beginning of a second document. Throws
/// YAML::Exception where the text is no YAML.
void parse_events(const std::string& text, const std::function<void(const Event&)>& take);

/// Collects the entries of one mapping with PyYAML's rules: a repeated key keeps its first place
/// and takes the last value; merged entries come before the mapping's own and yield to them.
class MappingBuilder {
 public:
  void add(Entry entry) { own_.push_back(std::move(entry)); }
  /// The value of a `<<` key: a mapping or a sequence of mappings. Throws Error for others.
  void merge(const Node& value);
  size_t merged_count() const { return merged_.size(); }
  std::vector<Entry> finish();

 private:
  void merge_mapping(const Node& mapping);
  void put(Entry entry, bool is_own);

  std::vector<Entry> merged_, own_, entries_;
  std::vector<bool> owned_;  ///< of entries_: whether the value is of the mapping itself
  std::unordered_map<std::string, size_t> index_;  ///< into entries_
  size_t written_ = 0;                             ///< Entry::written of the last one
};

/// Builds nodes from events, without recursion.
class NodeBuilder {
 public:
  NodeBuilder(const std::string& text, const OriginMap& origin) : text_(text), origin_(origin) {}

  /// Throws Error for what a config cannot hold, and for a second document.
  void add(const Event& event);
  /// The root of the document; null before one was read.
  NodePtr root() const { return root_.node; }

 private:
  /// A node, and how many nodes a walk over it meets (an alias counts each time), how deep.
  struct FinishedNode {
    NodePtr node;
    size_t tree_size = 1;
    size_t depth = 0;
  };
  /// A collection whose end has not come yet.
  struct OpenCollection {
    std::shared_ptr<Node> node;
    size_t tree_size = 1;
    size_t depth = 1;
    MappingBuilder mapping;
    NodePtr key;                                    ///< whose value comes next
    YAML::Mark key_mark = YAML::Mark::null_mark();  ///< of a scalar key
    bool is_flow = false;                           ///< in brackets or braces
  };

  SourceSpan place(const YAML::Mark& mark) const { return origin_(mark.line + 1, mark.column + 1); }
  void begin_document(const Event& event);
  void require_new_anchor(const Event& event);
  void add_null(const Event& event);
  void add_scalar(const Event& event);
  void open(const Event& event);
  void close_sequence();
  void close_mapping();
  void add_finished(FinishedNode finished);
  std::shared_ptr<Node> make_node(const Event& event, Node::Kind kind) const;
  std::string null_text(const YAML::Mark& mark) const;
  void resolve_scalar(Node& node, const std::string& tag) const;
  bool expects_key() const;
  bool is_explicit_key(const YAML::Mark& mark) const;
  void require_colon(const Node& key) const;
  void require_indentation(const Node& scalar, const YAML::Mark& mark) const;
  void fix_yaml_cpp_scalar(Node& scalar, const YAML::Mark& mark) const;

  const std::string& text_;
  const OriginMap& origin_;
  FinishedNode root_;
  bool has_document_ = false;
  std::vector<OpenCollection> open_;
  std::unordered_map<std::string, FinishedNode> anchored_;  ///< by the anchor's name
  std::unordered_set<std::string> anchor_names_;            ///< also of nodes that are not finished
  size_t merged_entries_ = 0;
};

}  // namespace forge::yaml

#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/mark.h>

#include "core/yaml/yaml.h"

namespace forge::yaml {

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
};

/// Builds nodes from yaml-cpp's events, without recursion. Throws Error.
class NodeBuilder : public YAML::EventHandler {
 public:
  NodeBuilder(const std::string& text, const OriginMap& origin) : text_(text), origin_(origin) {}

  /// The root of the document; null before one was read.
  NodePtr root() const { return root_.node; }
  SourceSpan place(const YAML::Mark& mark) const { return origin_(mark.line + 1, mark.column + 1); }

  void OnDocumentStart(const YAML::Mark& mark) override;
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnScalar(const YAML::Mark& mark,
                const std::string& tag,
                YAML::anchor_t anchor,
                const std::string& value) override;
  void OnSequenceStart(const YAML::Mark& mark,
                       const std::string& tag,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override;
  void OnSequenceEnd() override;
  void OnMapStart(const YAML::Mark& mark,
                  const std::string& tag,
                  YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override;
  void OnMapEnd() override;
  void OnAnchor(const YAML::Mark& mark, const std::string& name) override;

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
    YAML::anchor_t anchor = 0;
    size_t tree_size = 1;
    size_t depth = 1;
    MappingBuilder mapping;
    NodePtr key;                                    ///< whose value comes next
    YAML::Mark key_mark = YAML::Mark::null_mark();  ///< of a scalar key
    bool is_flow = false;                           ///< in brackets or braces
  };

  std::shared_ptr<Node> make_node(const YAML::Mark& mark, Node::Kind kind);
  std::string null_text(const YAML::Mark& mark) const;
  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Node::Kind kind);
  OpenCollection close();
  void add(FinishedNode finished, YAML::anchor_t anchor);
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
  std::unordered_map<YAML::anchor_t, FinishedNode> anchored_;
  std::unordered_set<std::string> anchor_names_;
  std::string pending_anchor_;  ///< name of the anchor of the next node
  size_t merged_entries_ = 0;
};

}  // namespace forge::yaml

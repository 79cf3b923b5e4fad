#pragma once

#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/mark.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/yaml/mapping_builder.h"
#include "core/yaml/parse.h"

namespace forge::yaml {

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
  struct Built {
    NodePtr node;
    size_t tree_size = 1;
    size_t depth = 0;
  };
  /// A collection whose end has not come yet.
  struct Open {
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
  Open close();
  void add(Built built, YAML::anchor_t anchor);
  void resolve_scalar(Node& node, const std::string& tag) const;
  bool expects_key() const;
  bool is_explicit_key(const YAML::Mark& mark) const;
  void require_colon(const Node& key) const;
  void require_indentation(const Node& scalar, const YAML::Mark& mark) const;
  void correct_scalar(Node& scalar, const YAML::Mark& mark) const;

  const std::string& text_;
  const OriginMap& origin_;
  Built root_;
  bool has_document_ = false;
  std::vector<Open> open_;
  std::unordered_map<YAML::anchor_t, Built> anchored_;
  std::unordered_set<std::string> anchor_names_;
  std::string pending_anchor_;  ///< name of the anchor of the next node
  size_t merged_entries_ = 0;
};

}  // namespace forge::yaml

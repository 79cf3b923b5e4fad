#include "core/config/sub_projects.h"

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/config/from_project.h"
#include "core/config/kind.h"
#include "core/config/tree.h"
#include "core/graph/tag.h"
#include "core/project/names.h"

namespace forge::config {
namespace {

using templating::Variables;
using yaml::Entry;
using yaml::Node;
using yaml::NodePtr;

/// The root with its dotted keys applied to the sections they reach into.
NodePtr apply_dotted(const NodePtr& root) {
  auto plain = std::make_shared<Node>(*root);
  plain->entries.clear();
  for (const Entry& entry : root->entries) {
    if (!is_dotted(entry.key)) plain->entries.push_back(entry);
  }
  NodePtr result = plain;
  for (const Entry& entry : root->entries) {
    if (is_dotted(entry.key))
      result = merge(result, nest(entry.key, entry.key_origin, entry.value));
  }
  return result;
}

/// The root less what declares the arguments of its templates: that is no part of the config.
NodePtr without_template_arguments(const NodePtr& root) {
  if (!root->find("dynamic_args")) return root;
  auto rest = std::make_shared<Node>(*root);
  rest->entries.clear();
  for (const Entry& entry : root->entries) {
    if (entry.key != "dynamic_args") rest->entries.push_back(entry);
  }
  return rest;
}

/// A copy as plain YAML: !list, !tuple and !dict lose their tag, a !dlist becomes the list of its
/// values less the nulls, a !var its default.
std::shared_ptr<Node> without_container_tag(const Node& node) {
  auto copy = std::make_shared<Node>(node);
  const graph::Tag tag = graph::parse_tag(node);
  switch (tag.word) {
    case graph::Tag::Word::list:
    case graph::Tag::Word::tuple:
    case graph::Tag::Word::dict:
      if (!node.is_scalar()) copy->tag.clear();
      break;
    case graph::Tag::Word::dlist:
      if (!node.is_mapping()) break;
      copy->tag.clear();
      copy->kind = Node::Kind::sequence;
      copy->entries.clear();
      for (const Entry& entry : node.entries) {
        if (!entry.value->is_null()) copy->items.push_back(entry.value);
      }
      break;
    case graph::Tag::Word::variable:
      if (const Node* standard = node.find("default")) return without_container_tag(*standard);
      throw Error("a config of forge has no variables, so '!var' needs a default", node.origin);
    default: break;
  }
  return copy;
}

/// Replaces calls in a tree, keeping track of the configs that are being expanded.
class Expander {
 public:
  explicit Expander(const templating::Surroundings& surroundings) : surroundings_(surroundings) {}

  NodePtr document(const project::Project& project,
                   const std::string& config_name,
                   const Variables& variables) {
    const project::Config& config = project::config_of(project, config_name);
    const auto rendered = project::render_config(project, config, surroundings_, variables);
    const NodePtr root = project::parse_rendered(project, rendered);
    if (root->is_mapping()) {
      require_experiment(*root);
      return without_template_arguments(root);
    }
    SourceSpan where = root->origin;
    if (!where && !rendered.templates.empty()) {
      where = make_span(rendered.templates.front().source, 1, 1);
    }
    throw Error("a config is a mapping of keys, not " + describe_kind(*root), where);
  }

  NodePtr expand(const NodePtr& node, const project::Project& project, int depth = 0) {
    constexpr int deepest = 64;
    if (depth == deepest) throw Error("the config is nested too deeply", node->origin);
    if (is_from_project(*node)) return called(node, project);
    const auto known = expanded_.find(node);
    if (known != expanded_.end()) return known->second;
    const std::shared_ptr<Node> copy = without_container_tag(*node);
    for (NodePtr& item : copy->items) item = expand(item, project, depth + 1);
    for (Entry& entry : copy->entries) entry.value = expand(entry.value, project, depth + 1);
    expanded_[node] = copy;
    return copy;
  }

  void enter(const project::Project& project, const std::string& config, const SourceSpan& where) {
    const std::string name = project.path + ":" + project::without_yaml(config);
    const auto earlier = std::find(stack_.begin(), stack_.end(), name);
    if (earlier != stack_.end()) {
      std::vector<std::string> circle(earlier, stack_.end());
      circle.push_back(name);
      throw Error("configs refer to each other in a circle: " + join(circle, " -> "), where);
    }
    stack_.push_back(name);
  }
  void leave() { stack_.pop_back(); }

 private:
  NodePtr called(const NodePtr& node, const project::Project& caller) {
    const FromProject call = read_from_project(*node);
    const project::Project project = open(call, caller);
    if (!project.find(call.config_template)) {
      throw located_unknown_config(project, call);
    }
    enter(project, call.config_template, node->origin);
    const NodePtr root = apply_dotted(document(project, call.config_template, call.variables));
    NodePtr result;
    if (!call.targets || (call.targets->is_scalar() && call.targets->text.empty())) {
      result = expand(root, project);
    } else if (call.targets->is_sequence()) {
      result = several(*root, *call.targets, call, project);
    } else {
      result = expand(target(*root, *call.targets, call), project);
    }
    leave();
    return result;
  }

  project::Project open(const FromProject& call, const project::Project& caller) const {
    const fs::path folder = (caller.folder / call.project_dir).lexically_normal();
    const auto workspace = project::find_workspace(folder);
    if (!project::is_project_folder(folder) || !workspace) {
      throw Error("no project in " + shown_path(folder),
                  call.project_origin,
                  "a project is a folder with meta.yaml in a workspace");
    }
    return project::load_project(*workspace, folder, surroundings_, caller.shared);
  }

  static Error located_unknown_config(const project::Project& project, const FromProject& call) {
    try {
      project::config_of(project, call.config_template);
    } catch (const Error& error) {
      return Error(error.message(), call.config_origin, error.hint());
    }
    return Error("unknown config", call.config_origin);
  }

  static const NodePtr& target(const Node& root, const Node& name, const FromProject& call) {
    const Entry* entry = name.is_scalar() ? root.find_entry(name.text) : nullptr;
    if (entry) return entry->value;
    std::vector<std::string> known;
    for (const Entry& candidate : root.entries) known.push_back(candidate.key);
    throw Error("'" + call.config_template + "' has no target " +
                    (name.is_scalar() ? "'" + name.text + "'" : "that is " + describe_kind(name)),
                name.origin,
                "it has " + join(known, ", "));
  }

  NodePtr several(const Node& root,
                  const Node& names,
                  const FromProject& call,
                  const project::Project& project) {
    auto mapping = std::make_shared<Node>();
    mapping->kind = Node::Kind::mapping;
    mapping->origin = names.origin;
    for (const NodePtr& name : names.items) {
      Entry entry;
      entry.value = expand(target(root, *name, call), project);
      entry.key = name->text;
      entry.key_origin = name->origin;
      mapping->entries.push_back(std::move(entry));
    }
    return mapping;
  }

  const templating::Surroundings& surroundings_;
  std::vector<std::string> stack_;
  std::map<NodePtr, NodePtr> expanded_;  ///< holds the keys alive, so that no address is reused
};

}  // namespace

bool is_dotted(const std::string& key) { return key.find('.') != std::string::npos; }

NodePtr load_document(const project::Project& project,
                      const std::string& config_name,
                      const templating::Surroundings& surroundings,
                      const Variables& variables) {
  Expander expander(surroundings);
  const std::string& name = project::config_of(project, config_name).name;
  expander.enter(project, name, {});
  return expander.expand(expander.document(project, name, variables), project);
}

}  // namespace forge::config

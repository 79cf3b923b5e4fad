#include "core/config/document.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/config/keys.h"
#include "core/config/tree.h"
#include "core/jinja/render.h"
#include "core/project/names.h"
#include "core/project/template_arguments.h"
#include "core/yaml/graph/read.h"
#include "core/yaml/yaml.h"

namespace forge::config {

namespace {

using jinja::Variable;
using jinja::Variables;
using yaml::Entry;
using yaml::Node;
using yaml::NodePtr;

/// What a node tagged `!call:forge:from_project` asks for.
struct FromProject {
  std::string project_dir;
  std::string config_template;
  NodePtr targets;  ///< null where the call names none
  Variables variables;
  std::map<std::string, SourceSpan> variable_origins = {};
  SourceSpan project_origin;
  SourceSpan config_origin;
};

/// Whether the text has the name, and not only as a part of another one.
bool has_word(const std::string& text, const std::string& name) {
  const auto is_part = [](unsigned char byte) { return std::isalnum(byte) || byte == '_'; };
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    const bool begins = at == 0 || !is_part(text[at - 1]);
    if (begins && (end == text.size() || !is_part(text[end]))) return true;
  }
  return false;
}

Variable variable_of(const std::string& name, const Node& value) {
  if (auto variable = project::scalar_variable(value)) return *std::move(variable);
  if (value.is_sequence()) {
    Variable list;
    list.kind = Variable::Kind::list;
    for (const NodePtr& item : value.items) list.items.push_back(variable_of(name, *item));
    return list;
  }
  throw Error("the variable '" + name + "' is " + describe_kind(value),
              value.origin,
              "pp_kwargs holds plain values and lists of them");
}

std::string required_text(const Node& node, const std::string& key, SourceSpan& origin) {
  const Node* value = node.find(key);
  if (!value) throw Error("from_project needs '" + key + "'", node.origin);
  origin = value->origin;
  if (!value->is_scalar() || value->text.empty()) {
    throw Error("'" + key + "' is " + describe_kind(*value), value->origin, "give its name");
  }
  return value->text;
}

bool is_from_project(const Node& node) {
  const std::string tag = node.tag.substr(0, node.tag.find('@'));
  return tag == "!call:forge:from_project" || tag == "!call:forgather:from_project";
}

/// Throws Error where an argument is missing, unknown or of a wrong type.
FromProject read_from_project(const Node& node) {
  static const std::vector<std::string> keys = {
      "project_dir", "config_template", "targets", "pp_kwargs", "pp_debug"};
  if (!node.is_mapping()) throw Error("from_project takes a mapping of arguments", node.origin);
  for (const Entry& entry : node.entries) {
    if (std::find(keys.begin(), keys.end(), entry.key) == keys.end()) {
      throw Error("from_project has no argument '" + entry.key + "'",
                  entry.key_origin,
                  did_you_mean(entry.key, keys));
    }
  }
  FromProject call;
  call.project_dir = required_text(node, "project_dir", call.project_origin);
  call.config_template = required_text(node, "config_template", call.config_origin);
  if (const Entry* targets = node.find_entry("targets")) call.targets = targets->value;
  const Node* variables = node.find("pp_kwargs");
  if (variables && variables->is_mapping()) {
    for (const Entry& entry : variables->entries) {
      call.variables[entry.key] = variable_of(entry.key, *entry.value);
      call.variable_origins[entry.key] = entry.key_origin;
    }
  } else if (variables && !variables->is_null()) {
    throw Error("'pp_kwargs' is " + describe_kind(*variables), variables->origin);
  }
  return call;
}

/// A call of something else than another project's config. A tag that nobody knows is none: it is
/// a mistake to tell.
bool is_call(const yaml::Node& node) {
  if (node.tag.empty() || is_from_project(node)) return false;
  try {
    return graph::parse_tag(node).is_call();
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

bool is_experiment(const yaml::Node& root) {
  // Targets that Forgather's tools ask for, which the schema does not have.
  if (!root.is_mapping() || root.find("meta") || root.find("main")) return false;
  return std::any_of(root.entries.begin(), root.entries.end(), [](const yaml::Entry& entry) {
    const std::string first = entry.key.substr(0, entry.key.find('.'));
    return is_known_path(first) && !is_call(*entry.value);
  });
}

namespace {

/// The entry that makes a document a graph of calls, or null.
const yaml::Entry* graph_entry(const yaml::Node& root) {
  if (is_experiment(root)) return nullptr;
  for (const yaml::Entry& entry : root.entries) {
    if (entry.key == "main" || entry.key == "meta" || is_call(*entry.value)) return &entry;
  }
  return nullptr;
}

/// Throws Error where a document is none of a config that forge runs; `begin` is its place.
void require_experiment(const yaml::Node& root, const SourceSpan& begin) {
  if (!root.is_mapping())
    throw Error("a config is a mapping of keys, not " + describe_kind(root), begin);
  if (const yaml::Entry* entry = graph_entry(root)) {
    throw Error("the config is a graph of Python objects: forge shows it, but cannot train by it",
                entry->key_origin,
                "'forge graph', 'targets', 'pp', 'explain' and 'diff' read it; a config that forge "
                "runs has the sections model and train ('forge keys')");
  }
}

SourceSpan begin_of(const ParsedConfig& parsed) {
  const auto& templates = parsed.rendered.templates;
  if (parsed.root->origin || templates.empty()) return parsed.root->origin;
  return make_span(templates.front().source, 1, 1);
}

/// A copy of a mapping without the entries whose key `is_dropped`.
template <class IsDropped>
NodePtr without(const Node& mapping, IsDropped is_dropped) {
  auto rest = std::make_shared<Node>(mapping);
  const auto end = std::remove_if(rest->entries.begin(),
                                  rest->entries.end(),
                                  [&](const Entry& entry) { return is_dropped(entry.key); });
  rest->entries.erase(end, rest->entries.end());
  return rest;
}

/// The root less what declares the arguments of its templates: that is no part of the config.
NodePtr without_template_arguments(const NodePtr& root) {
  return without(*root, [](const std::string& key) { return key == "dynamic_args"; });
}

/// A copy as plain YAML: !list, !tuple and !dict lose their tag, a !dlist becomes the list of its
/// values less the nulls, a !var its default.
std::shared_ptr<Node> without_container_tag(const Node& node) {
  auto copy = std::make_shared<Node>(node);
  const graph::Tag tag = graph::parse_tag(node);
  switch (tag.kind) {
    case graph::Tag::Kind::list:
    case graph::Tag::Kind::tuple:
    case graph::Tag::Kind::dict:
      if (!node.is_scalar()) copy->tag.clear();
      break;
    case graph::Tag::Kind::dlist:
      if (!node.is_mapping()) break;
      copy->tag.clear();
      copy->kind = Node::Kind::sequence;
      copy->entries.clear();
      for (const Entry& entry : node.entries) {
        if (!entry.value->is_null()) copy->items.push_back(entry.value);
      }
      break;
    case graph::Tag::Kind::variable:
      if (const Node* standard = node.find("default")) return without_container_tag(*standard);
      throw Error("a config of forge has no variables, so '!var' needs a default", node.origin);
    default: break;
  }
  return copy;
}

/// Replaces calls in a tree, keeping track of the configs that are being expanded.
class Expander {
 public:
  Expander(const project::Project& reading, const jinja::HostEnvironment& host_environment)
      : folder_(reading.folder), host_environment_(host_environment) {}

  NodePtr expand(const NodePtr& node, const project::Project& project, int depth = 0) {
    constexpr int deepest = 64;
    if (depth == deepest) throw Error("the config is nested too deeply", node->origin);
    if (is_from_project(*node)) return called(node, project);
    const std::string folder = project.folder == folder_ ? "" : project.folder.string();
    const std::pair key(node, folder);
    const auto known = expanded_.find(key);
    if (known != expanded_.end()) return known->second;
    const std::shared_ptr<Node> copy = without_container_tag(*node);
    if (copy->project_folder.empty()) copy->project_folder = folder;
    for (NodePtr& item : copy->items) item = expand(item, project, depth + 1);
    for (Entry& entry : copy->entries) entry.value = expand(entry.value, project, depth + 1);
    expanded_[key] = copy;
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
    const auto [project, document] = find(call, caller);
    enter(project, call.config_template, node->origin);
    const NodePtr root = is_from_project(*document) ? expand(document, project) : document;
    NodePtr result;
    if (!call.targets || (call.targets->is_scalar() && call.targets->text.empty())) {
      result = whole(*root, project);
    } else if (call.targets->is_sequence()) {
      result = several(*root, *call.targets, call, project);
    } else {
      result = target(*root, *call.targets, call, project);
    }
    leave();
    return result;
  }

  /// The value of a root key, with the dotted keys that reach into it; null where there is none.
  NodePtr root_value(const Node& root, const std::string& key, const project::Project& project) {
    NodePtr values = without(root, [&](const std::string& other) { return other != key; });
    if (const Entry* entry = values->find_entry(key))
      values = nest(key, entry->key_origin, expand(entry->value, project));
    for (const Entry* entry : dotted_entries(root, key + "."))
      values = merge(values, nest(entry->key, entry->key_origin, expand(entry->value, project)));
    const Entry* const entry = values->find_entry(key);
    return entry ? entry->value : nullptr;
  }

  NodePtr whole(const Node& root, const project::Project& project) {
    auto mapping = std::make_shared<Node>(root);
    mapping->entries.clear();
    for (const Entry& entry : root.entries) {
      Entry own = entry;
      own.key = entry.key.substr(0, entry.key.find('.'));
      if (mapping->find_entry(own.key)) continue;
      own.value = root_value(root, own.key, project);
      mapping->entries.push_back(std::move(own));
    }
    return mapping;
  }

  /// A config that thousands call without variables is read once a command.
  project::CalledConfig find(const FromProject& call, const project::Project& caller) const {
    project::RenderCache& cache = *caller.shared;
    const fs::path folder = (caller.folder / call.project_dir).lexically_normal();
    const std::pair key(folder, project::without_yaml(call.config_template));
    if (call.variables.empty()) {
      const std::lock_guard lock(cache.mutex);
      const auto known = cache.called.find(key);
      if (known != cache.called.end()) {
        project::CalledConfig called = known->second;
        called.project.shared = caller.shared;
        return called;
      }
    }
    project::CalledConfig called{open(folder, call, caller), nullptr};
    const project::Config* config = called.project.find(call.config_template);
    if (!config) throw located_unknown_config(called.project, call);
    const ParsedConfig parsed =
        parse_config(called.project, *config, host_environment_, call.variables);
    require_experiment(*parsed.root, begin_of(parsed));
    require_used(call, parsed);
    called.root = without_template_arguments(parsed.root);
    if (call.variables.empty()) {
      const std::lock_guard lock(cache.mutex);
      const auto kept = cache.called.emplace(key, called).first;
      kept->second.project.shared = nullptr;  // the cache must not hold itself
    }
    return called;
  }

  /// Throws Error at a variable whose name stands in no template of the config.
  static void require_used(const FromProject& call, const ParsedConfig& parsed) {
    for (const auto& [name, origin] : call.variable_origins) {
      const auto& templates = parsed.rendered.templates;
      const bool is_used = std::any_of(templates.begin(), templates.end(), [&](const auto& used) {
        return has_word(used.source->text, name);
      });
      if (is_used) continue;
      throw Error("no template of '" + call.config_template + "' uses the variable '" + name + "'",
                  origin,
                  "the other project is asked for the same without it");
    }
  }

  project::Project open(const fs::path& folder,
                        const FromProject& call,
                        const project::Project& caller) const {
    const auto workspace = project::find_workspace(folder);
    if (!project::is_project_folder(folder) || !workspace) {
      throw Error("no project in " + shown_path(folder),
                  call.project_origin,
                  "a project is a folder with meta.yaml in a workspace");
    }
    return project::load_project(*workspace, folder, host_environment_, caller.shared);
  }

  static Error located_unknown_config(const project::Project& project, const FromProject& call) {
    try {
      project::config_of(project, call.config_template);
    } catch (const Error& error) {
      return Error(error.message(), call.config_origin, error.hint());
    }
    return Error("no config '" + call.config_template + "'",
                 call.config_origin,
                 did_you_mean(call.config_template,
                              texts_of(project.configs, &project::Config::name),
                              "name the whole config, not a prefix"));
  }

  NodePtr target(const Node& root,
                 const Node& name,
                 const FromProject& call,
                 const project::Project& project) {
    if (NodePtr value = name.is_scalar() ? root_value(root, name.text, project) : nullptr)
      return value;
    throw Error("'" + call.config_template + "' has no target " +
                    (name.is_scalar() ? "'" + name.text + "'" : "that is " + describe_kind(name)),
                name.origin,
                "it has " + join(texts_of(without(root, is_dotted)->entries, &Entry::key), ", "));
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
      entry.value = target(root, *name, call, project);
      entry.key = name->text;
      entry.key_origin = name->origin;
      mapping->entries.push_back(std::move(entry));
    }
    return mapping;
  }

  const fs::path folder_;  ///< of the project whose config is read
  const jinja::HostEnvironment& host_environment_;
  std::vector<std::string> stack_;
  /// By node and folder. Holds the keys alive, so that no address is reused.
  std::map<std::pair<NodePtr, std::string>, NodePtr> expanded_;
};

}  // namespace

bool is_dotted(const std::string& key) { return key.find('.') != std::string::npos; }

ParsedConfig parse_config(const project::Project& project,
                          const project::Config& config,
                          const jinja::HostEnvironment& host_environment,
                          const Variables& variables) {
  ParsedConfig parsed;
  parsed.rendered = project::render_config(project, config, host_environment, variables);
  parsed.root = project::parse_rendered(project, parsed.rendered);
  return parsed;
}

Document read_document(const project::Project& project,
                       const std::string& config_name,
                       const jinja::HostEnvironment& host_environment,
                       const Variables& variables) {
  const project::Config& config = project::config_of(project, config_name);
  return read_document(project,
                       config,
                       parse_config(project, config, host_environment, variables),
                       host_environment);
}

Document read_document(const project::Project& project,
                       const project::Config& config,
                       const ParsedConfig& parsed,
                       const jinja::HostEnvironment& host_environment) {
  Document document{project, config.name, parsed.root, nullptr, begin_of(parsed)};
  if (!parsed.root->is_mapping() || graph_entry(*parsed.root)) return document;
  Expander expander(project, host_environment);
  expander.enter(project, config.name, {});
  document.root = expander.expand(without_template_arguments(parsed.root), project);
  return document;
}

const NodePtr& require_experiment(const Document& document) {
  if (!document.root) require_experiment(*document.parsed, document.begin);
  return document.root;
}

}  // namespace forge::config

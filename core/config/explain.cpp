#include "core/config/explain.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/document.h"

namespace forge::config {
namespace {

/// The default as the last of a history, where the schema has one and it is not there yet.
void add_default(const Key& key, std::vector<Setting>& history) {
  const bool is_there = std::any_of(history.begin(), history.end(), [](const Setting& setting) {
    return setting.layer == default_layer;
  });
  if (is_there || key.required) return;
  const auto value = try_parse_json(key.default_value);
  const bool is_text = value.is_string();
  history.push_back(
      {default_layer, is_text ? value.get<std::string>() : shown_value(value), {}, ""});
}

bool is_below(const std::string& path, const std::string& section) {
  return starts_with(path, section) && path.size() > section.size() &&
         (path[section.size()] == '.' || path[section.size()] == '[');
}

/// Throws Error that there is no such path, with those that may have been meant.
[[noreturn]] void fail_unknown(const std::string& wanted, const std::vector<std::string>& paths) {
  std::vector<std::string> known;
  for (const std::string& path : paths) {
    known.push_back(path);
    for (size_t dot = path.rfind('.'); dot != std::string::npos && dot > 0;
         dot = path.rfind('.', dot - 1)) {
      known.push_back(path.substr(0, dot));
    }
  }
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  std::string hint = suggest_key(wanted, wanted, known);
  if (hint.empty()) hint = "'forge diff' and 'forge show' list the keys of a config";
  throw Error("the config has no key '" + wanted + "'", hint);
}

/// A path step by step through a document.
class Search {
 public:
  explicit Search(const std::string& path) : path_(path) {}

  struct Found {
    yaml::NodePtr node;
    std::vector<yaml::NodePtr> overridden;  ///< nearest first
  };

  /// What stands at the path below `node`, which has consumed `at` characters of it.
  std::optional<Found> find(const yaml::NodePtr& node, size_t at) const {
    if (at == path_.size()) return Found{node, {}};
    if (node->is_sequence()) return find_item(*node, at);
    std::vector<const yaml::Entry*> entries;  // a key may hold dots: the longest fits best
    for (const yaml::Entry& entry : node->entries) {
      if (fits(entry.key, at)) entries.push_back(&entry);
    }
    std::sort(entries.begin(), entries.end(), [](const yaml::Entry* a, const yaml::Entry* b) {
      return a->key.size() > b->key.size();
    });
    for (const yaml::Entry* entry : entries) {
      if (auto found = find_below(*entry, behind(at + entry->key.size()))) return found;
    }
    return std::nullopt;
  }

 private:
  bool fits(const std::string& key, size_t at) const {
    if (key.empty() || path_.compare(at, key.size(), key) != 0) return false;
    const size_t end = at + key.size();
    return end == path_.size() || path_[end] == '.' || path_[end] == '[';
  }
  size_t behind(size_t end) const {
    return end + 1 < path_.size() && path_[end] == '.' ? end + 1 : end;
  }

  std::optional<Found> find_below(const yaml::Entry& entry, size_t at) const {
    std::optional<Found> found = find(entry.value, at);
    if (!found) return std::nullopt;
    for (const yaml::NodePtr& replaced : entry.overridden) {
      const std::optional<Found> earlier = find(replaced, at);
      if (!earlier) continue;
      found->overridden.push_back(earlier->node);
      found->overridden.insert(
          found->overridden.end(), earlier->overridden.begin(), earlier->overridden.end());
    }
    return found;
  }

  /// `[2]` or `2`
  std::optional<Found> find_item(const yaml::Node& node, size_t at) const {
    const bool bracket = path_[at] == '[';
    const size_t begin = at + (bracket ? 1 : 0);
    const size_t end = std::min(path_.find_first_not_of("0123456789", begin), path_.size());
    if (end == begin || end - begin > 9) return std::nullopt;
    const size_t index = std::stoul(path_.substr(begin, end - begin));
    if (index >= node.items.size()) return std::nullopt;
    if (bracket && (end == path_.size() || path_[end] != ']')) return std::nullopt;
    return find(node.items[index], behind(end + (bracket ? 1 : 0)));
  }

  const std::string& path_;
};

std::vector<std::string> paths_of(const std::vector<Leaf>& leaves) {
  return texts_of(leaves, &Leaf::path);
}

Explanation explained(const Leaf& leaf, const Key* key) {
  Explanation explanation{leaf.path, leaf.value, {leaf.origin.set_by}, key};
  explanation.history.insert(
      explanation.history.end(), leaf.origin.overrode.begin(), leaf.origin.overrode.end());
  if (key) add_default(*key, explanation.history);
  return explanation;
}

}  // namespace

std::vector<Explanation> explain(const ResolvedConfig& resolved, const std::string& key) {
  const std::vector<Leaf> leaves = leaves_of(resolved);
  std::vector<Explanation> explanations;
  for (const Leaf& leaf : leaves) {
    if (leaf.path != key && !is_below(leaf.path, key)) continue;
    explanations.push_back(explained(leaf, find_key(leaf.path)));
  }
  const auto unset = resolved.origins.find(key);
  const std::string section = key.substr(0, key.rfind('.'));
  const bool has_section = std::any_of(
      leaves.begin(), leaves.end(), [&](const Leaf& leaf) { return is_below(leaf.path, section); });
  if (explanations.empty() && has_section && unset != resolved.origins.end())
    explanations.push_back(explained({key, nullptr, unset->second}, find_key(key)));
  if (explanations.empty()) fail_unknown(key, paths_of(leaves));
  return explanations;
}

std::vector<Explanation> explain(const yaml::Node& root, const std::string& path) {
  const auto copy = std::make_shared<const yaml::Node>(root);
  const std::optional<Search::Found> found = Search(path).find(copy, 0);
  if (!found || path.empty()) fail_unknown(path, paths_of(leaves_of(root)));
  Leaf leaf{path, json_of(*found->node), {}};
  leaf.origin.set_by = setting_of(*found->node);
  for (const yaml::NodePtr& node : found->overridden) {
    leaf.origin.overrode.push_back(setting_of(*node));
  }
  std::vector<Explanation> explanations;
  const bool is_section = !found->node->entries.empty() || !found->node->items.empty();
  if (!is_section || !found->node->tag.empty() || leaf.origin.overrode.size() > 0) {
    explanations.push_back(explained(leaf, nullptr));
  }
  if (!is_section) return explanations;
  for (const Leaf& below : leaves_of(*found->node, path)) {
    explanations.push_back(explained(below, nullptr));
  }
  return explanations;
}

nlohmann::ordered_json to_json(const std::vector<Explanation>& explanations) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Explanation& explanation : explanations) {
    nlohmann::ordered_json json;
    json["path"] = explanation.path;
    json["value"] = explanation.value;
    if (const Key* key = explanation.key) {
      json["type"] = key->type;
      json["help"] = key->help;
      json["default"] = key->required ? nlohmann::ordered_json(nullptr)
                                      : nlohmann::ordered_json::parse(key->default_value);
    }
    json["set_by"] = to_json(explanation.history.front());
    json["overrode"] = nlohmann::ordered_json::array();
    for (size_t i = 1; i < explanation.history.size(); ++i) {
      json["overrode"].push_back(to_json(explanation.history[i]));
    }
    list.push_back(std::move(json));
  }
  return list;
}

OpenConfig open_config(const Document& document, const ResolveOptions& options) {
  OpenConfig open;
  open.root = document.parsed;
  if (is_experiment(*open.root)) {
    open.resolved = resolve(document, options);
  } else if (!options.overrides.empty()) {
    throw Error(
        "--set changes keys of forge's own configs, and '" + document.config_name + "' is none",
        "a graph of calls takes the arguments that its templates declare");
  }
  return open;
}

std::vector<Leaf> leaves_of(const OpenConfig& config) {
  return config.resolved ? leaves_of(*config.resolved) : leaves_of(*config.root);
}

std::vector<Explanation> explain(const OpenConfig& config, const std::string& key) {
  return config.resolved ? explain(*config.resolved, key) : explain(*config.root, key);
}

}  // namespace forge::config

#include "core/config/kind.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/config/from_project.h"
#include "core/config/keys.h"
#include "core/graph/tag.h"

namespace forge::config {

namespace {

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

void require_experiment(const yaml::Node& root) {
  if (is_experiment(root)) return;
  for (const yaml::Entry& entry : root.entries) {
    if (entry.key != "main" && entry.key != "meta" && !is_call(*entry.value)) continue;
    throw Error("the config is a graph of Python objects: forge shows it, but cannot train by it",
                entry.key_origin,
                "'forge graph', 'targets', 'pp', 'explain' and 'diff' read it; a config that forge "
                "runs has the sections model and train ('forge keys')");
  }
}

}  // namespace forge::config

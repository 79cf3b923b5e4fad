#include "core/lint/rules.h"

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/config/document.h"
#include "core/yaml/graph/read.h"
#include "core/yaml/yaml.h"

namespace forge::lint {

using jinja::LoadedTemplate;
using jinja::TemplateAnalysis;
using jinja::TemplateFile;

const std::vector<jinja::TemplateAnalysis>& TemplateAnalyses::get(const jinja::TemplateFile& file) {
  Slot* slot = nullptr;
  {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Slot>& known = slots_[&file];
    if (!known) known = std::make_unique<Slot>();
    slot = known.get();
  }
  std::call_once(slot->once, [&] { slot->parts = jinja::analyze_template(file); });
  return slot->parts;
}

/// Every node of a tree, an aliased one once. They live as long as the root.
static std::vector<const yaml::Node*> nodes_of(const yaml::Node& root) {
  std::vector<const yaml::Node*> nodes = {&root};
  std::unordered_set<const yaml::Node*> seen = {&root};
  const auto add = [&](const yaml::Node* node) {
    if (seen.insert(node).second) nodes.push_back(node);
  };
  for (size_t i = 0; i < nodes.size(); ++i) {
    const yaml::Node& node = *nodes[i];
    for (const yaml::NodePtr& item : node.items) add(item.get());
    for (const yaml::Entry& entry : node.entries) add(entry.value.get());
  }
  return nodes;
}

const UsedTemplate* CheckedConfig::find(const std::string& name) const {
  for (const UsedTemplate& used : templates) {
    if (used.loaded->name == name) return &used;
  }
  return nullptr;
}

namespace {

/// Adds `templates` and `parts` from what was rendered.
void analyze_templates(CheckedConfig& checked, TemplateAnalyses& analyses) {
  std::unordered_map<const SourceText*, const TemplateAnalysis*> analysis_of;
  std::unordered_set<const TemplateFile*> seen;
  for (const LoadedTemplate& loaded : checked.parsed.rendered.templates) {
    if (!loaded.source->inline_name.empty()) continue;
    const TemplateFile* file =
        checked.project.shared->templates.find(checked.project.search_path, loaded.name);
    if (!file || !seen.insert(file).second) continue;
    for (const TemplateAnalysis& part : analyses.get(*file)) {
      analysis_of[part.source.get()] = &part;
      checked.parts.push_back(&part);
    }
  }
  for (const LoadedTemplate& loaded : checked.parsed.rendered.templates) {
    const auto found = analysis_of.find(loaded.source.get());
    if (found != analysis_of.end()) checked.templates.push_back({&loaded, found->second});
  }
}

/// Adds `arguments`, which a graph of calls or an experiment declares.
void read_arguments(CheckedConfig& checked, Findings& findings) {
  const bool takes_arguments = checked.parsed.root->find("dynamic_args") != nullptr;
  if (checked.is_experiment && !takes_arguments) return;
  bool is_graph = false;
  try {
    const graph::Graph graph = graph::read_graph(checked.parsed.root);
    is_graph = true;
    checked.arguments = project::read_template_arguments(graph);
  } catch (const Error& error) {
    if (is_graph) findings.push_back(finding_of(error, "invalid-arguments"));
    if (!is_graph && !checked.is_experiment) findings.push_back(finding_of(error, "invalid-graph"));
  }
}

}  // namespace

std::optional<CheckedConfig> load_checked_config(const Selection& selection,
                                                 const project::Config& config,
                                                 const jinja::HostEnvironment& host_environment,
                                                 TemplateAnalyses& analyses,
                                                 Findings& findings) {
  const project::Project& project = selection.project;
  CheckedConfig checked{project, config, host_environment, selection.variables};
  checked.try_blocks = selection.try_blocks;
  const char* stage = "does-not-render";
  try {
    checked.parsed.rendered =
        project::render_config(project, config, host_environment, selection.variables);
    stage = "invalid-yaml";
    checked.parsed.root = project::parse_rendered(project, checked.parsed.rendered);
  } catch (const Error& error) {
    findings.push_back(finding_of(error, stage));
    return std::nullopt;
  }
  checked.nodes = nodes_of(*checked.parsed.root);
  checked.is_experiment = config::is_experiment(*checked.parsed.root);
  read_arguments(checked, findings);
  analyze_templates(checked, analyses);
  return checked;
}

}  // namespace forge::lint

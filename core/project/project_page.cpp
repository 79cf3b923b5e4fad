#include "core/project/project_page.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "core/base/display_text.h"
#include "core/base/files.h"
#include "core/base/markdown_text.h"
#include "core/base/parallel.h"
#include "core/base/text.h"
#include "core/yaml/graph/read.h"
#include "core/yaml/graph/write.h"

namespace forge::project {
namespace {

using json = nlohmann::ordered_json;

/// The text up to the first section: what a README says of the whole, less its title.
std::string introduction(const std::string& readme) {
  constexpr size_t most = 40;
  std::vector<std::string> kept;
  for (const std::string& line : split(readme, '\n')) {
    if (starts_with(line, "# ") && kept.empty()) continue;
    if (starts_with(line, "#") || kept.size() == most) break;
    if (!kept.empty() || !trim(line).empty()) kept.push_back(line);
  }
  while (!kept.empty() && trim(kept.back()).empty()) kept.pop_back();
  return join(kept, "\n");
}

/// What both pages end with.
std::string templates_markdown(const MetaPage& page, const fs::path& here) {
  std::string text = "## Templates of meta.yaml\n\n" + tree_as_markdown(page.templates) +
                     "\n## Search path of templates\n\n";
  const Project& project = page.project;
  for (const fs::path& folder : project.search_path) {
    text += "- " + tables::markdown_line(folder.lexically_relative(here).generic_string()) +
            (is_folder(folder) ? "" : " (does not exist)") + "\n";
  }
  return project.search_path.empty() ? text + "None.\n" : text;
}

/// A README's Markdown with what acts without a click shown as text: HTML and images. Colours,
/// which could hide a text, are none here.
std::string without_markup(std::string_view markdown) {
  std::string text;
  for (size_t i = 0; i < markdown.size(); ++i) {
    const char c = markdown[i];
    if (c == '\x1b') continue;
    const char next = i + 1 < markdown.size() ? markdown[i + 1] : ' ';
    const bool begins_tag =
        c == '<' && (std::isalpha(static_cast<unsigned char>(next)) != 0 ||
                     std::string_view("/!?").find(next) != std::string_view::npos);
    if (c == '!' && next == '[') text += '\\';
    text += begins_tag ? "&lt;" : std::string(1, c);
  }
  return text;
}

/// Lines of YAML between fences that none of them can close.
std::string code_block(const std::string& yaml) {
  std::string fence = "```";
  while (yaml.find(fence) != std::string::npos) fence += '`';
  return fence + "yaml\n" + yaml + fence + "\n";
}

/// Code, which ends with the first backtick: a text with one is shown as text.
std::string code_span(const std::string& code) {
  return code.find('`') == std::string::npos ? "`" + tables::printable(code) + "`"
                                             : tables::markdown_text(code);
}

std::string config_markdown(const ConfigEntry& config, const Project& project) {
  const ConfigSummary& summary = config.listed.summary;
  std::string text = "- **" + tables::markdown_text(config.config.name) + "**";
  if (config.config.name == project.default_config) text += " (default)";
  if (config.listed.problem) {
    const Error& problem = *config.listed.problem;
    const std::string place = problem.where().describe();
    return text + ": broken: " + (place.empty() ? "" : tables::markdown_text(place) + ": ") +
           tables::markdown_text(problem.message()) + "\n";
  }
  text += ": " + tables::markdown_text(summary.name);
  if (!summary.description.empty()) text += ". " + tables::markdown_text(summary.description);
  text += "\n";
  for (const TemplateArgument& argument : config.arguments) {
    text += "    - " + code_span(usage_of(argument));
    text += (argument.help.empty() ? "" : " " + tables::markdown_text(argument.help)) + "\n";
  }
  return text;
}

json to_json(const ConfigEntry& config, const Project& project) {
  const ConfigSummary& summary = config.listed.summary;
  json object = {{"config", config.config.name},
                 {"name", summary.name},
                 {"description", summary.description},
                 {"trains", summary.trains},
                 {"default", config.config.name == project.default_config},
                 {"arguments", to_json(config.arguments)}};
  if (config.listed.problem) object["problem"] = describe(*config.listed.problem);
  return object;
}

ConfigEntry config_entry(const Project& project,
                         const Config& config,
                         const jinja::HostEnvironment& host_environment) {
  ConfigEntry entry{config, {}, {}};
  try {
    const yaml::NodePtr root =
        parse_rendered(project, render_config(project, config, host_environment));
    entry.listed.summary = summary_of(*root);
    entry.arguments = read_template_arguments(graph::read_graph(root));
  } catch (const Error& error) {
    entry.listed.problem = error;
  }
  if (entry.listed.summary.name.empty()) entry.listed.summary.name = config.name;
  return entry;
}

}  // namespace

MetaPage meta_page(const Project& project,
                   const Workspace& workspace,
                   const jinja::HostEnvironment& host_environment) {
  const jinja::RenderedText rendered = render_meta(project, workspace, host_environment);
  return {project,
          graph::read_graph(parse_rendered(project, rendered)),
          template_tree(rendered.templates, project.folder)};
}

ProjectPage project_page(const Project& project,
                         const Workspace& workspace,
                         const jinja::HostEnvironment& host_environment) {
  ProjectPage page;
  page.meta = meta_page(project, workspace, host_environment);
  const fs::path readme = project.folder / "README.md";
  if (is_file(readme)) page.readme = introduction(read_file(readme));
  page.configs.resize(project.configs.size());
  parallel_for(page.configs.size(), [&](size_t i) {
    page.configs[i] = config_entry(project, project.configs[i], host_environment);
  });
  return page;
}

bool ProjectPage::all_configs_valid() const {
  return std::none_of(configs.begin(), configs.end(), [](const ConfigEntry& config) {
    return config.listed.problem.has_value();
  });
}

std::string to_markdown(const MetaPage& page, const fs::path& here) {
  std::string text = "# " + tables::markdown_text(page.project.name) + "\n\n";
  text += "Folder: " + tables::markdown_text(page.project.path) + "\n\n";
  text += "## Keys of meta.yaml\n\n" + code_block(write_yaml(page.keys)) + "\n";
  return text + templates_markdown(page, here);
}

std::string to_markdown(const ProjectPage& page, const fs::path& here) {
  const Project& project = page.meta.project;
  std::string text = "# " + tables::markdown_text(project.name) + "\n\n";
  if (!project.description.empty()) text += tables::markdown_line(project.description) + "\n\n";
  if (!page.readme.empty()) text += without_markup(page.readme) + "\n\n";
  text += "Folder: " + tables::markdown_text(project.path) + "\n\n## Configs\n\n";
  for (const ConfigEntry& config : page.configs) text += config_markdown(config, project);
  if (page.configs.empty()) text += "None.\n";
  return text + "\n" + templates_markdown(page.meta, here);
}

nlohmann::ordered_json to_json(const MetaPage& page) {
  const Project& project = page.project;
  const json keys = graph::to_json(page.keys);
  json unknown = json::array();
  for (const UnknownKey& key : project.unknown_keys) {
    unknown.push_back({{"key", key.key}, {"at", key.origin.describe()}});
  }
  json folders = json::array();
  for (const fs::path& folder : project.search_path) {
    folders.push_back({{"folder", folder.generic_string()}, {"exists", is_folder(folder)}});
  }
  return {{"project", project.path},
          {"name", project.name},
          {"description", project.description},
          {"folder", project.folder.generic_string()},
          {"keys", keys.contains("targets") ? keys.at("targets") : json::object()},
          {"unknown_keys", std::move(unknown)},
          {"templates", to_json(page.templates)},
          {"search_path", std::move(folders)}};
}

nlohmann::ordered_json to_json(const ProjectPage& page) {
  json object = to_json(page.meta);
  object["readme"] = page.readme;
  object["default_config"] = page.meta.project.default_config;
  object["configs"] = json::array();
  for (const ConfigEntry& config : page.configs) {
    object["configs"].push_back(to_json(config, page.meta.project));
  }
  return object;
}

}  // namespace forge::project

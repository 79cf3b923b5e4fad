// The side of forge in the differential tests: reads one case a line as JSON, answers it in one
// line. README.md beside this file describes the cases.

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/jinja/line_preprocessor.h"
#include "core/jinja/loader.h"
#include "core/jinja/render.h"
#include "core/yaml/yaml.h"
#include "tests/differential/statistics_answers.h"
#include "tests/support/support.h"

namespace forge::tests {
namespace {

using nlohmann::json;

jinja::Variable variable_of(const json& value) {
  using Kind = jinja::Variable::Kind;
  jinja::Variable variable;
  if (value.is_boolean()) {
    variable.kind = Kind::boolean;
    variable.boolean = value;
  } else if (value.is_number_integer()) {
    variable.kind = Kind::integer;
    variable.integer = value;
  } else if (value.is_number()) {
    variable.kind = Kind::real;
    variable.real = value;
  } else if (value.is_string()) {
    variable.kind = Kind::string;
    variable.string = value;
  }
  return variable;
}

/// What oracle.py pins as well.
jinja::HostEnvironment pinned_host_environment() {
  jinja::HostEnvironment host_environment;
  host_environment.unix_time = 1700000000.25;
  host_environment.working_directory = "/cwd";
  host_environment.home_directory = "/home/ada";
  host_environment.host_name = "lab";
  return host_environment;
}

json answer_render(const json& question) {
  const TemporaryFolder folder;
  for (const auto& [name, text] : question["files"].items()) folder.write(name, text);
  jinja::RenderRequest request;
  request.search_path = {folder.path()};
  request.template_name = question["main"];
  request.project_dir = "/projects/demo";
  request.workspace_root = "/projects";
  request.host_environment = pinned_host_environment();
  const json variables = question.value("variables", json::object());
  for (const auto& [name, value] : variables.items()) request.variables[name] = variable_of(value);
  return {{"text", jinja::render(request).text}};
}

json answer_split(const json& question) {
  json parts = json::array();
  for (const auto& part : jinja::split_inline_templates(question["text"].get<std::string>()))
    parts.push_back({part.inline_name, part.text});
  return {{"parts", parts}};
}

/// A node in the notation of yaml_oracle.py.
json notation_of(const yaml::Node& node) {
  json value;
  switch (node.kind) {
    case yaml::Node::Kind::null: break;
    case yaml::Node::Kind::boolean: value = node.boolean; break;
    case yaml::Node::Kind::integer: value = {{"i", node.integer}}; break;
    case yaml::Node::Kind::real: value = {{"f", shortest(node.real)}}; break;
    case yaml::Node::Kind::string: value = node.text; break;
    case yaml::Node::Kind::sequence:
      value = json::array();
      for (const yaml::NodePtr& item : node.items) value.push_back(notation_of(*item));
      break;
    case yaml::Node::Kind::mapping: {
      json entries = json::array();
      for (const yaml::Entry& entry : node.entries)
        entries.push_back({entry.key, entry.key_is_string, notation_of(*entry.value)});
      value = {{"m", entries}};
      break;
    }
  }
  if (!node.tag.empty()) value = {{"t", node.tag}, {"v", value}};
  return value;
}

json answer_yaml(const json& question) {
  const auto nowhere = [](int, int) { return SourceSpan{}; };
  return {{"value", notation_of(*yaml::parse(question["text"], nowhere))}};
}

json answer(const json& question) {
  const std::string kind = question["kind"];
  if (kind == "render") return answer_render(question);
  if (kind == "lines")
    return {{"text", jinja::preprocess_lines(question["text"].get<std::string>()).text}};
  if (kind == "split") return answer_split(question);
  if (kind == "yaml") return answer_yaml(question);
  if (kind == "statistics") return {{"answer", answer_statistics(question)}};
  throw Error("no such kind of case: " + kind);
}

}  // namespace
}  // namespace forge::tests

int main() {
  using nlohmann::json;
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) {
    json reply;
    try {
      reply = forge::tests::answer(json::parse(line));
    } catch (const forge::Error& error) {
      reply = {{"error", error.what()}};
    }
    // Replacing: a text may hold a lone surrogate, which JSON cannot.
    std::cout << reply.dump(-1, ' ', true, json::error_handler_t::replace) << std::endl;
  }
}

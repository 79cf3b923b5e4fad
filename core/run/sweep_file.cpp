#include "core/run/sweep_file.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json_text.h"
#include "core/base/text.h"
#include "core/config/keys.h"
#include "core/yaml/parse.h"

namespace forge::run {
namespace {

std::string quoted(const std::string& text) { return json_text(nlohmann::json(text)); }

/// A value as `--set` takes it: what is a text in the file is one there too.
std::string value_text(const yaml::Node& node, bool within_brackets = false) {
  std::vector<std::string> parts;
  switch (node.kind) {
    case yaml::Node::Kind::sequence:
      for (const yaml::NodePtr& item : node.items) parts.push_back(value_text(*item, true));
      return "[" + join(parts, ",") + "]";
    case yaml::Node::Kind::mapping:
      for (const yaml::Entry& entry : node.entries)
        parts.push_back(quoted(entry.key) + ": " + value_text(*entry.value, true));
      return "{" + join(parts, ",") + "}";
    case yaml::Node::Kind::string:
      return node.plain && !within_brackets ? node.text : quoted(node.text);
    case yaml::Node::Kind::null: return "null";
    default: return node.text;
  }
}

const yaml::Node& require_list(const yaml::Node& node, const std::string& what) {
  if (!node.is_sequence())
    throw Error(what + " is a list, this is " + yaml::describe_kind(node),
                node.origin,
                "write it in brackets: [a, b]");
  if (node.items.empty()) throw Error(what + " is empty", node.origin);
  return node;
}

std::vector<std::string> read_configs(const yaml::Node& node) {
  std::vector<std::string> configs;
  for (const yaml::NodePtr& item : require_list(node, "'configs'").items) {
    if (!item->is_scalar() || item->text.empty())
      throw Error("a config is named by a text, this is " + yaml::describe_kind(*item),
                  item->origin);
    configs.push_back(item->text);
  }
  return configs;
}

Sweep read_seeds(const yaml::Node& node) {
  std::vector<std::string> seeds;
  for (const yaml::NodePtr& item : require_list(node, "'seeds'").items) seeds.push_back(item->text);
  try {
    return parse_seeds(join(seeds, ","));
  } catch (const Error& error) {
    throw Error(error.message(), node.origin, "seeds are whole numbers from 0 on: [1, 2, 3]");
  }
}

Sweep read_values(const yaml::Entry& entry) {
  if (!config::is_known_path(entry.key))
    throw Error("there is no config key '" + entry.key + "'",
                entry.key_origin,
                did_you_mean(entry.key, config::all_key_paths()));
  Sweep sweep{entry.key, {}};
  for (const yaml::NodePtr& item :
       require_list(*entry.value, "what '" + entry.key + "' is to take").items)
    sweep.values.push_back(value_text(*item));
  try {
    require_different(sweep);
  } catch (const Error& error) {
    throw Error(error.message(), entry.value->origin);
  }
  return sweep;
}

}  // namespace

SweepFile sweep_file_from_node(const yaml::Node& node) {
  if (!node.is_mapping())
    throw Error("a sweep file is a mapping, this is " + yaml::describe_kind(node), node.origin);
  static const std::vector<std::string> known = {"title", "configs", "seeds", "values"};
  SweepFile file;
  for (const yaml::Entry& entry : node.entries) {
    if (entry.key == "title") {
      file.title = entry.value->text;
    } else if (entry.key == "configs") {
      file.configs = read_configs(*entry.value);
    } else if (entry.key == "seeds") {
      file.sweeps.insert(file.sweeps.begin(), read_seeds(*entry.value));
    } else if (entry.key == "values") {
      if (!entry.value->is_mapping())
        throw Error(
            "'values' has a list for each key, this is " + yaml::describe_kind(*entry.value),
            entry.value->origin,
            "for example: optimizer.lr: [3e-4, 1e-3]");
      for (const yaml::Entry& value : entry.value->entries)
        file.sweeps.push_back(read_values(value));
    } else {
      throw Error("a sweep file has no key '" + entry.key + "'",
                  entry.key_origin,
                  did_you_mean(entry.key, known).empty() ? "its keys: " + join(known, ", ")
                                                         : did_you_mean(entry.key, known));
    }
  }
  if (file.sweeps.empty())
    throw Error(
        "the sweep changes nothing", node.origin, "give it seeds, or values: a list for each key");
  return file;
}

SweepFile read_sweep_file(const std::string& path) {
  SweepFile file = sweep_file_from_node(*yaml::parse_file(path));
  file.name = std::filesystem::path(path).stem().string();
  return file;
}

}  // namespace forge::run

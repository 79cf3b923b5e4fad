#include "core/run/sweep.h"

#include <charconv>
#include <filesystem>
#include <set>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/keys.h"
#include "core/yaml/yaml.h"

namespace forge::run {
namespace {

constexpr int64_t max_seeds = 100000;

/// The parts of a text between commas that stand outside of brackets, braces and quotes.
std::vector<std::string> split_values(const std::string& text) {
  std::vector<std::string> values(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      values.emplace_back();
      continue;
    }
    values.back() += c;
  }
  return values;
}

int64_t seed_of(const std::string& text) {
  int64_t seed = 0;
  const char* end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, seed);
  if (text.empty() || problem != std::errc() || rest != end || seed < 0) {
    throw Error("'" + text + "' is no seed",
                "seeds are whole numbers from 0 on: --seed 1,2,3 or --seed 1..5");
  }
  return seed;
}

}  // namespace

void check_distinct(const Sweep& sweep) {
  std::set<std::string> seen;
  for (const std::string& value : sweep.values) {
    if (!seen.insert(value).second)
      throw Error("the sweep of '" + sweep.path + "' has the value " + value + " twice");
  }
}

Sweep parse_sweep(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw Error("'" + text + "' is no sweep",
                "a sweep names a key and its values: --sweep optimizer.lr=3e-4,1e-3");
  }
  Sweep sweep{text.substr(0, equals), split_values(text.substr(equals + 1))};
  for (const std::string& value : sweep.values) {
    if (value.empty())
      throw Error("the sweep of '" + sweep.path + "' has an empty value",
                  "an empty text is written \"\"");
  }
  check_distinct(sweep);
  return sweep;
}

Sweep parse_seeds(const std::string& text) {
  const size_t dots = text.find("..");
  if (dots == std::string::npos) {
    Sweep sweep{"seed", {}};
    for (const std::string& part : split(text, ','))
      sweep.values.push_back(std::to_string(seed_of(part)));
    check_distinct(sweep);
    return sweep;
  }
  const int64_t first = seed_of(text.substr(0, dots)), last = seed_of(text.substr(dots + 2));
  if (last < first) throw Error("the seeds " + text + " are none: the last is before the first");
  if (last - first >= max_seeds)
    throw Error("the seeds " + text + " are more than " + std::to_string(max_seeds));
  return seeds_from(first, last - first + 1);
}

Sweep seeds_from(int64_t first, int64_t count) {
  Sweep sweep{"seed", {}};
  for (int64_t i = 0; i < count; ++i) sweep.values.push_back(std::to_string(first + i));
  return sweep;
}

std::vector<Overrides> sweep_points(const std::vector<Sweep>& sweeps) {
  std::set<std::string> keys;
  std::vector<Overrides> points(1);
  for (const Sweep& sweep : sweeps) {
    if (!keys.insert(sweep.path).second)
      throw Error("two sweeps change '" + sweep.path + "'", "give all of its values in one");
    std::vector<Overrides> longer;
    for (const Overrides& point : points) {
      for (const std::string& value : sweep.values) {
        longer.push_back(point);
        longer.back().push_back(sweep.path + "=" + value);
      }
    }
    points = std::move(longer);
  }
  return points;
}

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
    // As read: --set refuses 010, which is 8 in a file.
    case yaml::Node::Kind::integer: return std::to_string(node.integer);
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
    check_distinct(sweep);
  } catch (const Error& error) {
    throw Error(error.message(), entry.value->origin);
  }
  return sweep;
}

}  // namespace

SweepFile read_sweep_file(const std::string& path) {
  const yaml::NodePtr parsed = yaml::parse_file(path);
  const yaml::Node& node = *parsed;
  if (!node.is_mapping())
    throw Error("a sweep file is a mapping, this is " + yaml::describe_kind(node), node.origin);
  static const std::vector<std::string> known = {"title", "configs", "seeds", "values"};
  SweepFile file;
  file.name = std::filesystem::path(path).stem().string();
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
                  did_you_mean(entry.key, known, "its keys: " + join(known, ", ")));
    }
  }
  if (file.sweeps.empty())
    throw Error(
        "the sweep changes nothing", node.origin, "give it seeds, or values: a list for each key");
  return file;
}

}  // namespace forge::run

#include "core/run/sweep_file.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/keys.h"
#include "core/yaml/yaml.h"

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
    case yaml::Node::Kind::string: {
      // 1e-3 is a text for YAML 1.1, and a number for the key that takes one.
      const bool is_word = std::all_of(node.text.begin(), node.text.end(), [](unsigned char byte) {
        return std::isalnum(byte) || byte == '.' || byte == '+' || byte == '-' || byte == '_';
      });
      return node.plain && (!within_brackets || is_word) ? node.text : quoted(node.text);
    }
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
    throw Error(error.message(), node.origin, seeds_are() + ": [1, 2, 3]");
  }
}

Sweep read_list(const yaml::Entry& entry) {
  Sweep sweep{entry.key, {}};
  for (const yaml::NodePtr& item :
       require_list(*entry.value, "what '" + entry.key + "' is to take").items)
    sweep.values.push_back(value_text(*item));
  check_distinct(sweep);
  return sweep;
}

/// The two ends of a range.
std::pair<double, double> read_ends(const yaml::Node& node, const std::string& path) {
  const std::string what = "an end of the sweep of '" + path + "'";
  const auto& items = require_list(node, what).items;
  if (items.size() != 2)
    throw Error("a range has two ends, these are " + std::to_string(items.size()), node.origin);
  return {sweep_number(value_text(*items[0]), what), sweep_number(value_text(*items[1]), what)};
}

/// {log: [1e-4, 1e-2], count: 5} or {log_uniform: [1e-4, 1e-2]}.
void read_kind(const yaml::Entry& entry, SweepFile& file) {
  const std::vector<std::string>& kinds = value_kind_names();
  const yaml::Entry* given = nullptr;
  const yaml::Node* count = nullptr;
  for (const yaml::Entry& part : entry.value->entries) {
    const bool is_kind = std::find(kinds.begin(), kinds.end(), part.key) != kinds.end();
    if (part.key == "count") {
      count = part.value.get();
    } else if (is_kind && !given) {
      given = &part;
    } else if (part.key == "samples" || part.key == "seed") {
      throw Error("'" + part.key + "' is said once for all keys that are drawn",
                  part.key_origin,
                  "beside 'values': samples: {count: 8, seed: 1}");
    } else if (is_kind) {
      throw Error("the values of '" + entry.key + "' are said twice: '" + given->key + "' and '" +
                      part.key + "'",
                  part.key_origin,
                  "keep one of them");
    } else {
      throw Error("the values of '" + entry.key + "' have no '" + part.key + "'",
                  part.key_origin,
                  did_you_mean(part.key, kinds, "one of " + join(kinds, ", ")));
    }
  }
  if (!given)
    throw Error("the values of '" + entry.key + "' are a list, or one of " + join(kinds, ", "),
                entry.value->origin,
                "for example {log: [1e-4, 1e-2], count: 5}");
  const auto kind =
      static_cast<ValueKind>(std::find(kinds.begin(), kinds.end(), given->key) - kinds.begin());
  const bool is_range = kind == ValueKind::linear || kind == ValueKind::log;
  if (is_range != (count != nullptr))
    throw Error(is_range ? "'" + given->key + "' needs a 'count' of values"
                         : "'" + given->key + "' is drawn, and has no 'count'",
                given->key_origin,
                is_range ? "for example {log: [1e-4, 1e-2], count: 5}"
                         : "beside 'values': samples: {count: 8, seed: 1}");
  if (kind == ValueKind::choice) {
    RandomKey key{entry.key, {kind, 0, 0, {}}};
    for (const yaml::NodePtr& item : require_list(*given->value, "'choice'").items)
      key.distribution.choices.push_back(value_text(*item));
    check_distribution(key);
    file.random_keys.push_back(std::move(key));
    return;
  }
  const auto [low, high] = read_ends(*given->value, entry.key);
  if (is_range) {
    file.sweeps.push_back(
        {entry.key, range_values(entry.key, kind, low, high, sweep_count(count->text, "values"))});
  } else {
    RandomKey key{entry.key, {kind, low, high, {}}};
    check_distribution(key);
    file.random_keys.push_back(std::move(key));
  }
}

/// What is wrong with the value of an entry, at its place where it has none of its own.
template <class Read>
void read_at(const yaml::Node& node, const Read& read) {
  try {
    read();
  } catch (const Error& error) {
    if (error.where()) throw;
    throw Error(error.message(), node.origin, error.hint());
  }
}

void read_values(const yaml::Entry& entry, SweepFile& file) {
  if (!config::is_known_path(entry.key))
    throw Error("there is no config key '" + entry.key + "'",
                entry.key_origin,
                did_you_mean(entry.key, config::all_key_paths()));
  read_at(*entry.value, [&] {
    if (entry.value->is_mapping()) {
      read_kind(entry, file);
    } else {
      file.sweeps.push_back(read_list(entry));
    }
  });
}

void refuse_key(const yaml::Entry& entry,
                const std::string& what,
                const std::vector<std::string>& known) {
  throw Error(what + " has no key '" + entry.key + "'",
              entry.key_origin,
              did_you_mean(entry.key, known, "its keys: " + join(known, ", ")));
}

/// 8, or {count: 8, seed: 1}.
SampleCount read_samples(const yaml::Node& node) {
  SampleCount samples;
  if (!node.is_mapping()) {
    samples.count = sweep_count(node.text, "samples");
    return samples;
  }
  for (const yaml::Entry& entry : node.entries) {
    read_at(*entry.value, [&] {
      if (entry.key == "count") {
        samples.count = sweep_count(entry.value->text, "samples");
      } else if (entry.key == "seed") {
        samples.seed = std::stoull(parse_seeds(entry.value->text).values.front());
      } else {
        refuse_key(entry, "'samples'", {"count", "seed"});
      }
    });
  }
  if (samples.count == 0) throw Error("'samples' needs a 'count'", node.origin);
  return samples;
}

HalvingRule read_halving(const yaml::Node& node) {
  if (!node.is_mapping())
    throw Error("'halving' is a mapping, this is " + yaml::describe_kind(node),
                node.origin,
                "for example {first: 200, eta: 3}");
  HalvingRule rule;
  for (const yaml::Entry& entry : node.entries) {
    const std::string& text = entry.value->text;
    read_at(*entry.value, [&] {
      if (entry.key == "first") {
        rule.first = sweep_integer(text, 1, "'first', a step");
      } else if (entry.key == "eta") {
        rule.eta = sweep_integer(text, 2, "'eta', the number of runs of which one goes on");
      } else if (entry.key == "by") {
        rule.by = text;
      } else if (entry.key == "take") {
        if (text != "lowest" && text != "highest")
          throw Error("'take' is lowest or highest, not '" + text + "'");
        rule.take_highest = text == "highest";
      } else {
        refuse_key(entry, "'halving'", {"first", "eta", "by", "take"});
      }
    });
  }
  if (rule.first == 0)
    throw Error("'halving' needs 'first', the step after which runs are first compared",
                node.origin,
                "for example {first: 200, eta: 3}");
  return rule;
}

}  // namespace

SweepFile read_sweep_file(const std::string& path) {
  const yaml::NodePtr parsed = yaml::parse_file(path);
  const yaml::Node& node = *parsed;
  if (!node.is_mapping())
    throw Error("a sweep file is a mapping, this is " + yaml::describe_kind(node), node.origin);
  static const std::vector<std::string> known = {
      "title", "configs", "seeds", "values", "samples", "halving"};
  yaml::require_no_repeated_keys(node);
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
      for (const yaml::Entry& value : entry.value->entries) read_values(value, file);
    } else if (entry.key == "samples") {
      read_at(*entry.value, [&] { file.samples = read_samples(*entry.value); });
    } else if (entry.key == "halving") {
      file.halving = read_halving(*entry.value);
    } else {
      refuse_key(entry, "a sweep file", known);
    }
  }
  if (file.samples.count > 0 && file.random_keys.empty())
    throw Error("'samples' are of keys whose values are drawn, and there are none",
                node.origin,
                "for example optimizer.lr: {log_uniform: [1e-4, 1e-2]} below 'values'");
  if (file.sweeps.empty() && file.random_keys.empty())
    throw Error(
        "the sweep changes nothing", node.origin, "give it seeds, or values: a list for each key");
  return file;
}

}  // namespace forge::run

#include "core/config/reader.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/keys.h"
#include "core/config/layers.h"
#include "core/config/tree.h"

namespace forge::config::detail {
namespace {

std::string called(const std::string& path) {
  return path.empty() ? "the document" : "'" + path + "'";
}

/// Whether it comes from --set or --sweep.
bool is_typed(const yaml::Node& node) {
  return node.origin.source && node.origin.source->name == command_line_layer;
}

/// The number that a plain scalar spells, also as `1e-3`, which YAML 1.1 takes for text.
std::optional<double> number_in(const yaml::Node& node) {
  if (node.kind == yaml::Node::Kind::integer) return static_cast<double>(node.integer);
  if (node.kind == yaml::Node::Kind::real) return node.real;
  if (node.kind != yaml::Node::Kind::string || !node.plain) return std::nullopt;
  if (node.text.find_first_not_of("0123456789.eE+-") != std::string::npos) return std::nullopt;
  char* end = nullptr;
  const double number = std::strtod(node.text.c_str(), &end);
  if (node.text.empty() || *end != '\0') return std::nullopt;
  return number;
}

/// A bound without a needless ".0".
std::string bound_text(double bound) {
  const std::string text = shortest(bound);
  return ends_with(text, ".0") ? text.substr(0, text.size() - 2) : text;
}

std::string bounds_text(Limits limits) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::string low = bound_text(limits.low);
  if (limits.high == infinity) return (limits.low_included ? "at least " : "above ") + low;
  if (limits.low == -infinity) return "at most " + bound_text(limits.high);
  return "from " + low + " to " + bound_text(limits.high);
}

}  // namespace

std::string below(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

void fail_type(const yaml::Node& node, const std::string& path, const char* wanted) {
  const bool quotable = std::string_view(wanted) == "text" && node.is_scalar();
  const bool is_list = is_typed(node) && node.is_scalar() &&
                       node.text.find(',') != std::string::npos &&
                       node.text.find('=') == std::string::npos;
  throw Error(called(path) + " must be " + wanted + ", not " + describe_kind(node),
              node.origin,
              quotable  ? "quote it to make it text"
              : is_list ? "that is a list; did you mean " +
                              quoted_command("--sweep " + shell_quoted(path + "=" + node.text)) +
                              ", a run for each value?"
                        : "");
}

void check_name(const yaml::Entry& named, const std::string& path) {
  if (is_allowed_name(named.key)) return;
  throw Error(
      "'" + named.key + "' is no name for one of " + called(path), named.key_origin, allowed_names);
}

void refuse_tag(const yaml::Node& node, const std::string& path) {
  const bool is_core = node.tag.empty() || node.tag == "!" || starts_with(node.tag, "!!") ||
                       starts_with(node.tag, "tag:yaml.org,2002:");
  if (is_core) return;
  throw Error("the tag " + node.tag + " means nothing at " + called(path),
              node.origin,
              "a config of forge holds plain values; !call:forge:from_project takes them from "
              "another project");
}

void check_limits(double number, const yaml::Node& node, const std::string& path, Limits limits) {
  const bool high_enough = limits.low_included ? number >= limits.low : number > limits.low;
  if (high_enough && number <= limits.high) return;
  throw Error(called(path) + " must be " + bounds_text(limits) + ", not " + node.text, node.origin);
}

bool to_boolean(const yaml::Node& node, const std::string& path) {
  if (node.kind != yaml::Node::Kind::boolean) fail_type(node, path, "true or false");
  return node.boolean;
}

double to_real(const yaml::Node& node, const std::string& path) {
  if (is_typed(node)) require_plain_number(node.text, node.origin);
  const std::optional<double> number = number_in(node);
  if (!number) fail_type(node, path, "a number");
  if (!std::isfinite(*number)) {
    throw Error(called(path) + " must be a finite number, not " + node.text, node.origin);
  }
  return *number == 0 ? 0 : *number;  // -0.0 is no other number, and makes no other run
}

int64_t to_integer(const yaml::Node& node, const std::string& path, int64_t low, int64_t high) {
  if (is_typed(node)) require_plain_number(node.text, node.origin);
  int64_t integer = node.integer;
  if (node.kind != yaml::Node::Kind::integer) {
    constexpr auto exact = static_cast<double>(largest_exact_integer);
    const std::optional<double> number = number_in(node);
    if (!number || std::trunc(*number) != *number || std::abs(*number) > exact) {
      fail_type(node, path, "an integer");
    }
    integer = static_cast<int64_t>(*number);
  }
  if (integer < low || integer > high) {
    throw Error(called(path) + " must be from " + std::to_string(low) + " to " +
                    std::to_string(high) + ", not " + node.text,
                node.origin);
  }
  return integer;
}

std::string to_text(const yaml::Node& node, const std::string& path, bool plain_is_text) {
  const bool is_text = node.kind == yaml::Node::Kind::string;
  const bool is_plain = node.is_scalar() && node.plain && (!node.is_null() || node.text.empty());
  if (!is_text && !(plain_is_text && is_plain)) fail_type(node, path, "text");
  return node.text;
}

namespace {

nlohmann::json to_any(const yaml::Node& node, const std::string& path) {
  refuse_tag(node, path);
  if (node.is_sequence()) {
    auto list = nlohmann::json::array();
    for (const yaml::NodePtr& item : node.items) list.push_back(to_any(*item, path));
    return list;
  }
  if (!node.is_scalar()) fail_type(node, path, "a number, a text, true, false, null or a list");
  if (node.is_null()) return nullptr;
  if (node.kind == yaml::Node::Kind::boolean) return node.boolean;
  if (node.kind == yaml::Node::Kind::integer) return node.integer;
  if (number_in(node)) return to_real(node, path);
  return node.text;
}

}  // namespace

schema::JsonText to_json_text(const yaml::Node& node, const std::string& path) {
  return {json_text(to_any(node, path))};
}

schema::CountOrAuto to_count(const yaml::Node& node, const std::string& path, Limits limits) {
  if (node.is_scalar() && node.text == "auto") return {0};
  if (!number_in(node)) fail_type(node, path, "an integer or auto");
  const int64_t count = to_integer(node, path, 0, std::numeric_limits<int>::max());
  check_limits(static_cast<double>(count), node, path, limits);
  return {static_cast<int>(count)};
}

model::MlpChoice to_mlp_choice(const yaml::Node& node,
                               const std::string& path,
                               bool plain_is_text) {
  const std::vector<std::string> names = names_of(model::MlpKind{});
  const bool is_word = node.is_scalar() && is_allowed_name(node.text);
  if (is_word && std::find(names.begin(), names.end(), node.text) == names.end()) {
    model::MlpChoice choice;
    choice.own = node.text;
    return choice;
  }
  return static_cast<model::MlpKind>(to_choice(node, path, names, plain_is_text));
}

size_t to_choice(const yaml::Node& node,
                 const std::string& path,
                 const std::vector<std::string>& names,
                 bool plain_is_text) {
  if (!node.is_scalar()) fail_type(node, path, ("one of " + join(names, ", ")).c_str());
  const std::string text = plain_is_text || !node.is_null() ? node.text : "null";
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) {
    throw Error(called(path) + " must be one of " + join(names, ", ") + ", not '" + text + "'",
                node.origin,
                did_you_mean(text, names));
  }
  return static_cast<size_t>(found - names.begin());
}

MappingReader::MappingReader(const yaml::Node& mapping,
                             const ReadOptions& options,
                             std::string path)
    : mapping_(mapping), options_(options), path_(std::move(path)) {
  refuse_tag(mapping, path_);
  if (!mapping.is_mapping()) fail_type(mapping, path_, "a mapping of keys");
}

const yaml::Entry* MappingReader::take(const char* key, bool required) {
  known_.push_back(key);
  const yaml::Entry* entry = mapping_.find_entry(key);
  if (!entry && required && !options_.partial) {
    throw Error("missing key '" + below(path_, key) + "'", mapping_.origin);
  }
  return entry;
}

namespace {

/// Whether it is a key of a config with its sections: "train.max_steps".
bool is_dotted_form(const std::string& key, const std::vector<std::string>& keys) {
  return key.find('.') != key.npos && std::find(keys.begin(), keys.end(), key) != keys.end();
}

/// "train: {max_steps: …}".
std::string nested(const std::string& key) {
  const std::vector<std::string> parts = split(key, '.');
  return join(parts, ": {") + ": …" + std::string(parts.size() - 1, '}');
}

}  // namespace

void MappingReader::finish() const {
  for (const yaml::Entry& entry : mapping_.entries) {
    if (std::find(known_.begin(), known_.end(), entry.key) != known_.end()) continue;
    std::string hint = did_you_mean(entry.key, known_);
    if (hint.empty() && options_.elsewhere && is_dotted_form(entry.key, *options_.elsewhere))
      hint = "dotted keys stand at the root of a config; here it is '" + nested(entry.key) + "'";
    if (hint.empty() && options_.elsewhere)
      hint = suggest_key(entry.key, below(path_, entry.key), *options_.elsewhere);
    if (hint.empty()) hint = "the keys here are " + join(known_, ", ");
    attempt(options_.on_problem, Problem::Kind::unknown_key, [&] {
      throw Error("unknown key '" + below(path_, entry.key) + "'", entry.key_origin, hint);
    });
  }
}

}  // namespace forge::config::detail

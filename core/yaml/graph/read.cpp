#include "core/yaml/graph/read.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/python/unicode.h"
#include "core/yaml/yaml.h"

namespace forge::graph {

namespace {

/// Arguments of a call as the text gives them.
struct CallArguments {
  std::vector<yaml::NodePtr> positional;
  std::vector<yaml::Entry> named;
};

/// The digits of `argN` without leading zeros, or nothing for another name.
std::optional<std::string> position_of(const std::string& name) {
  constexpr std::string_view prefix = "arg";
  if (!starts_with(name, prefix) || name.size() == prefix.size()) return std::nullopt;
  const std::string digits = name.substr(prefix.size());
  if (digits.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  return digits.substr(std::min(digits.find_first_not_of('0'), digits.size() - 1));
}

std::vector<yaml::NodePtr> characters(const yaml::Node& scalar) {
  std::vector<yaml::NodePtr> found;
  for (size_t at = 0; at < scalar.text.size();) {
    auto character = std::make_shared<yaml::Node>();
    character->kind = yaml::Node::Kind::string;
    character->origin = scalar.origin;
    python::append_code_point(character->text, python::next_code_point(scalar.text, at));
    found.push_back(std::move(character));
  }
  return found;
}

/// Whether `args` and `kwargs` are all that the mapping gives.
bool is_explicit(const yaml::Node& mapping) {
  const auto given = [&](const char* key) {
    const yaml::Entry* entry = mapping.find_entry(key);
    return entry && entry->key_is_string &&
           (!entry->value->is_null() || !entry->value->tag.empty());
  };
  const size_t count = (given("args") ? 1U : 0U) + (given("kwargs") ? 1U : 0U);
  return count > 0 && count == mapping.entries.size();
}

std::vector<yaml::Entry> with_names(const yaml::Node& mapping) {
  for (const yaml::Entry& entry : mapping.entries) {
    if (!entry.key_is_string) {
      throw Error("argument names must be strings, not '" + entry.key + "'", entry.key_origin);
    }
  }
  return mapping.entries;
}

CallArguments read_explicit(const yaml::Node& mapping) {
  CallArguments arguments;
  for (const yaml::Entry& entry : mapping.entries) {
    const yaml::Node& value = *entry.value;
    const bool is_list = entry.key == "args";
    if (!value.tag.empty() || (is_list ? !value.is_sequence() : !value.is_mapping())) {
      const std::string what = value.tag.empty() ? describe_kind(value) : "'" + value.tag + "'";
      throw Error("'" + entry.key + "' is " + what,
                  value.origin,
                  is_list ? "it takes a sequence of arguments" : "it takes a mapping of arguments");
    }
    if (is_list) {
      arguments.positional = value.items;
    } else {
      arguments.named = with_names(value);
    }
  }
  return arguments;
}

CallArguments read_named(const yaml::Node& mapping) {
  struct Numbered {
    std::string number;
    yaml::NodePtr value;
  };
  std::vector<Numbered> numbered;
  CallArguments arguments;
  for (yaml::Entry& entry : with_names(mapping)) {
    if (const auto number = position_of(entry.key)) {
      numbered.push_back({*number, entry.value});
    } else {
      arguments.named.push_back(std::move(entry));
    }
  }
  std::stable_sort(numbered.begin(), numbered.end(), [](const Numbered& a, const Numbered& b) {
    return std::make_pair(a.number.size(), a.number) < std::make_pair(b.number.size(), b.number);
  });
  for (Numbered& argument : numbered) arguments.positional.push_back(std::move(argument.value));
  return arguments;
}

/// Reads the arguments behind a constructor tag by Forgather's rules: a sequence is positional; of
/// a mapping argN becomes positional by the order of N and the rest named, unless its only keys are
/// `args` and/or `kwargs`, which then are the positional and the named ones; each
/// character of a scalar is one argument. Throws Error for a name that is not a string and for args
/// and kwargs of the wrong shape.
CallArguments read_arguments(const yaml::Node& call) {
  if (call.is_sequence()) return {call.items, {}};
  if (call.is_scalar()) return {characters(call), {}};
  return is_explicit(call) ? read_explicit(call) : read_named(call);
}

constexpr std::pair<std::string_view, Tag::Kind> words[] = {{"call", Tag::Kind::singleton},
                                                            {"singleton", Tag::Kind::singleton},
                                                            {"factory", Tag::Kind::factory},
                                                            {"partial", Tag::Kind::partial},
                                                            {"lambda", Tag::Kind::partial},
                                                            {"meta", Tag::Kind::meta},
                                                            {"var", Tag::Kind::variable},
                                                            {"list", Tag::Kind::list},
                                                            {"tuple", Tag::Kind::tuple},
                                                            {"dict", Tag::Kind::dict},
                                                            {"dlist", Tag::Kind::dlist}};

Tag::Kind tag_kind(const std::string& name, const yaml::Node& node) {
  std::vector<std::string> known;
  for (const auto& [word, kind] : words) {
    if (word == name) return kind;
    known.push_back("!" + std::string(word));
  }
  throw Error("unknown tag '" + node.tag + "'",
              node.origin,
              did_you_mean("!" + name, known, "the tags are " + join(known, ", ")));
}

}  // namespace

Tag parse_tag(const yaml::Node& node) {
  Tag tag;
  if (node.tag.empty()) return tag;
  const std::string written = node.tag.substr(1);
  const size_t end = std::min(written.find_first_of(":@"), written.size());
  const std::string name = written.substr(0, end);
  tag.kind = tag_kind(name, node);
  const std::string suffix = end < written.size() ? written.substr(end + 1) : "";
  if (tag.kind == Tag::Kind::variable && end < written.size()) {
    throw Error("'!var' has no suffix, but this is '" + node.tag + "'",
                node.origin,
                "write !var " + (suffix.empty() ? "NAME" : suffix));
  }
  const size_t at = suffix.find('@');
  tag.constructor = suffix.substr(0, at);
  if (at != std::string::npos) tag.identity = suffix.substr(at + 1);
  if (tag.is_call() && tag.constructor.empty()) {
    throw Error("'!" + name + "' does not say what to call",
                node.origin,
                "name it behind the tag, as in !" + name + ":module:function");
  }
  return tag;
}

namespace {

std::shared_ptr<Node> new_node(const yaml::Node& source, Node::Kind kind) {
  auto node = std::make_shared<Node>();
  node->kind = kind;
  node->origin = source.origin;
  node->anchor = source.anchor;
  return node;
}

Node::CallKind call_kind_of(Tag::Kind word) {
  switch (word) {
    case Tag::Kind::factory: return Node::CallKind::factory;
    case Tag::Kind::partial: return Node::CallKind::partial;
    case Tag::Kind::meta: return Node::CallKind::meta;
    default: return Node::CallKind::singleton;
  }
}

NodePtr read_scalar(const yaml::Node& source) {
  auto node = new_node(source, Node::Kind::null);
  switch (source.kind) {
    case yaml::Node::Kind::boolean: node->kind = Node::Kind::boolean; break;
    case yaml::Node::Kind::integer: node->kind = Node::Kind::integer; break;
    case yaml::Node::Kind::real: node->kind = Node::Kind::real; break;
    case yaml::Node::Kind::string:
      node->kind = Node::Kind::string;
      node->text = source.text;
      break;
    default: break;
  }
  node->boolean = source.boolean;
  node->integer = source.integer;
  node->real = source.real;
  return node;
}

[[noreturn]] void fail_shape(const yaml::Node& source, const char* wanted) {
  throw Error("'" + source.tag + "' is " + describe_kind(source), source.origin, wanted);
}

/// A tag with nothing behind it.
bool is_empty(const yaml::Node& source) { return source.is_null() && source.text.empty(); }

class Reader {
 public:
  NodePtr read(const yaml::NodePtr& source) {
    const auto known = read_.find(source.get());
    if (known != read_.end()) return known->second;
    const Tag tag = parse_tag(*source);
    const NodePtr node = read_new(*source, tag);
    if (!node->identity.empty()) register_identity(node->identity, node->origin);
    read_.emplace(source.get(), node);
    return node;
  }

 private:
  NodePtr read_new(const yaml::Node& source, const Tag& tag) {
    if (tag.is_call()) return read_call(source, tag);
    switch (tag.kind) {
      case Tag::Kind::variable: return read_variable(source);
      case Tag::Kind::none:
        return source.is_scalar() ? read_scalar(source) : read_container(source, tag);
      case Tag::Kind::tuple:
        if (!source.is_sequence()) fail_shape(source, "it takes a sequence");
        break;
      case Tag::Kind::list:
        if (!source.is_sequence() && !is_empty(source)) {
          fail_shape(source, "it takes a sequence or nothing");
        }
        break;
      default:  // !dict and !dlist
        if (!source.is_mapping() && !is_empty(source)) {
          fail_shape(source, "it takes a mapping or nothing");
        }
    }
    return read_container(source, tag);
  }

  NodePtr read_container(const yaml::Node& source, const Tag& tag) {
    auto node = new_node(source, Node::Kind::list);
    node->is_object = tag.kind != Tag::Kind::none;
    node->identity = tag.identity;
    if (tag.kind == Tag::Kind::tuple) node->kind = Node::Kind::tuple;
    if (tag.kind == Tag::Kind::dict || (source.is_mapping() && tag.kind != Tag::Kind::dlist)) {
      node->kind = Node::Kind::mapping;
    }
    for (const yaml::NodePtr& item : source.items) node->items.push_back(read(item));
    for (const yaml::Entry& entry : source.entries) {
      if (tag.kind == Tag::Kind::dict && !entry.key_is_string) {
        throw Error("keys of '!dict' must be strings", entry.key_origin, "quote it");
      }
      NodePtr value = read(entry.value);
      if (node->kind == Node::Kind::mapping) {
        node->entries.push_back(
            {entry.key, entry.key_is_string, entry.key_origin, std::move(value)});
      } else if (value->kind != Node::Kind::null) {  // of a !dlist, whose nulls delete
        node->items.push_back(std::move(value));
      }
    }
    return node;
  }

  NodePtr read_variable(const yaml::Node& source) {
    auto node = new_node(source, Node::Kind::variable);
    if (source.is_sequence()) fail_shape(source, "write !var NAME or !var {name, default}");
    const yaml::Node* name = &source;
    if (source.is_mapping()) {
      for (const yaml::Entry& entry : source.entries) {
        if (entry.key == "default") {
          node->default_value = read(entry.value);
        } else if (entry.key != "name") {
          throw Error(
              "'!var' has no '" + entry.key + "'", entry.key_origin, "it has name and default");
        }
      }
      name = source.find("name");
    }
    if (!name || !name->is_scalar() || name->text.empty()) {
      throw Error("'!var' names no variable",
                  name ? name->origin : source.origin,
                  "write !var NAME or !var {name, default}");
    }
    node->text = name->text;
    return node;
  }

  NodePtr read_call(const yaml::Node& source, const Tag& tag) {
    auto node = new_node(source, Node::Kind::call);
    node->text = tag.constructor;
    node->identity = tag.identity;
    node->call_kind = call_kind_of(tag.kind);
    CallArguments arguments = read_arguments(source);
    for (const yaml::NodePtr& value : arguments.positional) node->items.push_back(read(value));
    for (const yaml::Entry& entry : arguments.named) {
      NodePtr value = read(entry.value);
      const bool is_given = value->kind != Node::Kind::null;
      if (entry.key == "submodule_searchpath") {
        if (is_given) node->submodule_searchpath = std::move(value);
      } else if (entry.key == "latent_args") {
        if (is_given) node->latent_args = std::move(value);
      } else {
        node->entries.push_back({entry.key, true, entry.key_origin, std::move(value)});
      }
    }
    return node;
  }

  void register_identity(const std::string& identity, const SourceSpan& origin) {
    const auto [first, is_new] = identities_.emplace(identity, origin);
    if (is_new) return;
    const std::string place = first->second.describe();
    throw Error("identity '" + identity + "' is used twice",
                origin,
                place.empty() ? "" : "the other is at " + place);
  }

  std::unordered_map<const yaml::Node*, NodePtr> read_;
  std::unordered_map<std::string, SourceSpan> identities_;
};

}  // namespace

Graph read_graph(const yaml::NodePtr& document) {
  Graph graph{Reader().read(document)};
  if (!graph.has_targets()) return graph;
  for (const Entry& entry : graph.root->entries) {
    if (!entry.key_is_string) {
      throw Error(
          "target names must be strings, not '" + entry.key + "'", entry.key_origin, "quote it");
    }
  }
  return graph;
}

}  // namespace forge::graph

#include "core/graph/read.h"

#include <unordered_map>

#include "core/base/error.h"
#include "core/graph/arguments.h"
#include "core/graph/tag.h"

namespace forge::graph {
namespace {

std::shared_ptr<Node> new_node(const yaml::Node& source, Node::Kind kind) {
  auto node = std::make_shared<Node>();
  node->kind = kind;
  node->origin = source.origin;
  node->anchor = source.anchor;
  return node;
}

Node::Calling calling_of(Tag::Word word) {
  switch (word) {
    case Tag::Word::factory: return Node::Calling::factory;
    case Tag::Word::partial: return Node::Calling::partial;
    case Tag::Word::meta: return Node::Calling::meta;
    default: return Node::Calling::singleton;
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
    if (!node->identity.empty()) claim(node->identity, node->origin);
    read_.emplace(source.get(), node);
    return node;
  }

 private:
  NodePtr read_new(const yaml::Node& source, const Tag& tag) {
    if (tag.is_call()) return read_call(source, tag);
    switch (tag.word) {
      case Tag::Word::variable: return read_variable(source);
      case Tag::Word::none:
        return source.is_scalar() ? read_scalar(source) : read_container(source, tag);
      case Tag::Word::tuple:
        if (!source.is_sequence()) fail_shape(source, "it takes a sequence");
        break;
      case Tag::Word::list:
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
    node->is_object = tag.word != Tag::Word::none;
    node->identity = tag.identity;
    if (tag.word == Tag::Word::tuple) node->kind = Node::Kind::tuple;
    if (tag.word == Tag::Word::dict || (source.is_mapping() && tag.word != Tag::Word::dlist)) {
      node->kind = Node::Kind::mapping;
    }
    for (const yaml::NodePtr& item : source.items) node->items.push_back(read(item));
    for (const yaml::Entry& entry : source.entries) {
      if (tag.word == Tag::Word::dict && !entry.key_is_string) {
        throw Error("a key of '!dict' is no string", entry.key_origin, "quote it");
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
    node->calling = calling_of(tag.word);
    Arguments arguments = read_arguments(source);
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

  void claim(const std::string& identity, const SourceSpan& origin) {
    const auto [first, is_new] = identities_.emplace(identity, origin);
    if (is_new) return;
    const std::string place = first->second.describe();
    throw Error("two nodes claim the identity '" + identity + "'",
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
      throw Error("a target is called '" + entry.key + "', which is no string",
                  entry.key_origin,
                  "quote it");
    }
  }
  return graph;
}

}  // namespace forge::graph

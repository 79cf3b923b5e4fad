#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/graph/node.h"

namespace forge::graph {

/// {"definitions": {NAME: node}, "targets": {NAME: node}}, or {"definitions", "root": node} where
/// the root has no targets. Plain values, lists and mappings are JSON's own (infinite numbers and
/// not-a-number are strings as in YAML); everything else is an object with the key "node":
///     {"node": "shared", "name"}                    one of the definitions
///     {"node": "variable", "name", "default"?}
///     {"node": "list" | "tuple" | "dict", "identity"?, "items" or "entries"}
///     {"node": "singleton" | "factory" | "partial" | "meta", "constructor", "identity"?, "args",
///      "kwargs", "submodule_searchpath"?, "latent_args"?, "at"}
/// and "at", its place as "file:line:column", where that is known.
nlohmann::ordered_json to_json(const Graph& graph);

}  // namespace forge::graph

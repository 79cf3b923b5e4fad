#pragma once

#include <string>
#include <vector>

namespace forge::config {

/// A key of the experiment's schema, for help, completion and documentation.
struct Key {
  std::string path;  ///< dotted: "model.canon.set"
  std::string type;  ///< "integer", "number", "true or false", "text", "list", or "rope | nope"
  std::string help;
  std::string default_value;  ///< as JSON, "" where the key is required
  bool required = false;
};

/// Every leaf of the schema, in the schema's order.
const std::vector<Key>& all_keys();

/// Their dotted paths.
const std::vector<std::string>& all_key_paths();

/// Whether the dotted path names a leaf or a section of the schema.
bool is_known_path(const std::string& path);

}  // namespace forge::config

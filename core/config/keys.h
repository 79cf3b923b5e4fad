#pragma once

#include <string>
#include <vector>

#include "core/base/schema.h"

namespace forge::config {

/// Stands in the path of a key for a name that is the user's choice.
inline constexpr const char* any_name = "NAME";

/// Stands at the end of the path of keys whose names are the user's choice, too.
inline constexpr const char* any_setting = "SETTING";

/// Whether a user may choose the name: letters, digits, _ and -, at most 64.
bool is_allowed_name(const std::string& name);
inline constexpr const char* allowed_names = "letters, digits, _ and -, at most 64";

/// A key of the experiment's schema, for help, completion and documentation.
struct Key {
  std::string path;  ///< dotted: "model.canon.set", "data.sources.NAME.weight"
  std::string type;  ///< "integer", "number", "true or false", "text", "list", or "rope | nope"
  std::string help;
  std::string default_value;  ///< as JSON, "" where the key is required
  bool required = false;
  schema::Limits limits = {};  ///< of a number

  bool is_integer() const { return type.rfind("integer", 0) == 0; }
  bool is_within_limits(double value) const;
  bool is_named() const;  ///< by the user: there are as many of it as there are names
};

/// Every leaf of the schema, in the schema's order.
const std::vector<Key>& all_keys();

/// The dotted paths of those that no user names.
const std::vector<std::string>& all_key_paths();

/// The same and, where `path` leads below a name of the user's, those below that name.
std::vector<std::string> key_paths_near(const std::string& path);

/// The default as a config would write it, text without quotes.
std::string default_text(const Key& key);

/// The key of a dotted path, with any name in it; null where there is none.
const Key* find_key(const std::string& path);

/// Whether the key's value is the path of a file or folder.
bool is_path_key(const std::string& path);

/// Whether the dotted path names a leaf or a section of the schema.
bool is_known_path(const std::string& path);

/// "did you mean 'model.canon.set'?": the known paths that end in ".ENDING", at most three, else
/// the near misses of `path`; "" where there is neither.
std::string suggest_key(const std::string& ending,
                        const std::string& path,
                        const std::vector<std::string>& known);

}  // namespace forge::config

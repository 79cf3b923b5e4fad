#include "core/config/keys.h"

#include "core/base/text.h"
#include "core/config/fields.h"
#include "core/config/json.h"

namespace forge::config {
namespace {

template <class T>
std::string type_name(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return "true or false";
  } else if constexpr (std::is_enum_v<T>) {
    return join(names_of(value), " | ");
  } else if constexpr (std::is_integral_v<T>) {
    return "integer";
  } else if constexpr (std::is_floating_point_v<T>) {
    return "number";
  } else {
    return "text";
  }
}
template <class T>
std::string type_name(const std::optional<T>&) {
  return type_name(T{}) + " or null";
}
template <class T>
std::string type_name(const std::vector<T>&) {
  return "list";
}

class KeyLister {
 public:
  KeyLister(const nlohmann::json& defaults, std::string prefix, std::vector<Key>& keys)
      : defaults_(defaults), prefix_(std::move(prefix)), keys_(keys) {}

  template <class T>
  void field(const char* key, T& value, const char* help, Limits limits = {}) {
    Key described{prefix_ + key, type_name(value), help, defaults_.at(key).dump(), limits.required};
    if (limits.nullable) described.type += " or null";
    if (limits.nullable) described.default_value = "null";
    if (limits.required) described.default_value.clear();
    keys_.push_back(std::move(described));
  }
  template <class T>
  void section(const char* key, T& value, const char*) {
    KeyLister inner(defaults_.at(key), prefix_ + key + ".", keys_);
    fields(inner, value);
  }

 private:
  const nlohmann::json& defaults_;
  std::string prefix_;
  std::vector<Key>& keys_;
};

std::vector<Key> list_keys() {
  Experiment experiment;
  const nlohmann::json defaults = to_json(experiment);
  std::vector<Key> keys;
  KeyLister lister(defaults, "", keys);
  fields(lister, experiment);
  return keys;
}

}  // namespace

const std::vector<Key>& all_keys() {
  static const std::vector<Key> keys = list_keys();
  return keys;
}

const std::vector<std::string>& all_key_paths() {
  static const std::vector<std::string> paths = [] {
    std::vector<std::string> list;
    for (const Key& key : all_keys()) list.push_back(key.path);
    return list;
  }();
  return paths;
}

bool is_known_path(const std::string& path) {
  const std::vector<std::string>& paths = all_key_paths();
  return std::any_of(paths.begin(), paths.end(), [&](const std::string& known) {
    return known == path || starts_with(known, path + ".");
  });
}

}  // namespace forge::config

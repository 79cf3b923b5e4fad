#include "core/config/keys.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/config/fields.h"

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
std::string type_name(const model::MlpChoice& choice) { return type_name(choice.kind) + " | NAME"; }
std::string type_name(const schema::CountOrAuto&) { return "integer or auto"; }
std::string type_name(const schema::JsonText&) { return "any value"; }
std::string type_name(const std::optional<bool>&) { return "true, false or null"; }
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
    const std::string default_value = json_text(defaults_.value(key, nlohmann::json()));
    Key described{prefix_ + key, type_name(value), help, default_value, limits.required};
    if (limits.nullable) described.type += " or null";
    if (limits.nullable) described.default_value = "null";
    if (limits.required) described.default_value.clear();
    described.limits = limits;
    keys_.push_back(std::move(described));
  }
  template <class T>
  void section(const char* key, T& value, const char*, Limits = {}) {
    KeyLister inner(defaults_.at(key), prefix_ + key + ".", keys_);
    fields(inner, value);
  }
  template <class T>
  void sections(const char* key, std::map<std::string, T>& values, const char*) {
    KeyLister inner(defaults_.at(key).at(any_name), prefix_ + key + "." + any_name + ".", keys_);
    fields(inner, values.at(any_name));
  }
  void rest(std::map<std::string, schema::JsonText>& values, const char* help) {
    keys_.push_back({prefix_ + any_setting, type_name(values[any_setting]), help, "null"});
  }

 private:
  const nlohmann::json& defaults_;
  std::string prefix_;
  std::vector<Key>& keys_;
};

/// Whether the parts of a key's path begin so, or are just these.
bool begins_with(const std::vector<std::string>& key,
                 const std::vector<std::string>& parts,
                 bool wholly) {
  if (wholly ? parts.size() != key.size() : parts.size() > key.size()) return false;
  return std::equal(parts.begin(), parts.end(), key.begin(), [](const auto& part, const auto& own) {
    return own == any_name || own == any_setting ? !part.empty() : part == own;
  });
}

std::vector<Key> list_keys() {
  Experiment experiment;
  experiment.data.sources[any_name];
  experiment.model.blocks[any_name];
  const nlohmann::json defaults = to_complete_json(experiment);
  std::vector<Key> keys;
  KeyLister lister(defaults, "", keys);
  fields(lister, experiment);
  return keys;
}

}  // namespace

bool is_allowed_name(const std::string& name) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  };
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), is_allowed);
}

std::string suggest_key(const std::string& ending,
                        const std::string& path,
                        const std::vector<std::string>& known) {
  std::vector<std::string> found;
  for (const std::string& key : known) {
    if (found.size() < 3 && ends_with(key, "." + ending)) found.push_back("'" + key + "'");
  }
  return found.empty() ? did_you_mean(path, known) : "did you mean " + join(found, " or ") + "?";
}

bool Key::is_within_limits(double value) const {
  const bool is_high_enough = limits.low_included ? value >= limits.low : value > limits.low;
  return is_high_enough && value <= limits.high;
}

bool Key::is_named() const {
  return path.find(std::string(".") + any_name + ".") != std::string::npos;
}

const std::vector<Key>& all_keys() {
  static const std::vector<Key> keys = list_keys();
  return keys;
}

const std::vector<std::string>& all_key_paths() {
  static const std::vector<std::string> paths = [] {
    std::vector<std::string> list;
    for (const Key& key : all_keys()) {
      if (!key.is_named()) list.push_back(key.path);
    }
    return list;
  }();
  return paths;
}

std::vector<std::string> key_paths_near(const std::string& path) {
  std::vector<std::string> paths = all_key_paths();
  const std::vector<std::string> wanted = split(path, '.');
  for (const Key& key : all_keys()) {
    if (!key.is_named()) continue;
    std::vector<std::string> parts = split(key.path, '.');
    size_t same = 0;
    while (same < std::min(parts.size(), wanted.size()) && parts[same] == wanted[same]) ++same;
    if (same == parts.size() || parts[same] != any_name || same + 1 >= wanted.size()) continue;
    if (parts.back() == any_setting) continue;
    parts[same] = wanted[same];
    paths.push_back(join(parts, "."));
  }
  return paths;
}

std::string default_text(const Key& key) {
  if (key.default_value.empty() || key.default_value.front() != '"') return key.default_value;
  return parse_json(key.default_value).get<std::string>();
}

const Key* find_key(const std::string& path) {
  const std::vector<std::string> parts = split(path, '.');
  for (const Key& key : all_keys()) {
    if (key.path == path) return &key;
    if (key.is_named() && begins_with(split(key.path, '.'), parts, true)) return &key;
  }
  return nullptr;
}

bool is_path_key(const std::string& path) {
  if (path == "external.working_directory" || path == "data.task.grammar" ||
      path == "tokenizer.path")
    return true;
  const std::string last = path.substr(path.rfind('.') + 1);
  if (starts_with(path, "data.")) return last == "path" || last == "evaluation_path";
  return starts_with(path, "model.blocks.") && last == "file";
}

bool is_known_path(const std::string& path) {
  const std::vector<std::string> parts = split(path, '.');
  return std::any_of(all_keys().begin(), all_keys().end(), [&](const Key& key) {
    return begins_with(split(key.path, '.'), parts, false);
  });
}

}  // namespace forge::config

#pragma once

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/fields.h"

/// Writing and reading sections of a config as JSON: visitors of their schema.
namespace forge::config::json_fields {

using Json = nlohmann::json;

template <class T>
Json value_to_json(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return name_of(value);
  } else {
    return value;
  }
}
template <class T>
Json value_to_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
inline Json value_to_json(const model::MlpChoice& choice) {
  return choice.own.empty() ? name_of(choice.kind) : choice.own;
}
inline Json value_to_json(const schema::JsonText& value) {
  return value.text.empty() ? Json(nullptr) : Json::parse(value.text);
}
inline Json value_to_json(const schema::CountOrAuto& value) {
  return value.is_auto() ? Json("auto") : Json(value.count);
}
/// A kind of mixer, or an object of it and the layer's own settings.
inline Json value_to_json(const std::vector<model::LayerSpec>& layers) {
  Json list = Json::array();
  for (const model::LayerSpec& layer : layers) {
    Json element = layer.mixer;
    if (!layer.settings.empty()) {
      element = Json::parse(layer.settings);
      element["mixer"] = layer.mixer;
    }
    list.push_back(std::move(element));
  }
  return list;
}

class Writer {
 public:
  /// With `unset`, sections are there that only a config that uses them has.
  explicit Writer(bool unset = false) : unset_(unset) {}

  template <class T>
  void field(const char* key, T& value, const char*, Limits limits = {}) {
    Json json = value_to_json(value);
    if (limits.written_if_set && json.is_null()) return;
    if (limits.written_if_set && !unset_) if_set_.emplace_back(key);
    json_[key] = std::move(json);
  }
  template <class T>
  void section(const char* key, T& value, const char*, Limits limits = {}) {
    Json json = written(value);
    const bool may_be_left_out = limits.written_if_set && !unset_;
    if (may_be_left_out) {
      T plain;
      if (json == written(plain)) return;
    }
    json_[key] = std::move(json);
  }
  /// Left out where there are none, as in the files of runs that knew no such key.
  template <class T>
  void sections(const char* key, std::map<std::string, T>& values, const char* help) {
    Writer inner(unset_);
    for (auto& [name, value] : values) inner.section(name.c_str(), value, help);
    if (!values.empty()) json_[key] = inner.take();
  }
  void rest(const std::map<std::string, schema::JsonText>& values, const char*) {
    for (const auto& [key, value] : values) json_[key] = value_to_json(value);
  }
  /// Of the keys that are there only where they are set, those with the value that they have in a
  /// new T.
  template <class T>
  void leave_out_defaults() {
    if (if_set_.empty()) return;
    T plain{};
    Writer defaults(true);
    fields(defaults, plain);
    for (const std::string& key : if_set_) {
      if (defaults.json_.contains(key) && defaults.json_[key] == json_[key]) json_.erase(key);
    }
  }
  Json take() { return std::move(json_); }

 private:
  template <class T>
  Json written(T& value) const {
    Writer inner(unset_);
    fields(inner, value);
    inner.leave_out_defaults<T>();
    return inner.take();
  }

  bool unset_;
  std::vector<std::string> if_set_;  ///< keys that are there only where they are set
  Json json_ = Json::object();
};

template <class T>
void value_from_json(const Json& json, T& value) {
  if constexpr (std::is_enum_v<T>) {
    const auto names = names_of(value);
    const auto text = json.get<std::string>();
    const auto found = std::find(names.begin(), names.end(), text);
    if (found == names.end()) throw Error("'" + text + "' is not one of " + join(names, ", "));
    value = static_cast<T>(found - names.begin());
  } else {
    json.get_to(value);
  }
}
inline void value_from_json(const Json& json, std::vector<model::LayerSpec>& layers) {
  layers.clear();
  for (Json element : json) {
    model::LayerSpec& layer = layers.emplace_back();
    if (!element.is_object()) {
      layer.mixer = element.get<std::string>();
      continue;
    }
    layer.mixer = element.at("mixer").get<std::string>();
    element.erase("mixer");
    layer.settings = element.dump();
  }
}
/// A word that is no kind of forge's is a block's name, which is checked with the whole model.
inline void value_from_json(const Json& json, model::MlpChoice& choice) {
  const auto names = names_of(model::MlpKind{});
  const auto text = json.get<std::string>();
  const auto found = std::find(names.begin(), names.end(), text);
  choice = static_cast<model::MlpKind>(found == names.end() ? 0 : found - names.begin());
  if (found == names.end()) choice.own = text;
}
inline void value_from_json(const Json& json, schema::CountOrAuto& value) {
  value.count = json == "auto" ? 0 : json.get<int>();
}
inline void value_from_json(const Json& json, schema::JsonText& value) { value.text = json.dump(); }
template <class T>
void value_from_json(const Json& json, std::optional<T>& value) {
  value = json.is_null() ? std::nullopt : std::optional<T>(json.get<T>());
}

class Reader {
 public:
  Reader(const Json& json, std::string path) : json_(json), path_(std::move(path)) {
    if (!json.is_object()) throw Error("'" + path_ + "' is not a JSON object");
  }
  template <class T>
  void field(const char* key, T& value, const char*, Limits = {}) {
    const Json* json = take(key);
    if (!json) return;
    try {
      value_from_json(*json, value);
    } catch (const std::exception& problem) {
      throw Error("'" + path_ + key + "': " + json_problem(problem));
    }
  }
  template <class T>
  void section(const char* key, T& value, const char*, Limits = {}) {
    if (const Json* json = take(key)) read(*json, path_ + key, value);
  }
  template <class T>
  void sections(const char* key, std::map<std::string, T>& values, const char*) {
    const Json* all = take(key);
    if (!all) return;
    if (!all->is_object()) throw Error("'" + path_ + key + "' is not a JSON object");
    values.clear();
    for (const auto& [name, json] : all->items()) {
      read(json, path_ + key + "." + name, values[name]);
    }
  }
  void rest(std::map<std::string, schema::JsonText>& values, const char*) {
    values.clear();
    for (const auto& [key, json] : json_.items()) {
      if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
      value_from_json(json, values[key]);
      known_.push_back(key);
    }
  }
  void finish() const {
    for (const auto& [key, value] : json_.items()) {
      if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
        throw Error("unknown key '" + path_ + key + "'");
      }
    }
  }

 private:
  /// What the key has; null where it is missing.
  const Json* take(const char* key) {
    known_.push_back(key);
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }
  template <class T>
  static void read(const Json& json, const std::string& path, T& value) {
    Reader inner(json, path + ".");
    fields(inner, value);
    inner.finish();
  }

  const Json& json_;
  std::string path_;
  std::vector<std::string> known_;
};

/// A section as JSON; with `unset`, with the sections that only a config that uses them has.
template <class T>
Json written(T section, bool unset) {  // visitors take fields by reference
  Writer writer(unset);
  fields(writer, section);
  writer.leave_out_defaults<T>();
  return writer.take();
}

/// Reads what the JSON has over the section. `path`: "model." for messages. Throws Error at an
/// unknown or ill-typed key.
template <class T>
void read(const Json& json, const std::string& path, T& section) {
  Reader reader(json, path);
  fields(reader, section);
  reader.finish();
}

}  // namespace forge::config::json_fields

#include "core/config/json.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/fields.h"

namespace forge::config {
namespace {

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

class Writer {
 public:
  template <class T>
  void field(const char* key, T& value, const char*, Limits = {}) {
    json_[key] = value_to_json(value);
  }
  template <class T>
  void section(const char* key, T& value, const char*) {
    Writer inner;
    fields(inner, value);
    json_[key] = std::move(inner.json_);
  }
  /// Left out where there are none, as in the files of runs that knew no such key.
  template <class T>
  void sections(const char* key, std::map<std::string, T>& values, const char*) {
    for (auto& [name, value] : values) {
      Writer inner;
      fields(inner, value);
      json_[key][name] = inner.take();
    }
  }
  Json take() { return std::move(json_); }

 private:
  Json json_ = Json::object();
};

template <class T>
void value_from_json(const Json& json, T& value) {
  if constexpr (std::is_enum_v<T>) {
    const auto& names = names_of(value);
    const auto text = json.get<std::string>();
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == text) {
        value = static_cast<T>(i);
        return;
      }
    }
    throw Error("'" + text + "' is not one of " + join(names, ", "));
  } else {
    json.get_to(value);
  }
}
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
    known_.push_back(key);
    const auto found = json_.find(key);
    if (found == json_.end()) return;
    try {
      value_from_json(*found, value);
    } catch (const std::exception& problem) {
      throw Error("'" + path_ + key + "': " + problem.what());
    }
  }
  template <class T>
  void section(const char* key, T& value, const char*) {
    known_.push_back(key);
    const auto found = json_.find(key);
    if (found == json_.end()) return;
    Reader inner(*found, path_ + key + ".");
    fields(inner, value);
    inner.finish();
  }
  template <class T>
  void sections(const char* key, std::map<std::string, T>& values, const char*) {
    known_.push_back(key);
    const auto found = json_.find(key);
    if (found == json_.end()) return;
    if (!found->is_object()) throw Error("'" + path_ + key + "' is not a JSON object");
    values.clear();
    for (const auto& [name, json] : found->items()) {
      Reader inner(json, path_ + key + "." + name + ".");
      fields(inner, values[name]);
      inner.finish();
    }
  }
  void finish() const {
    for (const auto& [key, value] : json_.items()) {
      if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
        throw Error("unknown key '" + path_ + key + "'", {}, did_you_mean(key, known_));
      }
    }
  }

 private:
  const Json& json_;
  std::string path_;
  std::vector<std::string> known_;
};

}  // namespace

Json to_json(const Experiment& experiment) {
  Experiment copy = experiment;  // visitors take fields by reference
  Writer writer;
  fields(writer, copy);
  return writer.take();
}

Experiment experiment_from_json(const Json& json) {
  Experiment experiment;
  Reader reader(json, "");
  fields(reader, experiment);
  reader.finish();
  return experiment;
}

}  // namespace forge::config

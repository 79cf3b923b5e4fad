#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"

/// Structs as JSON objects. A struct names its fields once, in a function template
///     template <class Visitor> void fields(Visitor& visit, Hello& hello);
/// that calls visit.field("key", hello.member) for a key that must be there and
/// visit.optional("key", hello.member) for one that keeps its default when it is missing.
/// JsonWriter and JsonReader are the two visitors. Enumerations bring names_of(Enum), the spelling
/// of each value in the order of its declaration.
namespace forge::worker {

template <class Struct>
nlohmann::json write_fields(Struct value);
template <class Struct>
Struct read_fields(const nlohmann::json& json, const std::string& context);

class JsonWriter {
 public:
  template <class T>
  void field(const char* key, const T& value) {
    json_[key] = encode(value);
  }
  template <class T>
  void optional(const char* key, const T& value) {
    field(key, value);
  }
  nlohmann::json take() { return std::move(json_); }

 private:
  template <class T>
  static nlohmann::json encode(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      return names_of(value)[static_cast<size_t>(value)];
    } else if constexpr (std::is_floating_point_v<T>) {
      // JSON has no word for these, and a loss that became nan is news, not an error.
      return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(shortest(value));
    } else if constexpr (std::is_constructible_v<nlohmann::json, const T&>) {
      return value;
    } else {
      return write_fields(value);
    }
  }
  template <class T>
  static nlohmann::json encode(const std::vector<T>& list) {
    nlohmann::json json = nlohmann::json::array();
    for (const T& item : list) json.push_back(encode(item));
    return json;
  }
  template <class T>
  static nlohmann::json encode(const std::map<std::string, T>& map) {
    nlohmann::json json = nlohmann::json::object();
    for (const auto& [key, value] : map) json[key] = encode(value);
    return json;
  }
  template <class T>
  static nlohmann::json encode(const std::optional<T>& value) {
    return value ? encode(*value) : nlohmann::json(nullptr);
  }

  nlohmann::json json_ = nlohmann::json::object();
};

/// Throws Error naming `context` and the key that is missing or ill-typed. Keys it is not asked for
/// are left alone: a newer writer may say more.
class JsonReader {
 public:
  JsonReader(const nlohmann::json& json, std::string context)
      : json_(json), context_(std::move(context)) {
    if (!json.is_object()) throw Error(context_ + " is not a JSON object");
  }

  template <class T>
  void field(const char* key, T& value) {
    const auto found = json_.find(key);
    if (found == json_.end()) throw Error(context_ + ": '" + key + "' is missing");
    decode(key, *found, value);
  }
  template <class T>
  void optional(const char* key, T& value) {
    const auto found = json_.find(key);
    if (found != json_.end()) decode(key, *found, value);
  }

 private:
  [[noreturn]] void refuse(const char* key,
                           const nlohmann::json& json,
                           const std::string& wanted,
                           const std::string& hint = "") const {
    const std::string text = json_text(json).substr(0, 80);
    throw Error(context_ + ": '" + key + "' should be " + wanted + ", not " + text, hint);
  }

  void decode(const char* key, const nlohmann::json& json, bool& value) const {
    if (!json.is_boolean()) refuse(key, json, "true or false");
    value = json.get<bool>();
  }
  void decode(const char* key, const nlohmann::json& json, std::string& value) const {
    if (!json.is_string()) refuse(key, json, "a string");
    value = json.get<std::string>();
  }
  void decode(const char* key, const nlohmann::json& json, double& value) const {
    if (json.is_number()) {
      value = json.get<double>();
    } else if (json == "nan") {
      value = std::numeric_limits<double>::quiet_NaN();
    } else if (json == "inf" || json == "-inf") {
      value = std::numeric_limits<double>::infinity() * (json == "inf" ? 1 : -1);
    } else {
      refuse(key, json, "a number");
    }
  }
  void decode(const char* key, const nlohmann::json& json, nlohmann::json& value) const {
    if (!json.is_object()) refuse(key, json, "an object");
    value = json;
  }
  template <class T>
  void decode(const char* key, const nlohmann::json& json, std::vector<T>& value) const {
    value.clear();
    if (!json.is_array()) refuse(key, json, "a list");
    for (const auto& item : json) decode(key, item, value.emplace_back());
  }
  template <class T>
  void decode(const char* key, const nlohmann::json& json, std::map<std::string, T>& value) const {
    if (!json.is_object()) refuse(key, json, "an object");
    value.clear();
    for (const auto& [name, item] : json.items()) decode(name.c_str(), item, value[name]);
  }
  template <class T>
  void decode(const char* key, const nlohmann::json& json, std::optional<T>& value) const {
    value.reset();
    if (!json.is_null()) decode(key, json, value.emplace());
  }
  /// The largest count: sums of a few stay within 64 bits.
  template <class T>
  static constexpr uint64_t largest() {
    constexpr auto exact = static_cast<uint64_t>(largest_exact_integer);
    constexpr auto own = static_cast<uint64_t>(std::numeric_limits<T>::max());
    return std::is_signed_v<T> && own > exact ? exact : own;
  }

  /// Every integer of ours is a count: a negative one is as wrong as a word.
  template <class T>
  void decode(const char* key, const nlohmann::json& json, T& value) const {
    if constexpr (std::is_integral_v<T>) {
      const bool fits = json.is_number_integer() &&
                        (json.is_number_unsigned() || json.get<int64_t>() >= 0) &&
                        json.get<uint64_t>() <= largest<T>();
      if (!fits) refuse(key, json, "a whole number from 0 to " + std::to_string(largest<T>()));
      value = json.get<T>();
    } else if constexpr (std::is_enum_v<T>) {
      std::string word;
      decode(key, json, word);
      const std::vector<std::string>& names = names_of(value);
      const auto found = std::find(names.begin(), names.end(), word);
      if (found == names.end()) {
        refuse(key, json, "one of " + join(names, ", "), did_you_mean(word, names));
      }
      value = static_cast<T>(found - names.begin());
    } else {
      value = read_fields<T>(json, context_ + ": '" + key + "'");
    }
  }

  const nlohmann::json& json_;
  std::string context_;
};

template <class Struct>
nlohmann::json write_fields(Struct value) {
  JsonWriter writer;
  fields(writer, value);
  return writer.take();
}

template <class Struct>
Struct read_fields(const nlohmann::json& json, const std::string& context) {
  Struct value;
  JsonReader reader(json, context);
  fields(reader, value);
  return value;
}

}  // namespace forge::worker

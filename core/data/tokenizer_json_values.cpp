#include "core/data/tokenizer_json_values.h"

#include "core/base/error.h"
#include "core/base/json_text.h"

namespace forge::data {

using nlohmann::json;

void refuse(const std::string& reason, const std::string& hint) { throw Error(reason, {}, hint); }

const json& member(const json& object, const char* key) {
  static const json null;
  if (!object.is_object()) return null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

std::string shown(const json& value) {
  return value.is_structured() ? "a " + std::string(value.type_name()) : json_text(value);
}

std::string text_of(const json& value, const std::string& what) {
  if (!value.is_string()) refuse(what + " is not a string");
  return value.get<std::string>();
}

bool flag_of(const json& value, bool absent, const std::string& what) {
  if (value.is_null()) return absent;
  if (!value.is_boolean()) refuse(what + " is " + shown(value) + ", not true or false");
  return value.get<bool>();
}

int32_t id_of(const json& value, const std::string& what, size_t limit) {
  if (!value.is_number_integer() || value < 0 || value >= static_cast<int64_t>(limit)) {
    refuse(what + " is not an id from 0 to " + std::to_string(limit - 1) + ": " + shown(value));
  }
  return value.get<int32_t>();
}

bool is_type(const json& value, const char* type) { return member(value, "type") == type; }

bool asks_nothing(const json& value) {
  return value.is_null() || value == false || value == 0 || value == "";
}

std::vector<const json*> steps_of(const json& value, const char* key, const std::string& what) {
  if (value.is_null()) return {};
  if (!is_type(value, "Sequence")) return {&value};
  std::vector<const json*> steps;
  for (const json& step : member(value, key)) {
    if (is_type(step, "Sequence")) refuse("its " + what + " has a Sequence within a Sequence");
    steps.push_back(&step);
  }
  return steps;
}

}  // namespace forge::data

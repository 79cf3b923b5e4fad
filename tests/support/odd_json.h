#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace forge::tests {

/// Places of objects, arrays and values in a JSON value, itself first.
inline std::vector<nlohmann::json::json_pointer> all_places(
    const nlohmann::json& value,
    const nlohmann::json::json_pointer& from = nlohmann::json::json_pointer()) {
  std::vector<nlohmann::json::json_pointer> places = {from};
  const auto add = [&](const nlohmann::json& child, const nlohmann::json::json_pointer& place) {
    const auto below = all_places(child, place);
    places.insert(places.end(), below.begin(), below.end());
  };
  if (value.is_object())
    for (const auto& [key, child] : value.items()) add(child, from / key);
  if (value.is_array())
    for (size_t i = 0; i < value.size(); ++i) add(value[i], from / i);
  return places;
}

/// Calls check(changed, words) with each of a value's places in turn holding something of another
/// kind: what a stranger may write.
inline void for_each_odd(
    const nlohmann::json& value,
    const std::function<void(const nlohmann::json&, const std::string&)>& check) {
  using Json = nlohmann::json;
  const std::vector<Json> odd = {
      nullptr, 5, -0.5, "x", true, Json::array({1}), {{"a", 1}}, {{"a", {{"weight", "x"}}}}};
  for (const Json::json_pointer& place : all_places(value)) {
    for (const Json& other : odd) {
      Json changed = value;
      changed[place] = other;
      check(changed, place.to_string() + " = " + other.dump());
    }
  }
}

}  // namespace forge::tests

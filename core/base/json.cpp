#include "core/base/json.h"

#include <string>

#include <nlohmann/json.hpp>

namespace forge {
namespace {

template <class Json>
std::string text_of(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string json_text(const nlohmann::json& value, int indent) { return text_of(value, indent); }

std::string json_text(const nlohmann::ordered_json& value, int indent) {
  return text_of(value, indent);
}

std::string plain_text(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : json_text(value);
}

nlohmann::json parse_json(std::string_view text) { return nlohmann::json::parse(text); }

nlohmann::json try_parse_json(std::string_view text) {
  return nlohmann::json::parse(text, nullptr, false);
}

std::string json_problem(const std::exception& problem) {
  const std::string text = problem.what();
  const size_t name_ends = text.find("] ");
  return text.rfind("[json.exception", 0) == 0 && name_ends != text.npos
             ? text.substr(name_ends + 2)
             : text;
}

const nlohmann::json* find_value(const nlohmann::json& object, std::string_view key) {
  const nlohmann::json* value = &object;
  while (true) {
    const size_t dot = key.find('.');
    const auto found = value->find(std::string(key.substr(0, dot)));  // end() where it is no object
    if (found == value->end()) return nullptr;
    value = &*found;
    if (dot == key.npos) return value;
    key.remove_prefix(dot + 1);
  }
}

}  // namespace forge

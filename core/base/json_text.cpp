#include "core/base/json_text.h"

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

}  // namespace forge

#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

/// nlohmann/json's writer and parser, compiled once: in a file of its own the one costs half a
/// second, the other two.
namespace forge {

/// The largest integer that is accepted: this and all below are doubles, so that every reader of
/// JSON has them exactly.
constexpr int64_t largest_exact_integer = int64_t{1} << 53;

/// On one line, or with `indent` spaces a level. Bytes that are no UTF-8 become U+FFFD.
std::string json_text(const nlohmann::json& value, int indent = -1);
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

/// A text as it stands, anything else as json_text writes it.
std::string plain_text(const nlohmann::json& value);

/// Throws nlohmann::json::parse_error.
nlohmann::json parse_json(std::string_view text);
/// is_discarded() where the text is no JSON.
nlohmann::json try_parse_json(std::string_view text);

/// What the library says is wrong, without the name that it gives the kind of problem:
/// "type must be number, but is string".
std::string json_problem(const std::exception& problem);

/// The value of nested objects at a dotted key such as "model.canon.set"; null where there is none.
const nlohmann::json* find_value(const nlohmann::json& object, std::string_view key);

}  // namespace forge

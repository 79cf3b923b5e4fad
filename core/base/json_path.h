#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace forge {

/// The value of nested objects at a dotted key such as "model.canon.set"; null where there is none.
const nlohmann::json* find_value(const nlohmann::json& object, std::string_view key);

}  // namespace forge

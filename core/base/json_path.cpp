#include "core/base/json_path.h"

#include <nlohmann/json.hpp>
#include <string>

namespace forge {

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

#pragma once

#include <string>

namespace forge::tests {

/// Whether `text` holds `part`. Catch's matcher for it has another name in version 3.
inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace forge::tests

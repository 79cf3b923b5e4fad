#pragma once

#include <string>

// Catch2 v2 (Debian 12) and v3 (Ubuntu 24.04) under one include. Which one it is says CMake, that
// found the library: headers of the other may lie on the include path as well.

#if FORGE_CATCH2_MAJOR >= 3
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif

namespace forge::tests {

/// Whether `text` holds `part`. Catch's matcher for it has another name in version 3.
inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace forge::tests

// Catch2 v2 (Debian 12) and v3 (Ubuntu 24.04) under one include. Which one it is says CMake, that
// found the library: headers of the other may lie on the include path as well.
#pragma once

#if FORGE_CATCH2_MAJOR >= 3
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif

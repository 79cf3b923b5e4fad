// Torch and Catch2 in one file. Torch first: its logging defines CHECK, and Catch2's must win.
#pragma once

#include "backends/libtorch/torch_precompiled.h"
#undef CHECK
#include "tests/support/catch.h"

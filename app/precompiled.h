// CLI11 costs four seconds a file.
#pragma once

#include <CLI/CLI.hpp>

#include "core/precompiled.h"

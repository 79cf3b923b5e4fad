#pragma once

#include "core/precompiled.h"
#include "tests/support/catch.h"

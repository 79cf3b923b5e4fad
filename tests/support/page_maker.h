#pragma once

#include <cstddef>
#include <string>

#include "core/results/page/page.h"

namespace forge::tests {

/// A noisy curve that falls from about 9 to about 1.5.
page::Curve falling_curve(size_t points, unsigned seed);

/// A page with `runs` runs of `points` points, three seeds a config, and one table of all configs.
/// `name` is in the names of all that a user names.
page::Page make_page(size_t runs, size_t points, const std::string& name = "canon");

}  // namespace forge::tests

#pragma once

#include <string>
#include <vector>

#include "core/results/tables/table_spec.h"

/// Table files.
namespace forge::tables {

/// Reads and checks a table file. `configs` are the names that a row may name. Throws Error at the
/// place of what is wrong.
TableSpec read_table(const std::string& path, const std::vector<std::string>& configs);

/// Reads a file such as projects/canon/tables/published.yaml. Throws Error at the wrong place.
Published read_published(const std::string& path);

}  // namespace forge::tables

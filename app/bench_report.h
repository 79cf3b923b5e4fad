#pragma once

#include <string>
#include <vector>

#include "core/benchmark/record.h"

namespace forge::app {

/// The measurements of one call as a table, with a line on what they were made on.
std::string bench_table(const std::vector<benchmark::Record>& records, bool colour);

/// Stored measurements, one a line.
std::string bench_list(const std::vector<benchmark::Record>& records, bool colour);

/// Operations beside their peers and the device's ceilings.
std::string operations_table(const benchmark::Record& record, bool colour);

/// "torch 1.13.1, …": of the libraries known by a version, not those known by a path.
std::string versions_text(const benchmark::Device& device);

}  // namespace forge::app

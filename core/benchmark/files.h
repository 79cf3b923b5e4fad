#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/benchmark/record.h"

namespace forge::benchmark {

/// The folder of a runs folder where measurements lie, one file of JSON each: the truth, of which
/// the store has an index.
std::filesystem::path benchmarks_dir(const std::filesystem::path& runs_dir);

/// Gives the record its id, from its call's time and its config, and writes its file, aside and
/// then renamed; another file is never replaced. Returns the path. Makes the folder where it is
/// missing.
std::filesystem::path write_record(const std::filesystem::path& runs_dir, Record& record);

/// Throws Error naming the file where it cannot be read.
Record read_record(const std::filesystem::path& file);

/// The files of all measurements, by name.
std::vector<std::filesystem::path> list_records(const std::filesystem::path& runs_dir);

}  // namespace forge::benchmark

#pragma once

#include <filesystem>
#include <string>

/// Files that a command writes where its user says: tables, reports, plans. One that is there
/// already may be a person's own.
namespace forge::manage {

/// Whether forge wrote a file of this kind: a document of tables, a report, tables in LaTeX, CSV or
/// JSON, metrics, or a plan. It is known by what stands at its beginning or its end, so also by
/// files of older versions. An empty file counts as written: nothing is lost.
bool is_written_by_forge(const std::filesystem::path& file);

/// Throws Error where `file` is a file that forge did not write, with `how` as the hint. Devices
/// and pipes are written to and never replaced.
void require_replaceable(const std::filesystem::path& file, const std::string& how);

}  // namespace forge::manage

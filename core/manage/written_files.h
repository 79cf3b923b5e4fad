#pragma once

#include <filesystem>
#include <string>

/// Files that a command writes where its user says: tables, reports, plans. One that is there
/// already may be a person's own.
namespace forge::manage {

/// Whether the file is as forge wrote it: the hash that it has of itself is right (own_hash.h), or,
/// of CSV, which has no place for one, it has the header of a table or of metrics, and all lines
/// have as many fields and end as forge ends them, or it holds the logits of `forge logits` alone.
/// An empty file counts, too: nothing is lost. It does not in a run's folder, whose files are the
/// run's.
bool is_as_written(const std::filesystem::path& file);

/// Throws Error where `file` is not as forge wrote it, or is a link to a file that is not there,
/// with `how` as the hint. Devices and pipes are written to and never replaced.
void require_replaceable(const std::filesystem::path& file, const std::string& how);

/// The same for a text that has no mark of forge's: a file that holds something is never replaced.
void require_new(const std::filesystem::path& file, const std::string& how);

}  // namespace forge::manage

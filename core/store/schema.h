#pragma once

#include <string>
#include <vector>

namespace SQLite {
class Database;
}

namespace forge::store {

/// schema_steps()[i] is the SQL that takes a database of version i to version i + 1; version 0 is
/// an empty file. A step is never edited once it has been released.
const std::vector<std::string>& schema_steps();

/// Version that this program reads and writes.
int schema_version();

/// Brings a database to version steps.size() in one transaction. Throws Error, and changes nothing,
/// when the database is newer than that or is no results store at all.
void bring_up_to_date(SQLite::Database& database, const std::vector<std::string>& steps);

}  // namespace forge::store

#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <filesystem>
#include <memory>

#include "core/base/error.h"

/// Private to core/store: the one header that shows SQLiteCpp.
namespace forge::store {

/// Opens or creates the store's database: write-ahead log, foreign keys, busy timeout, newest
/// schema. Throws Error where it cannot be opened, is newer than the program or no store.
std::unique_ptr<SQLite::Database> open_database(const std::filesystem::path& path);

/// Puts the finished database `built` in the place of `path`. Connections that are open on the old
/// one keep it until they close.
void replace_database(const std::filesystem::path& built, const std::filesystem::path& path);

/// Removes a database with the files that SQLite keeps beside it.
void remove_database(const std::filesystem::path& path);

/// What SQLite complained of, as an Error that names the store and says what to do.
Error store_error(const std::filesystem::path& path, const SQLite::Exception& problem);

/// Runs `action` and turns what SQLite throws into store_error.
template <class Action>
auto guarded(const std::filesystem::path& path, Action&& action) -> decltype(action()) {
  try {
    return action();
  } catch (const SQLite::Exception& problem) {
    throw store_error(path, problem);
  }
}

}  // namespace forge::store

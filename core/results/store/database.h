#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <SQLiteCpp/SQLiteCpp.h>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/results/store/run_summary.h"

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

/// Private to core/store: moving values between statements and structs. NaN is NULL in a column.
namespace forge::store {

/// Binds the parameters of a statement one after the other.
class Binder {
 public:
  explicit Binder(SQLite::Statement& statement) : statement_(statement) {}

  /// The text must stay until the statement has run.
  void value(const std::string& text) { statement_.bindNoCopy(++index_, text); }
  void value(std::string&&) = delete;
  void value(int64_t number) { statement_.bind(++index_, number); }
  void value(double number) {
    if (std::isnan(number)) {
      statement_.bind(++index_);
    } else {
      statement_.bind(++index_, number);
    }
  }
  void value(const std::vector<std::string>& words) {
    statement_.bind(++index_, join(words, ","));  // copied
  }
  void value(run::RunState status) { statement_.bind(++index_, run::name_of(status)); }
  template <class T>
  void value(const std::optional<T>& number) {
    if (number) {
      value(*number);
    } else {
      statement_.bind(++index_);
    }
  }
  template <class T>
  void column(const char*, const T& field) {
    value(field);
  }

 private:
  SQLite::Statement& statement_;
  int index_ = 0;
};

/// Reads the columns of a statement's row one after the other.
class RowReader {
 public:
  explicit RowReader(SQLite::Statement& statement) : statement_(statement) {}

  void value(std::string& text) { text = statement_.getColumn(index_++).getString(); }
  void value(int64_t& number) { number = statement_.getColumn(index_++).getInt64(); }
  void value(double& number) {
    const SQLite::Column column = statement_.getColumn(index_++);
    number = column.isNull() ? std::nan("") : column.getDouble();
  }
  void value(std::vector<std::string>& words) {
    const std::string text = statement_.getColumn(index_++).getString();
    words = text.empty() ? std::vector<std::string>() : split(text, ',');
  }
  void value(run::RunState& status) {
    status = status_from_name(statement_.getColumn(index_++).getString());
  }
  template <class T>
  void value(std::optional<T>& number) {
    number.reset();
    if (statement_.isColumnNull(index_)) {
      ++index_;
    } else {
      value(number.emplace());
    }
  }
  template <class T>
  void column(const char*, T& field) {
    value(field);
  }

 private:
  SQLite::Statement& statement_;
  int index_ = 0;
};

/// Collects the names of the columns.
struct ColumnNames {
  std::vector<std::string> names;
  template <class T>
  void column(const char* name, const T&) {
    names.emplace_back(name);
  }
};

inline std::vector<std::string> run_column_names() {
  ColumnNames collector;
  const RunSummary any;
  columns(collector, any);
  return std::move(collector.names);
}

inline RunSummary read_run(SQLite::Statement& statement) {
  RunSummary run;
  RowReader reader(statement);
  columns(reader, run);
  // An evaluation was made and its loss is NULL: it was not a number.
  if (run.eval_step && !run.eval_loss) run.eval_loss = std::nan("");
  return run;
}

}  // namespace forge::store

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

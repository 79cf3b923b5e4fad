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

namespace forge::store {

/// A number that changes with the schema: PRAGMA user_version of a store that this program made.
int schema_version();

// Private to the store: the one header that shows SQLiteCpp. Values move between statements and
// structs; NaN is NULL in a column.

/// Changes when a file changes. All zero if there is no file.
struct FileStamp {
  int64_t size = 0;
  int64_t modified_ns = 0;
  int64_t inode = 0;
};
bool operator==(const FileStamp& a, const FileStamp& b);
inline bool operator!=(const FileStamp& a, const FileStamp& b) { return !(a == b); }
FileStamp stamp_of(const std::filesystem::path& file);

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
  void value(const FileStamp& stamp) {
    value(stamp.size);
    value(stamp.modified_ns);
    value(stamp.inode);
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
  void value(FileStamp& stamp) {
    value(stamp.size);
    value(stamp.modified_ns);
    value(stamp.inode);
  }
  template <class T>
  void column(const char*, T& field) {
    value(field);
  }

 private:
  SQLite::Statement& statement_;
  int index_ = 0;
};

inline RunSummary read_run(SQLite::Statement& statement) {
  RunSummary run;
  RowReader reader(statement);
  columns(reader, run);
  return run;
}

/// The conditions of a SELECT, all of which must hold.
class WhereClause {
 public:
  void add(const std::string& condition) { conditions_.push_back(condition); }
  /// An empty value or list asks nothing.
  void equal(const std::string& column, const std::string& value) {
    if (!value.empty()) one_of(column, {value});
  }
  void one_of(const std::string& column, const std::vector<std::string>& values) {
    if (values.empty()) return;
    const std::vector<std::string> marks(values.size(), "?");
    conditions_.push_back(column + " IN (" + join(marks, ", ") + ")");
    values_.insert(values_.end(), values.begin(), values.end());
  }

  /// " WHERE …", "" without conditions.
  std::string sql() const {
    return conditions_.empty() ? "" : " WHERE " + join(conditions_, " AND ");
  }
  /// Must outlive the execution of the statement.
  void bind(SQLite::Statement& statement) const {
    Binder binder(statement);
    for (const std::string& value : values_) binder.value(value);
  }

 private:
  std::vector<std::string> conditions_;
  std::vector<std::string> values_;
};

/// Opens or creates the store's database: write-ahead log, busy timeout, the program's schema. One
/// of another schema is emptied, and the next synchronisation rebuilds it. Throws Error where it
/// cannot be opened or is no results store, and where a rollback journal lies beside it, which may
/// come from somebody else and which SQLite would obey.
std::unique_ptr<SQLite::Database> open_database(const std::filesystem::path& path);

/// The name of SQLite's way to files (VFS) that stores are opened by: the system's own, but that no
/// journal makes SQLite read and remove another file which it names (a "super-journal").
const char* guarded_files();

constexpr const char* reindex_hint =
    "'forge store reindex' builds it anew from the run folders; no result is lost";

/// Puts the finished database `built` in the place of `path`. Connections that are open on the old
/// one keep it until they close.
void replace_database(const std::filesystem::path& built, const std::filesystem::path& path);

/// SQLite's message as an Error that names the store and says what to do.
Error store_error(const std::filesystem::path& path, const SQLite::Exception& problem);

/// Runs `action` and turns what SQLite throws into store_error.
template <class Action>
auto with_store_errors(const std::filesystem::path& path, Action&& action) -> decltype(action()) {
  try {
    return action();
  } catch (const SQLite::Exception& problem) {
    throw store_error(path, problem);
  }
}

}  // namespace forge::store

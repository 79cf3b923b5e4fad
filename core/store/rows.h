#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/store/run_summary.h"

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

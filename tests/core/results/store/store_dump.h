#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <filesystem>
#include <string>

namespace forge::tests {

/// Every row of every table of a store as text, in an order that does not depend on its history.
inline std::string dump_store(const std::filesystem::path& path) {
  const SQLite::Database database(path.string(), SQLite::OPEN_READWRITE);
  std::string dump;
  for (const char* table : {"runs",
                            "sources",
                            "configs",
                            "environments",
                            "train_metrics",
                            "evaluations",
                            "scores",
                            "benchmarks"}) {
    dump += std::string("== ") + table + "\n";
    SQLite::Statement rows(database, std::string("SELECT * FROM ") + table + " ORDER BY 1, 2");
    while (rows.executeStep()) {
      for (int i = 0; i < rows.getColumnCount(); ++i) dump += rows.getColumn(i).getString() + "|";
      dump += "\n";
    }
  }
  return dump;
}

inline int count_rows(const std::filesystem::path& path, const std::string& table) {
  const SQLite::Database database(path.string(), SQLite::OPEN_READWRITE);
  SQLite::Statement statement(database, "SELECT count(*) FROM " + table);
  statement.executeStep();
  return statement.getColumn(0).getInt();
}

}  // namespace forge::tests

#include "core/store/benchmark_index.h"

#include <map>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/json_text.h"
#include "core/base/text.h"
#include "core/benchmark/files.h"
#include "core/store/ingest.h"
#include "core/store/rows.h"

namespace forge::store {
namespace {

std::map<std::string, FileStamp> known_files(SQLite::Database& database) {
  SQLite::Statement statement(database,
                              "SELECT id, file_size, file_modified_ns, file_inode FROM benchmarks");
  std::map<std::string, FileStamp> known;
  while (statement.executeStep()) {
    std::string id;
    RowReader row(statement);
    row.value(id);
    FileStamp& stamp = known[id];
    row.value(stamp.size);
    row.value(stamp.modified_ns);
    row.value(stamp.inode);
  }
  return known;
}

void insert(SQLite::Database& database, const benchmark::Record& record, const FileStamp& stamp) {
  SQLite::Statement statement(
      database,
      "INSERT OR REPLACE INTO benchmarks (id, kind, call, created, project, config, device_type, "
      "device_name, threads, precision, tokens_per_second, spread, record, file_size, "
      "file_modified_ns, file_inode) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  const bool trains = record.kind == benchmark::Kind::training;
  const auto of_training = [&](double value) {
    return trains ? std::optional<double>(value) : std::nullopt;
  };
  const std::string text = protocol::to_line(benchmark::to_json(record));
  Binder row(statement);
  row.value(record.id);
  row.value(benchmark::names_of(record.kind)[static_cast<size_t>(record.kind)]);
  row.value(record.call.id);
  row.value(record.call.created);
  row.value(record.project);
  row.value(record.config);
  row.value(record.device.type);
  row.value(record.device.name);
  row.value(int64_t{record.device.threads});
  row.value(record.precision);
  row.value(of_training(record.tokens_per_second));
  row.value(of_training(record.spread));
  row.value(text);
  row.value(stamp.size);
  row.value(stamp.modified_ns);
  row.value(stamp.inode);
  statement.exec();
}

void remove(SQLite::Database& database, const std::string& id) {
  SQLite::Statement statement(database, "DELETE FROM benchmarks WHERE id = ?");
  statement.bind(1, id);
  statement.exec();
}

struct ChangedFile {
  fs::path path;
  FileStamp stamp;
};

}  // namespace

void sync_benchmarks(SQLite::Database& database, const fs::path& runs_dir, SyncReport& report) {
  std::map<std::string, FileStamp> known = known_files(database);
  std::vector<ChangedFile> changed;
  for (const fs::path& path : benchmark::list_records(runs_dir)) {
    const FileStamp stamp = stamp_of(path);
    const auto found = known.find(path.stem().string());
    const bool is_same = found != known.end() && found->second == stamp;
    if (found != known.end()) known.erase(found);
    if (!is_same) changed.push_back({path, stamp});
  }
  if (changed.empty() && known.empty()) return;
  SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
  for (const auto& [id, stamp] : known) remove(database, id);
  for (const ChangedFile& file : changed) {
    try {
      insert(database, benchmark::read_record(file.path), file.stamp);
      ++report.benchmarks;
    } catch (const Error& problem) {
      remove(database, file.path.stem().string());
      report.warnings.push_back(problem.message() + "; it is left out");
    }
  }
  transaction.commit();
}

std::vector<benchmark::Record> select_benchmarks(SQLite::Database& database,
                                                 const BenchmarkFilter& filter) {
  std::vector<std::string> conditions;
  std::vector<std::string> values;
  if (!filter.configs.empty()) {
    conditions.push_back("config IN (" +
                         join(std::vector<std::string>(filter.configs.size(), "?"), ", ") + ")");
    values = filter.configs;
  }
  if (!filter.project.empty()) {
    conditions.push_back("project = ?");
    values.push_back(filter.project);
  }
  if (filter.kind) {
    conditions.push_back("kind = ?");
    values.push_back(benchmark::names_of(*filter.kind)[static_cast<size_t>(*filter.kind)]);
  }
  const std::string where = conditions.empty() ? "" : " WHERE " + join(conditions, " AND ");
  SQLite::Statement statement(
      database, "SELECT record FROM benchmarks" + where + " ORDER BY created DESC, id");
  Binder binder(statement);
  for (const std::string& value : values) binder.value(value);
  std::vector<benchmark::Record> records;
  while (statement.executeStep()) {
    records.push_back(benchmark::record_from_json(parse_json(statement.getColumn(0).getString())));
  }
  return records;
}

}  // namespace forge::store

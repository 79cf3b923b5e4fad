#include "core/benchmark/files.h"

#include <algorithm>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/json_text.h"
#include "core/base/text.h"

namespace forge::benchmark {
namespace {

/// A config of a folder below templates/configs has a slash in its name.
std::string as_file_name(std::string name) {
  std::replace(name.begin(), name.end(), '/', '-');
  return name;
}

}  // namespace

fs::path benchmarks_dir(const fs::path& runs_dir) { return runs_dir / "benchmarks"; }

fs::path write_record(const fs::path& runs_dir, Record& record) {
  const fs::path folder = benchmarks_dir(runs_dir);
  make_directories(folder);
  const FileLock lock = FileLock::acquire(folder / ".lock");  // no two take one name
  const std::string what = record.kind == Kind::operations ? "ops" : record.config;
  const std::string name = compact_timestamp(record.call.created) + "-" + as_file_name(what);
  record.id = name;
  for (int number = 2; fs::exists(folder / (record.id + ".json")); ++number) {
    record.id = name + "-" + std::to_string(number);
  }
  const fs::path file = folder / (record.id + ".json");
  write_file_atomic(file, json_text(to_json(record), 2) + "\n");
  return file;
}

Record read_record(const fs::path& file) {
  const auto refuse = [&](const std::string& why) -> Error {
    return Error("'" + file.string() + "' is no benchmark: " + why, {}, "", ExitCode::failed);
  };
  try {
    Record record = record_from_json(parse_json(read_file(file)));
    if (record.id != file.stem().string()) throw Error("it calls itself '" + record.id + "'");
    return record;
  } catch (const nlohmann::json::exception& problem) {
    throw refuse(problem.what());
  } catch (const Error& error) {
    throw refuse(error.message());
  }
}

std::vector<fs::path> list_records(const fs::path& runs_dir) {
  std::vector<fs::path> files;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(benchmarks_dir(runs_dir), missing)) {
    const fs::path& path = entry.path();
    if (path.extension() == ".json" && !starts_with(path.filename().string(), ".")) {
      files.push_back(path);
    }
  }
  std::sort(files.begin(), files.end(), [](const fs::path& a, const fs::path& b) {
    return a.stem().string() < b.stem().string();
  });
  return files;
}

}  // namespace forge::benchmark

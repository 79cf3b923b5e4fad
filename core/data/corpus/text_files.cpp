#include "core/data/corpus/text_files.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/config/check.h"
#include "core/data/corpus/byte_reader.h"

namespace forge::data {
namespace {

using config::DocumentKind;

std::string expected(const DocumentRule& rule) {
  return rule.kind == DocumentKind::record ? "a file of JSON lines or a folder of .jsonl files"
                                           : "a text file or a folder of .txt files";
}

bool is_wanted(const fs::path& path, const DocumentRule& rule) {
  if (rule.kind == DocumentKind::record) return config::is_json_lines(path);
  return uncompressed_name(path).extension() == ".txt";
}

[[noreturn]] void refuse_parquet(const fs::path& path) {
  throw Error("'" + shown_path(path) + "' is parquet, which forge does not read",
              "write it as JSON lines once, e.g. with Python's pandas:\n"
              "  pandas.read_parquet('in.parquet').to_json('out.jsonl.gz', orient='records', "
              "lines=True)\n"
              "and set data.source: jsonl, data.path: out.jsonl.gz");
}

/// Throws Error where a text's name is there, and the text is not: a run would be trained without
/// it.
void require_text(const fs::directory_entry& entry) {
  std::error_code error;
  const fs::file_status status = entry.status(error);
  if (fs::is_regular_file(status) || fs::is_directory(status)) return;
  const std::string name = "'" + shown_path(entry.path()) + "'";
  if (status.type() == fs::file_type::not_found && entry.is_symlink(error)) {
    throw Error("the link " + name + " leads to '" +
                    shown_path(fs::read_symlink(entry.path(), error)) + "', which is not there",
                "bring the file back, or remove the link");
  }
  if (status.type() == fs::file_type::none) throw system_error("read " + name, error.value());
  if (status.type() == fs::file_type::not_found) return;  // removed since the folder was read
  throw Error(name + " is no file that can be read as text", "remove it from the folder");
}

std::vector<fs::path> files_of_folder(const fs::path& folder, const DocumentRule& rule) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error) throw system_error("read the folder '" + shown_path(folder) + "'", error.value());
  std::vector<fs::path> files;
  fs::path parquet;
  for (const fs::directory_entry& entry : entries) {
    if (is_wanted(entry.path(), rule)) require_text(entry);
    if (!entry.is_regular_file(error)) continue;
    if (is_wanted(entry.path(), rule)) files.push_back(entry.path());
    if (entry.path().extension() == ".parquet") parquet = entry.path();
  }
  if (files.empty() && !parquet.empty()) refuse_parquet(parquet);
  if (files.empty()) {
    const bool records = rule.kind == DocumentKind::record;
    throw Error("the folder '" + shown_path(folder) + "' holds no " +
                    (records ? ".jsonl" : ".txt") + " files",
                "data.path names " + expected(rule) + ", which may be compressed (.gz, .zst)");
  }
  std::sort(files.begin(), files.end(), [](const fs::path& a, const fs::path& b) {
    return a.native() < b.native();
  });
  return files;
}

}  // namespace

DocumentRule document_rule(const config::DataConfig& config) {
  const bool records = config.source == "jsonl";
  return {records ? DocumentKind::record : config.documents, config.separator, config.field};
}

int64_t TextFiles::bytes() const { return bytes_before(end()); }

int64_t TextFiles::bytes_before(TextPosition position) const {
  int64_t sum = position.offset;
  for (size_t i = 0; i < static_cast<size_t>(position.file); ++i) sum += sizes[i];
  return sum;
}

TextPosition TextFiles::position_at(int64_t bytes) const {
  TextPosition position;
  for (const int64_t size : sizes) {
    if (bytes < size) break;
    bytes -= size;
    ++position.file;
  }
  position.offset = position == end() ? 0 : bytes;
  return position;
}

std::vector<fs::path> list_text_files(const fs::path& path, const DocumentRule& rule) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    throw Error(
        "there is no file or folder '" + shown_path(path) + "'",
        "data.path names " + expected(rule) +
            "; a run whose text was moved goes on with 'forge run CONFIG --set data.path=…'");
  }
  if (fs::is_directory(status)) return files_of_folder(path, rule);
  if (!fs::is_regular_file(status)) {
    throw Error("'" + shown_path(path) + "' is neither a file nor a folder");
  }
  if (path.extension() == ".parquet") refuse_parquet(path);
  return {path};
}

TextFiles find_text_files(const fs::path& path, const DocumentRule& rule) {
  TextFiles files;
  files.rule = rule;
  files.paths = list_text_files(path, rule);
  for (const fs::path& file : files.paths) files.sizes.push_back(size_of_content(file));
  return files;
}

}  // namespace forge::data

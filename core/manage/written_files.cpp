#include "core/manage/written_files.h"

#include <algorithm>
#include <fstream>
#include <vector>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/own_hash.h"
#include "core/base/text.h"
#include "core/model/weights/safetensors.h"
#include "core/results/tables/run_metrics.h"
#include "core/run/run_folder.h"

namespace forge::manage {
namespace {

/// What is read of either end of a file to find a hash: enough for all formats, also of a file of
/// many gigabytes.
constexpr std::streamoff reach = 1 << 16;

/// Its beginning and, where that is not all, its end.
std::string ends_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  stream.seekg(0, std::ios::end);
  const std::streamoff size = stream.tellg();
  std::string ends;
  const auto add = [&](std::streamoff from, std::streamoff bytes) {
    std::string text(static_cast<size_t>(bytes), '\0');
    stream.seekg(from);
    stream.read(text.data(), bytes);
    ends += text;
  };
  if (!stream || size <= 0) return ends;
  add(0, std::min(size, reach));
  if (size > reach) add(std::max(reach, size - reach), std::min(reach, size - reach));
  return stream ? ends : "";
}

bool begins_as_csv(const std::string& text) {
  const std::string header = text.substr(0, text.find('\n'));
  return header + "\n" == tables::metrics_csv_header() ||
         (starts_with(header, "config,name,positions,") &&
          header.find(",run_id,") != std::string::npos);
}

/// Whether all lines end as forge ends them and have the fields of the first. CSV has no place for
/// a hash.
bool has_lines_of_csv(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::vector<char> piece(reach);
  size_t in_header = 0, fields = 1;
  char before = 0;
  bool is_quoted = false;
  while (stream.read(piece.data(), reach) || stream.gcount() > 0) {
    for (std::streamsize i = 0; i < stream.gcount(); ++i) {
      const char c = piece[size_t(i)];
      if (c == '"') is_quoted = !is_quoted;
      if (c == ',' && !is_quoted) ++fields;
      if (c == '\n' && !is_quoted) {
        if (in_header == 0) in_header = fields;
        if (before != '\r' || fields != in_header) return false;
        fields = 1;
      }
      before = c;
    }
  }
  return before == '\n';
}

/// Whether it holds the logits of `forge logits`, and nothing else.
bool holds_logits(const fs::path& file) {
  try {
    const weights::SafetensorsFile contents(file);
    const auto& tensors = contents.tensors();
    return tensors.size() == 2 && tensors.count("input_ids") == 1 && tensors.count("logits") == 1;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

bool is_as_written(const fs::path& file) {
  std::error_code unknown;
  if (fs::file_size(file, unknown) == 0 && !unknown)
    return !path_exists(run::RunFolder(fs::absolute(file).parent_path()).record_file());
  const std::string ends = ends_of(file);
  if (begins_as_csv(ends)) return has_lines_of_csv(file);
  if (holds_logits(file)) return true;
  return ends.find(own_hash_name) != std::string::npos && has_own_hash(read_file(file));
}

namespace {

/// Throws Error where a link stands in the place of a file that holds nothing: a folder may bring
/// it with it, and it leads to any file of this user's. Returns whether there is a file that holds
/// something.
bool would_be_lost(const fs::path& file, const std::string& how) {
  const std::string path = file.string();
  if (starts_with(path, "/dev/") || starts_with(path, "/proc/")) return false;
  std::error_code unknown;
  const bool is_missing = !path_exists(file);
  const bool is_empty = !is_missing && fs::file_size(file, unknown) == 0 && !unknown;
  if (fs::is_symlink(file, unknown) && (is_missing || is_empty))
    throw Error("'" + path + "' is a link to " +
                    (is_missing ? "a file that is not there" : "an empty file") +
                    ": nothing is written to it",
                "remove the link, or " + how,
                ExitCode::usage);
  return is_file(file);
}

}  // namespace

void require_replaceable(const fs::path& file, const std::string& how) {
  if (!would_be_lost(file, how) || is_as_written(file)) return;
  throw Error(
      "'" + file.string() + "' was not written by forge, or was edited since: it is not replaced",
      how,
      ExitCode::usage);
}

void require_new(const fs::path& file, const std::string& how) {
  if (!would_be_lost(file, how)) return;
  std::error_code unknown;
  if (fs::file_size(file, unknown) == 0 && is_as_written(file)) return;
  throw Error("'" + file.string() + "' exists already: it is not replaced", how, ExitCode::usage);
}

}  // namespace forge::manage

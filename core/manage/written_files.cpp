#include "core/manage/written_files.h"

#include <algorithm>
#include <fstream>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/results/tables/run_metrics.h"

namespace forge::manage {
namespace {

/// What is read of either end of a file: enough for all marks, also of a file of many gigabytes.
constexpr std::streamoff mark_reach = 1 << 16;

struct Ends {
  std::string beginning;
  std::string end;
};

Ends read_ends(const fs::path& file) {
  Ends ends;
  std::ifstream stream(file, std::ios::binary);
  stream.seekg(0, std::ios::end);
  const std::streamoff size = stream.tellg();
  const auto read = [&](std::streamoff from) {
    std::string text(static_cast<size_t>(std::min(size, mark_reach)), '\0');
    stream.seekg(from);
    stream.read(text.data(), static_cast<std::streamsize>(text.size()));
    return text;
  };
  if (!stream || size <= 0) return ends;
  ends.beginning = read(0);
  ends.end = read(size - std::min(size, mark_reach));
  return stream ? ends : Ends();
}

bool has_text(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

bool is_marked_json(std::string beginning) {
  beginning.erase(
      std::remove_if(
          beginning.begin(), beginning.end(), [](char c) { return c == ' ' || c == '\n'; }),
      beginning.end());
  const bool is_table =
      starts_with(beginning, "{\"table\":") || starts_with(beginning, "[{\"table\":");
  if (is_table) return has_text(beginning, "\"baseline\":");
  return starts_with(beginning, "{\"") && has_text(beginning, "\"forge_plan\":");
}

bool is_marked_csv(const std::string& beginning) {
  const std::string header = beginning.substr(0, beginning.find('\n'));
  if (header + "\n" == tables::metrics_csv_header()) return true;
  return starts_with(header, "config,name,positions,") && has_text(header, ",run_id,");
}

}  // namespace

bool is_written_by_forge(const fs::path& file) {
  std::error_code unknown;
  if (fs::file_size(file, unknown) == 0 && !unknown) return true;
  const auto [beginning, end] = read_ends(file);
  const bool is_html = starts_with(beginning, "<!DOCTYPE html>");
  return starts_with(beginning, "% Written by 'forge export") || is_marked_csv(beginning) ||
         is_marked_json(beginning) ||
         (is_html && has_text(beginning, "<meta name=\"generator\" content=\"forge\">")) ||
         ends_with(std::string(trim(end)), "\nforge export-markdown\n```");
}

void require_replaceable(const fs::path& file, const std::string& how) {
  const std::string path = file.string();
  if (!is_file(file) || starts_with(path, "/dev/") || starts_with(path, "/proc/")) return;
  if (is_written_by_forge(file)) return;
  throw Error("'" + path + "' was not written by forge: it is not replaced", how, ExitCode::usage);
}

}  // namespace forge::manage

#include "core/base/json_file.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"

namespace forge {

void require_shallow_json(std::string_view text) {
  constexpr int max_depth = 100;
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char byte = text[i];
    if (in_string) {
      if (byte == '\\') ++i;
      if (byte == '"') in_string = false;
    } else if (byte == '"') {
      in_string = true;
    } else if (byte == '{' || byte == '[') {
      if (++depth > max_depth)
        throw Error("its JSON is nested more than " + std::to_string(max_depth) + " deep");
    } else if (byte == '}' || byte == ']') {
      --depth;
    }
  }
}

std::string read_file_within(const std::filesystem::path& file, uintmax_t max_bytes) {
  std::error_code unreadable;  // read_file says why
  const uintmax_t bytes = std::filesystem::file_size(file, unreadable);
  if (!unreadable && bytes > max_bytes)
    throw Error("'" + shown_path(file) + "' is too large: it has " + human_bytes(double(bytes)) +
                    ", at most " + human_bytes(double(max_bytes)) + " are read",
                ExitCode::failed);
  return read_file(file);
}

nlohmann::json read_json_file(const std::filesystem::path& file, uintmax_t max_bytes) {
  const std::string text = read_file_within(file, max_bytes);
  try {
    require_shallow_json(text);
  } catch (const Error& problem) {
    throw Error("'" + shown_path(file) + "' cannot be read: " + problem.message(),
                ExitCode::failed);
  }
  return try_parse_json(text);
}

}  // namespace forge

#include "core/base/json_file.h"

#include <set>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"

namespace forge {

namespace {

/// How many members the objects of a text have. Throws Error where it is nested too deeply. Before
/// the parser, which would follow any depth; a callback in it takes as long again as the parsing.
size_t count_members(std::string_view text, int max_depth) {
  size_t members = 0;
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
    } else if (byte == ':') {
      ++members;
    }
  }
  return members;
}

size_t count_members(const nlohmann::json& json) {
  if (!json.is_structured()) return 0;
  size_t members = json.is_object() ? json.size() : 0;
  for (const nlohmann::json& value : json) members += count_members(value);
  return members;
}

/// The first key that an object of a text has twice.
std::string repeated_key(std::string_view text) {
  using Event = nlohmann::json::parse_event_t;
  std::vector<std::set<std::string>> objects;  // that are open, with their keys
  std::string repeated;
  const auto look = [&](int, Event event, nlohmann::json& parsed) {
    if (event == Event::object_start) objects.emplace_back();
    if (event == Event::object_end) objects.pop_back();
    if (event == Event::key && !objects.back().insert(parsed.get<std::string>()).second &&
        repeated.empty())
      repeated = parsed.get<std::string>();
    return true;
  };
  [[maybe_unused]] const auto again = nlohmann::json::parse(text, look);
  return repeated;
}

}  // namespace

void require_shallow_json(std::string_view text, int max_depth) { count_members(text, max_depth); }

nlohmann::json read_json_text(std::string_view text, int max_depth) {
  const size_t members = count_members(text, max_depth);
  nlohmann::json json = try_parse_json(text);
  if (!json.is_discarded() && count_members(json) != members)
    throw Error("its JSON has the key '" + repeated_key(text).substr(0, 80) + "' twice",
                "keep one of the two");
  return json;
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
    return read_json_text(text);
  } catch (const Error& problem) {
    throw Error("'" + shown_path(file) + "' cannot be read: " + problem.message(),
                problem.hint(),
                ExitCode::failed)
        .with_cause(problem.cause());
  }
}

}  // namespace forge

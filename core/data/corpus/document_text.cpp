#include "core/data/corpus/document_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/json_text.h"
#include "core/base/text.h"

namespace forge::data {
namespace {

using Json = nlohmann::json;

/// Name and line of the record. It is found by reading again up to it, for only a mistake needs it.
std::string place_of(const TextFiles& files, const TextChunk& chunk, size_t index) {
  RecordReader reader(files, chunk.begin, chunk.end);
  std::string_view record;
  TextPosition position = chunk.begin;
  for (size_t i = 0; i <= index; ++i) {
    reader.next(record);
    position = reader.position();
  }
  // The position lies behind the newline of the record, or at the end of the file.
  const std::filesystem::path& path = files.paths[static_cast<size_t>(position.file)];
  const auto bytes = open_bytes(path);
  std::string buffer(size_t{1} << 20, '\0');
  int64_t left = std::max<int64_t>(0, position.offset - 1);
  int64_t line = 1;
  while (left > 0) {
    const size_t wanted = static_cast<size_t>(std::min<int64_t>(left, int64_t(buffer.size())));
    const size_t got = bytes->read(buffer.data(), wanted);
    if (got == 0) break;
    line += std::count(buffer.data(), buffer.data() + got, '\n');
    left -= static_cast<int64_t>(got);
  }
  return shown_path(path) + ":" + std::to_string(line);
}

std::string beginning_of(std::string_view text) {
  constexpr size_t shown = 60;
  return text.size() <= shown ? std::string(text) : std::string(text.substr(0, shown)) + "…";
}

std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

}  // namespace

std::string document_text(const TextFiles& files, const TextChunk& chunk, size_t index) {
  const TextChunk::Part& part = chunk.parts[index];
  const std::string_view text =
      std::string_view(chunk.text).substr(part.begin, part.end - part.begin);
  if (files.rule.kind != config::DocumentKind::record) return std::string(text);
  const Json record = try_parse_json(text);
  const std::string& field = files.rule.field;
  if (!record.is_object()) {
    throw Error(place_of(files, chunk, index) + " is not a JSON object: " + beginning_of(text),
                {},
                "data.source jsonl reads one JSON object a line");
  }
  const auto found = record.find(field);
  if (found == record.end()) {
    const std::vector<std::string> keys = keys_of(record);
    const std::string near = did_you_mean(field, keys);
    throw Error(place_of(files, chunk, index) + " has no field '" + field + "'",
                {},
                near.empty() ? "data.field names the one that holds the text; there are: " +
                                   beginning_of(join(keys, ", "))
                             : near);
  }
  if (!found->is_string()) {
    throw Error(place_of(files, chunk, index) + ": the field '" + field + "' is no text but " +
                    found->type_name(),
                {},
                "data.field names the field that holds the text");
  }
  return found->get<std::string>();
}

}  // namespace forge::data

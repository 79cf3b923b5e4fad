#include "core/store/read_ahead.h"

#include "core/base/error.h"
#include "core/protocol/train_line.h"
#include "core/store/event_lines.h"

namespace forge::store {

ReadLine read_line(const std::string& line, int64_t offset) {
  ReadLine read;
  read.offset = offset;
  if (const auto train = protocol::train_from_line(line)) {
    read.event = run::StoredEvent{train->time, train->attempt, "train", {}, train->metrics};
    return read;
  }
  try {
    run::StoredEvent stored = run::stored_event_from_line(line);
    const bool of_supervisor = stored.name == "attempt" || stored.name == "ended";
    // A worker's event that could not be read: asked once more, for the reason.
    if (!stored.event && !of_supervisor) protocol::event_from_json(stored.json);
    read.event = std::move(stored);
  } catch (const Error& problem) {
    read.problem = problem.message();
  }
  return read;
}

ReadAhead read_ahead(const std::filesystem::path& events_file, int64_t offset) {
  ReadAhead ahead;
  ahead.stamp = stamp_of(events_file);
  ahead.begin = offset;
  constexpr int64_t usual_line_bytes = 200;
  std::error_code missing;
  const auto size = static_cast<int64_t>(std::filesystem::file_size(events_file, missing));
  if (!missing && size > offset)
    ahead.lines.reserve(static_cast<size_t>((size - offset) / usual_line_bytes + 1));
  EventLines lines(events_file, offset);
  while (lines.next()) {
    if (lines.too_long()) {
      ahead.lines.push_back({lines.line_offset(), std::nullopt, "the line is too long"});
    } else {
      ahead.lines.push_back(read_line(lines.line(), lines.line_offset()));
    }
  }
  ahead.end = lines.next_offset();
  return ahead;
}

}  // namespace forge::store

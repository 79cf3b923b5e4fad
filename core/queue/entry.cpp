#include "core/queue/entry.h"

#include <tuple>

#include "core/protocol/json_fields.h"

namespace forge::queue {

template <class Visitor>
void fields(Visitor& visit, Device& device) {
  visit.field("name", device.name);
  visit.field("units", device.units);
}

template <class Visitor>
void fields(Visitor& visit, Entry& entry) {
  visit.field("run", entry.run);
  visit.field("group", entry.group);
  double priority = entry.priority;  // the reader takes every integer for a count
  visit.field("priority", priority);
  entry.priority = static_cast<int>(priority);
  visit.field("submitted", entry.submitted);
  visit.field("position", entry.position);
  visit.field("host", entry.host);
  visit.field("devices", entry.devices);
  visit.field("units", entry.units);
  visit.field("jobs", entry.jobs);
  visit.field("fail_fast", entry.fail_fast);
  visit.optional("device", entry.device);
  visit.field("starts", entry.starts);
  visit.field("attempt", entry.attempt);
}

nlohmann::json to_json(const Entry& entry) { return protocol::write_fields(entry); }

Entry entry_from_json(const nlohmann::json& json) {
  return protocol::read_fields<Entry>(json, "entry of the queue");
}

bool before(const Entry& left, const Entry& right) {
  const auto rank = [](const Entry& entry) {
    return std::tie(entry.submitted, entry.group, entry.position, entry.run);
  };
  if (left.priority != right.priority) return left.priority > right.priority;
  return rank(left) < rank(right);
}

}  // namespace forge::queue

#include "core/run/queue/entry.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/worker/json_fields.h"
#include "core/worker/messages.h"

namespace forge::queue {

template <class Visitor>
void fields(Visitor& visit, LeaseDevice& device) {
  visit.field("name", device.name);
  visit.field("units", device.units);
  visit.optional("visible", device.visible);
  visit.optional("cores", device.cores);
}

template <class Visitor>
void fields(Visitor& visit, Asker& asker) {
  visit.field("group", asker.group);
  visit.field("jobs", asker.jobs);
  visit.field("fail_fast", asker.fail_fast);
  visit.optional("devices", asker.devices);
  visit.optional("stop_after", asker.stop_after);
  visit.optional("variables", asker.variables);
  visit.optional("place", asker.place);
}

template <class Visitor>
void fields(Visitor& visit, QueueEntry& entry) {
  visit.field("run", entry.run);
  fields(visit, static_cast<Asker&>(entry));
  visit.field("units", entry.units);
  visit.optional("count", entry.count);
  double priority = entry.priority;  // the reader takes every integer for a count
  visit.field("priority", priority);
  entry.priority = static_cast<int>(priority);
  visit.field("submitted", entry.submitted);
  visit.field("position", entry.position);
  visit.field("host", entry.host);
  visit.optional("device", entry.device);
  visit.optional("supervisor", entry.supervisor);
  visit.optional("supervisor_place", entry.supervisor_place);
  visit.field("starts", entry.starts);
  visit.field("attempt", entry.attempt);
  visit.optional("others", entry.others);
  visit.optional("goes_on", entry.goes_on);
}

std::string askers_text(const QueueEntry& entry) {
  return entry.group + " " + join(texts_of(entry.others, &Asker::group), " ");
}

bool is_asked_by(const QueueEntry& entry, const std::string& group) {
  return entry.group == group ||
         std::any_of(entry.others.begin(), entry.others.end(), [&](const Asker& other) {
           return other.group == group;
         });
}

std::optional<QueueEntry> without(const QueueEntry& entry, const std::string& group) {
  QueueEntry left = entry;
  const auto is_it = [&](const Asker& other) { return other.group == group; };
  left.others.erase(std::remove_if(left.others.begin(), left.others.end(), is_it),
                    left.others.end());
  if (entry.group != group) return left;
  if (left.others.empty()) return std::nullopt;
  Asker next = std::move(left.others[0]);
  left.others.erase(left.others.begin());
  if (next.devices.size() < static_cast<size_t>(left.count)) next.devices = left.devices;
  static_cast<Asker&>(left) = std::move(next);
  return left;
}

int64_t later_step(int64_t a, int64_t b) { return a == 0 || b == 0 ? 0 : std::max(a, b); }

Asker of_another_host(Asker asker) {
  asker.devices.clear();
  asker.place.clear();
  return asker;
}

int64_t last_step_asked(const QueueEntry& entry) {
  int64_t last = entry.stop_after;
  for (const Asker& other : entry.others) last = later_step(last, other.stop_after);
  return last;
}

std::string devices_text(const QueueEntry& entry) {
  const std::vector<std::string> names = texts_of(entry.devices, &LeaseDevice::name);
  if (entry.count == 1) return join(names, " or ");
  return std::to_string(entry.count) + " of " + join(names, ", ");
}

/// Of an entry's fields. One who knew fewer would drop the others when it writes the entry.
constexpr int entry_version = 3;

nlohmann::json to_json(const QueueEntry& entry) {
  nlohmann::json json = worker::write_fields(entry);
  json["version"] = entry_version;
  return json;
}

/// Names become names of files; units are locked one by one.
void require_sound(const QueueEntry& entry) {
  constexpr int most_units = 1 << 16;
  const auto require = [](bool sound, const std::string& field) {
    if (!sound) throw Error("an entry of the queue has no sound '" + field + "'");
  };
  const auto is_name = [](const std::string& name) {
    return name.find('/') == std::string::npos && name.find('\0') == std::string::npos &&
           name != "." && name != "..";
  };
  const auto is_count = [](int units) { return units >= 1 && units <= most_units; };
  const auto is_core = [](int core) { return core >= 0 && core < most_units; };
  require(is_name(entry.host), "host");
  require(is_count(entry.units), "units");
  require(is_count(entry.count), "count");
  require(entry.position >= 0, "position");
  const auto require_sound_devices = [&](const Asker& asker) {
    for (const LeaseDevice& device : asker.devices) {
      require(!device.name.empty() && is_name(device.name) && is_count(device.units), "devices");
      const bool are_counted =
          device.cores.empty() || device.cores.size() == static_cast<size_t>(device.units);
      require(are_counted && std::all_of(device.cores.begin(), device.cores.end(), is_core),
              "devices");
    }
  };
  require_sound_devices(entry);
  for (const Asker& other : entry.others) require_sound_devices(other);
  // It would wait for ever.
  require(entry.devices.size() >= static_cast<size_t>(entry.count), "devices");
}

QueueEntry entry_from_json(const nlohmann::json& json) {
  const nlohmann::json version = json.value("version", nlohmann::json(1));
  if (!version.is_number_integer() || version > entry_version)
    throw Error("a newer version of forge has queued it, and starts it");
  QueueEntry entry = worker::read_fields<QueueEntry>(json, "entry of the queue");
  require_sound(entry);
  return entry;
}

bool starts_before(const QueueEntry& left, const QueueEntry& right) {
  const auto rank = [](const QueueEntry& entry) {
    return std::tie(entry.submitted, entry.group, entry.position, entry.run);
  };
  if (left.priority != right.priority) return left.priority > right.priority;
  return rank(left) < rank(right);
}

}  // namespace forge::queue

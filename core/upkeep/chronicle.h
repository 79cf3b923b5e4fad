#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/run/event_log.h"
#include "core/run/run_folder.h"

namespace forge::upkeep {

/// What of a run's files is wanted.
enum class Source {
  all,         ///< what happened and the worker's prose, in order
  events,      ///< every line of events.jsonl
  prose,       ///< stderr.log
  supervisor,  ///< supervisor.log
};

/// A line of a run's chronicle.
struct Entry {
  std::optional<double> time;  ///< seconds since 1970; prose has none
  int attempt = 0;             ///< 0: not known
  std::string kind;            ///< name of the event; "worker" or "supervisor" for prose
  std::string text;            ///< for people: no control characters
  nlohmann::json event;        ///< the whole line of an event, else null
};

/// {"time", "attempt", "kind", "text"} and "event" where it is one.
nlohmann::json to_json(const Entry& entry);

/// What an event says, in a few words; "" for one that a chronicle leaves out.
std::string event_text(const run::StoredEvent& stored);

/// Reads what a run has written about itself, as it grows. The worker's prose has no times: it
/// stands where the supervisor found stderr.log to have grown to when it recorded an event.
class Chronicle {
 public:
  Chronicle(run::RunFolder folder, Source source) : folder_(std::move(folder)), source_(source) {}

  /// What is new since the last call. Does not wait. A line of events that cannot be read is
  /// an entry that says so.
  std::vector<Entry> poll();

 private:
  /// A file that grows, read by whole lines.
  struct Reader {
    int64_t offset = 0;
    std::vector<std::string> lines(const std::filesystem::path& file, int64_t end = INT64_MAX);
  };

  void add_event(const std::string& line, std::vector<Entry>& entries);
  void add_prose(int64_t end, std::vector<Entry>& entries);
  /// Of training metrics only so many are worth a line.
  bool is_worth_a_line(const run::StoredEvent& stored);

  run::RunFolder folder_;
  Source source_;
  Reader events_, prose_;
  int attempt_ = 0;
  int64_t max_steps_ = 0;
  int64_t shown_part_ = -1;
};

}  // namespace forge::upkeep

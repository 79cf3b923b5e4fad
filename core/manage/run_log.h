#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/run/event_log.h"
#include "core/run/run_folder.h"

namespace forge::manage {

/// Which of a run's files to read.
enum class LogSource {
  all,         ///< what happened and the worker's stderr, in order
  events,      ///< every line of events.jsonl
  worker,      ///< stderr.log, and those of other processes
  supervisor,  ///< supervisor.log
};

/// A line of a run's log.
struct LogLine {
  std::optional<double> time;  ///< seconds since 1970; only events have one
  int attempt = 0;             ///< 0: not known
  std::string kind;            ///< name of the event; that, or "worker" or "supervisor"
  std::string text;            ///< for people: no control characters
  std::optional<int> rank;     ///< of the process that said it, where a worker was several
  nlohmann::json event;        ///< the whole line of an event, else null
};

/// {"time", "attempt", "kind", "text"}, "rank" where several processes speak, and "event" where it
/// is one.
nlohmann::json to_json(const LogLine& entry);

/// What an event says, in a few words; "" for one that a log leaves out.
std::string event_text(const run::StoredEvent& stored);

/// Reads the files that a run writes, as they grow. The worker's stderr has no times: a line of it
/// stands where the supervisor found its file to have grown to when it recorded an event.
class RunLog {
 public:
  RunLog(run::RunFolder folder, LogSource source) : folder_(std::move(folder)), source_(source) {}

  using Take = std::function<void(const LogLine&)>;

  /// Calls `take` with each new line since the last call, and holds one at a time. Does not wait. A
  /// damaged line of events.jsonl becomes a line that says so.
  void poll(const Take& take);

 private:
  /// A file that grows, read by whole lines.
  struct Reader {
    int64_t offset = 0;
    void lines(const std::filesystem::path& file,
               const std::function<void(const std::string&)>& take,
               int64_t end = INT64_MAX);
  };

  void tell_event(const std::string& line, const Take& take);
  /// Up to these sizes; all lines without.
  void tell_worker_lines(const Take& take, const std::optional<run::StderrSizes>& sizes = {});
  /// Only about 20 training metrics of a run are shown.
  bool should_show(const run::StoredEvent& stored);

  run::RunFolder folder_;
  LogSource source_;
  Reader events_;
  std::vector<Reader> worker_lines_;  ///< of each process
  int attempt_ = 0;
  int64_t max_steps_ = 0;
  int64_t shown_fraction_ = -1;
};

}  // namespace forge::manage

#include "app/stream_metrics.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <set>
#include <thread>

#include "app/runs.h"
#include "core/base/clock.h"
#include "core/base/display_text.h"
#include "core/run/event_log.h"
#include "core/run/queue/queue.h"

namespace forge::app {
namespace {

constexpr auto metrics_poll_interval = std::chrono::milliseconds(500);
constexpr double look_seconds = 2;  // between two looks for new runs
/// A search or another command may be about to queue what comes next.
constexpr double quiet_seconds = 3;

/// One run on its way into a sink.
class Stream {
 public:
  Stream(const run::RunFolder& folder, const MakeSink& make_sink)
      : folder_(folder), follower_(folder), make_sink_(make_sink) {}

  const run::RunFolder& folder() const { return folder_; }
  size_t metrics() const { return metrics_; }

  /// Streams what is new. Returns whether the run goes on, or waits in the queue.
  bool poll() {
    run::Update update = follower_.poll();
    size_t events = update.events.size();
    take(update);
    // A long log is read in parts.
    while (events > 0) {
      update = follower_.poll();
      events = update.events.size();
      take(update);
    }
    if (sink_) sink_->flush();
    const bool goes_on =
        !update.over || queue::is_queued(folder_.path().parent_path(), folder_.id());
    if (!goes_on) end();
    return goes_on;
  }

  void end() {
    if (!sink_) return;
    const std::unique_ptr<MetricSink> sink = std::move(sink_);
    sink->end(run::name_of(folder_.state()));
  }

 private:
  void take(const run::Update& update) {
    for (const run::StoredEvent& stored : update.events) {
      const worker::Started* const started = run::started_of(stored);
      if (started && started->first_step < last_step_ && sink_)
        sink_->repeat_after(started->first_step, stored.time);
      if (!stored.event) continue;
      const std::vector<tables::MetricPoint> metrics =
          tables::metrics_of_event(*stored.event, stored.time);
      if (metrics.empty()) continue;
      if (!sink_) sink_ = make_sink_(folder_);
      sink_->take(metrics);
      metrics_ += metrics.size();
      last_step_ = std::max(last_step_, metrics.front().step);
    }
  }

  run::RunFolder folder_;
  run::Follower follower_;
  const MakeSink& make_sink_;
  std::unique_ptr<MetricSink> sink_;  ///< from the first metric to the end of the run
  size_t metrics_ = 0;
  int64_t last_step_ = 0;
};

}  // namespace

Streamed stream_metrics(const std::vector<run::RunFolder>& folders,
                        const MakeSink& make_sink,
                        const Interrupts& interrupts,
                        const std::function<std::vector<run::RunFolder>()>& new_runs,
                        const CountProgress& progress) {
  std::vector<std::unique_ptr<Stream>> streams;
  std::set<std::string> known;
  const auto add = [&](const std::vector<run::RunFolder>& list) {
    for (const run::RunFolder& folder : list) {
      if (known.insert(folder.id()).second)
        streams.push_back(std::make_unique<Stream>(folder, make_sink));
    }
  };
  add(folders);
  bool was_active = false;
  double active_at = steady_seconds(), looked_at = active_at;
  for (bool is_first = true; interrupts.count() == 0; is_first = false) {
    bool is_active = false;
    for (size_t i = 0; i < streams.size() && interrupts.count() == 0; ++i) {
      is_active = streams[i]->poll() || is_active;
      if (is_first) progress(i + 1, streams.size());
    }
    const double now = steady_seconds();
    if (is_active) active_at = now;
    was_active = was_active || is_active;
    if (!was_active || now - active_at > quiet_seconds) break;
    if (now - looked_at > look_seconds) {
      looked_at = now;
      if (!streams.empty()) warn_of_unserved_queue(streams[0]->folder().path().parent_path());
      add(new_runs());
    }
    std::this_thread::sleep_for(metrics_poll_interval);
  }
  Streamed streamed;
  for (const auto& stream : streams) {
    stream->end();
    streamed.runs += stream->metrics() > 0;
    streamed.metrics += stream->metrics();
  }
  return streamed;
}

}  // namespace forge::app

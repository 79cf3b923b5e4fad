#include "core/store/event_effects.h"

#include <algorithm>
#include <limits>

#include "core/base/clock.h"

namespace forge::store {
namespace {

/// Product of two counts; a worker may claim any number, so it stops at the largest.
int64_t product(int64_t a, int64_t b) {
  int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? std::numeric_limits<int64_t>::max() : result;
}

class Effects {
 public:
  explicit Effects(RunSummary& run) : run_(run) {}

  void operator()(const protocol::Hello& hello) {
    run_.backend_version = hello.backend_version;
    run_.numerics_version = hello.numerics_version;
  }
  void operator()(const protocol::Environment& environment) {
    run_.device_type = environment.device_type;
    run_.device_name = environment.device_name;
  }
  void operator()(const protocol::Started& started) {
    run_.parameters = started.parameters;
    run_.max_steps = started.max_steps;
    run_.tokens_per_step = started.tokens_per_step;
    run_.micro_batch_size = started.micro_batch_size;
    run_.step = started.first_step;
    run_.tokens = product(started.first_step, started.tokens_per_step);
  }
  void operator()(const protocol::TrainMetrics& metrics) {
    run_.step = metrics.step;
    run_.tokens = metrics.tokens;
    run_.train_loss = metrics.loss;
    run_.tokens_per_second = metrics.tokens_per_second;
    run_.wall_seconds = metrics.elapsed_seconds;
  }
  void operator()(const protocol::Evaluation& evaluation) {
    run_.step = evaluation.step;
    run_.eval_step = evaluation.step;
    run_.eval_loss = evaluation.loss;
    run_.selection_loss = evaluation.selection_loss;
  }
  void operator()(const protocol::Finished& finished) {
    run_.step = finished.step;
    run_.tokens = product(finished.step, run_.tokens_per_step);
    if (finished.eval_loss) {
      run_.eval_step = finished.step;
      run_.eval_loss = finished.eval_loss;
    }
    run_.train_loss = finished.train_loss;
    run_.tokens_per_second = finished.tokens_per_second;
    run_.wall_seconds = finished.wall_seconds;
    run_.peak_memory_bytes = finished.peak_memory_bytes;
    run_.peak_resident_bytes = finished.peak_resident_bytes;
    run_.parameters = finished.parameters;
    run_.shared_device = finished.shared_device ? 1 : 0;
  }
  void operator()(const protocol::MicroBatch& halved) {
    if (halved.phase == "train") run_.micro_batch_size = halved.rows;
  }
  void operator()(const protocol::Failed&) {}
  void operator()(const protocol::Progress&) {}
  void operator()(const protocol::CheckpointSaved&) {}
  void operator()(const protocol::Tokens&) {}
  void operator()(const protocol::Answers&) {}
  void operator()(const protocol::Ready&) {}
  void operator()(const protocol::Window&) {}
  void operator()(const protocol::Result&) {}
  void operator()(const protocol::Supports&) {}

 private:
  RunSummary& run_;
};

std::optional<int64_t> integer_of(const nlohmann::json& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<int64_t>();
}

/// Its times are of all attempts, so the worst one counts.
void take_busy(const nlohmann::json& line, RunSummary& run) {
  const auto found = line.find("busy_elsewhere");
  if (found == line.end() || !found->is_number()) return;
  run.busy_elsewhere = std::max(run.busy_elsewhere.value_or(0), found->get<double>());
}

}  // namespace

void apply(const run::StoredEvent& stored, RunSummary& run) {
  if (stored.name == "attempt") {
    run.attempts = stored.attempt;
    run.exit_status.reset();
    run.exit_signal.reset();
  } else if (stored.name == "ended") {
    run.exit_status = integer_of(stored.json, "exit_status");
    run.exit_signal = integer_of(stored.json, "signal");
    take_busy(stored.json, run);
  }
  if (stored.event) std::visit(Effects(run), *stored.event);
}

void apply_times(const std::vector<ReadLine>& lines, RunSummary& run) {
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const double time = line->event ? line->event->time : -1;
    const bool before_year_10000 = time >= 0 && time < 253402300800.0;
    if (!before_year_10000) continue;
    run.updated = utc_timestamp(time);
    return;
  }
}

}  // namespace forge::store

#include "core/run/repetition.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/config/experiment.h"
#include "core/run/event_log.h"
#include "core/run/runs_dir.h"
#include "core/worker/json_fields.h"

namespace forge::run {
namespace {

using Json = nlohmann::json;
using Losses = std::map<int64_t, double>;  ///< by step

/// What a run told of its first steps.
struct Told {
  Losses evaluation, training;
  bool nothing() const { return evaluation.empty() && training.empty(); }
};

Told told_by(const RunFolder& run, int64_t log_every, int64_t last_step) {
  Told told;
  EventReader lines(run.events_file(), 0);
  while (const std::optional<ReadLine> line = lines.next()) {
    if (!line->event || !line->event->event) continue;  // whoever reads all events says so
    const worker::Event& event = *line->event->event;
    if (const auto* evaluation = std::get_if<worker::Evaluation>(&event)) {
      if (evaluation->step <= last_step) told.evaluation[evaluation->step] = evaluation->loss;
    } else if (const auto* train = std::get_if<worker::TrainMetrics>(&event)) {
      // A window that the end cut short is none of a longer run.
      if (train->step <= last_step && train->step % log_every == 0)
        told.training[train->step] = train->loss;
    }
  }
  return told;
}

enum class Likeness { unknown, same, other };

Likeness compare(const Losses& a, const Losses& b) {
  Likeness found = Likeness::unknown;
  for (const auto& [step, loss] : a) {
    const auto other = b.find(step);
    if (other == b.end()) continue;
    const bool are_nan = loss != loss && other->second != other->second;
    if (loss != other->second && !are_nan) return Likeness::other;
    found = Likeness::same;
  }
  return found;
}

bool have_equal(const Json& a, const Json& b, const std::vector<const char*>& keys) {
  return std::all_of(keys.begin(), keys.end(), [&](const char* key) {
    const Json *left = find_value(a, key), *right = find_value(b, key);
    return left && right ? *left == *right : left == right;
  });
}

/// A run that goes on after some steps, and what it told of them.
struct Begun {
  RunFolder folder;
  RunRecord record;
  Json config;
  config::Experiment experiment;
};

Begun read_begun(const RunFolder& folder) {
  Begun run{folder, folder.record(), {}, {}};
  run.config = folder.config(run.record);
  run.experiment = config::experiment_from_json(run.config);
  return run;
}

/// Whether both made these steps of one seed by the same program from the same data, so that a
/// device that always computes alike would have found the same losses.
bool made_same_steps(const Begun& older, const Begun& base, int64_t step, const Json& experiment) {
  Json theirs = worker::write_fields(older.record.identity);
  Json ours = worker::write_fields(base.record.identity);
  for (Json* identity : {&theirs, &ours}) identity->erase("experiment");
  if (theirs != ours) return false;
  try {
    config::check_resumable(older.experiment,
                            config::experiment_from_json(experiment),
                            std::min<int64_t>(step, older.experiment.train.max_steps));
    return true;
  } catch (const Error&) {
    return false;
  }
}

bool told_others(const Begun& older, const Begun& base, int64_t step) {
  const Told theirs = told_by(older.folder, older.experiment.train.log_every, step);
  if (theirs.nothing()) return false;
  const Told ours = told_by(base.folder, base.experiment.train.log_every, step);
  Likeness found = Likeness::unknown;
  if (have_equal(older.config,
                 base.config,
                 {"train.eval_rows",
                  "train.eval_batch_size",
                  "train.eval_prompts",
                  "train.validation_rows"}))
    found = compare(theirs.evaluation, ours.evaluation);
  if (found == Likeness::unknown && have_equal(older.config, base.config, {"train.log_every"}))
    found = compare(theirs.training, ours.training);
  return found != Likeness::same;
}

/// Records that could be those of other runs with the seed of `base`, before their configs are
/// read.
bool may_be_older(const RunFolder& folder, const RunRecord& record, const Begun& base) {
  const auto seed = [](const RunRecord& of) {
    return of.identity.experiment.value("seed", Json());
  };
  return folder.id() != base.folder.id() && seed(record) == seed(base.record);
}

/// When an attempt of its own first told a loss, and its id: when it was planned says nothing, for
/// it may have waited. Infinite where it told none.
using FirstTold = std::pair<double, std::string>;

FirstTold first_told(const RunFolder& run) {
  EventReader lines(run.events_file(), 0);
  while (const std::optional<ReadLine> line = lines.next()) {
    if (!line->event || !line->event->event || line->event->attempt == 0) continue;
    const worker::Event& event = *line->event->event;
    if (std::holds_alternative<worker::Evaluation>(event) ||
        std::holds_alternative<worker::TrainMetrics>(event))
      return {line->event->time, run.id()};
  }
  return {std::numeric_limits<double>::infinity(), run.id()};
}

}  // namespace

std::string repeated_run(const RunFolder& base_folder,
                         int64_t step,
                         const Json& experiment,
                         const std::filesystem::path& runs_dir) {
  const Begun base = read_begun(base_folder);
  if (!base.record.repeats.empty()) return base.record.repeats;
  std::set<fs::path> folders;
  for (const fs::path& folder : {runs_dir, fs::absolute(base_folder.path()).parent_path()})
    folders.insert(fs::weakly_canonical(folder));
  const FirstTold of_base = first_told(base_folder);
  FirstTold oldest;
  for (const fs::path& folder : folders) {
    for (const RunFolder& other : list_runs(folder)) {
      try {
        const RunRecord record = other.record();
        if (!may_be_older(other, record, base)) continue;
        const FirstTold told = first_told(other);
        if (!(told < of_base) || !(oldest.second.empty() || told < oldest)) continue;
        const Begun older = read_begun(other);
        if (made_same_steps(older, base, step, experiment) && told_others(older, base, step))
          oldest = told;
      } catch (const Error& problem) {
        if (problem.exit_code() == ExitCode::storage) throw;
        // A damaged one is reported by lists.
      }
    }
  }
  return oldest.second;
}

}  // namespace forge::run

#include "core/run/attempt.h"

#include <signal.h>

#include <fstream>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/json_text.h"
#include "core/base/text.h"
#include "core/run/host.h"
#include "core/weights/checkpoint.h"

namespace forge::run {
namespace {

constexpr double machine_seconds = 1;  // between two looks at what keeps the machine busy

/// Replaces the file without syncing it: a lost progress line is no loss, so no error either.
void rewrite_loosely(const fs::path& path, const std::string& content) {
  const fs::path aside = path.string() + ".tmp";
  std::ofstream(aside, std::ios::trunc) << content;
  std::error_code ignored;
  fs::rename(aside, path, ignored);
}

bool same(const protocol::Progress& a, const protocol::Progress& b) {
  return a.step == b.step && a.phase == b.phase && a.fraction == b.fraction;
}

AttemptEnd verdict_of(const protocol::Finished& finished) {
  AttemptEnd end;
  end.state = finished.completed ? RunState::completed : RunState::stopped;
  if (!finished.completed)
    end.reason = "stopped on request after step " + std::to_string(finished.step);
  return end;
}

AttemptEnd verdict_of(const protocol::Failed& failed) {
  AttemptEnd end;
  end.reason = failed.field.empty() ? failed.message : failed.field + ": " + failed.message;
  end.hint = failed.hint;
  end.mendable = failed.retry;
  return end;
}

}  // namespace

Attempt::Attempt(const RunFolder& folder,
                 const SupervisorOptions& options,
                 int number,
                 RunningWorker& worker,
                 Examiner& examiner,
                 EventLog& log,
                 StopWatch& stop_watch)
    : folder_(folder),
      options_(options),
      number_(number),
      worker_(worker),
      examiner_(examiner),
      log_(log),
      stop_watch_(stop_watch),
      last_sign_(options.clock()) {}

AttemptEnd Attempt::run() {
  try {
    return watch();
  } catch (const Error& problem) {
    end_unrecorded();
    throw Error(problem.message(),
                {},
                "when that is mended, start the run again: it goes on from its newest checkpoint",
                problem.exit_code());
  }
}

AttemptEnd Attempt::watch() {
  while (true) {
    pass_on_stop();
    pass_on_save();
    watch_silence();
    look_elsewhere();
    if (looked_at_machine_ && options_.clock() - *looked_at_machine_ >= machine_seconds)
      look_at_machine();
    log_.sync_if_due(options_.clock());
    const Output output = worker_.next(options_.poll_seconds);
    if (const auto* line = std::get_if<OutputLine>(&output)) on_line(line->text);
    if (const auto* exit = std::get_if<ExitStatus>(&output)) return conclude(*exit);
  }
}

void Attempt::on_line(const std::string& line) {
  if (verdict_) return;
  std::optional<protocol::Event> event;
  try {
    event = protocol::event_from_line(line);
  } catch (const Error& problem) {
    give_up("the worker broke the protocol: " + problem.message(), problem.hint());
    return;
  }
  on_event(*event);
}

void Attempt::on_event(const protocol::Event& event) {
  if (const auto* hello = std::get_if<protocol::Hello>(&event)) on_hello(*hello);
  if (!hello_) {
    give_up("the worker's first event was '" + std::string(protocol::name_of(event)) +
            "' instead of 'hello'");
  }
  if (verdict_) return;
  if (const auto* progress = std::get_if<protocol::Progress>(&event)) {
    on_progress(*progress);
    return;
  }
  sign_of_life();
  // Right where training begins, and while the worker that ends still has its times.
  if (std::holds_alternative<protocol::Started>(event) ||
      std::holds_alternative<protocol::Finished>(event))
    look_at_machine();
  if (const auto* answers = std::get_if<protocol::Answers>(&event)) {
    on_answers(*answers);
    return;
  }
  if (const auto* evaluation = std::get_if<protocol::Evaluation>(&event)) {
    protocol::Evaluation scored = *evaluation;
    scored.scores = examiner_.finish();
    evaluated_ = scored;
    log_.append(with_prose(scored), number_);
    return;
  }
  if (const auto* saved = std::get_if<protocol::CheckpointSaved>(&event)) on_checkpoint(*saved);
  if (verdict_) return;
  log_.append(std::holds_alternative<protocol::CheckpointSaved>(event) ? with_prose(event)
                                                                       : protocol::to_json(event),
              number_);
  if (const auto* environment = std::get_if<protocol::Environment>(&event)) {
    write_environment(*environment);
  } else if (const auto* finished = std::get_if<protocol::Finished>(&event)) {
    verdict_ = verdict_of(*finished);
  } else if (const auto* failed = std::get_if<protocol::Failed>(&event)) {
    verdict_ = verdict_of(*failed);
  }
  if (verdict_ || std::holds_alternative<protocol::CheckpointSaved>(event)) log_.sync();
}

nlohmann::json Attempt::with_prose(const protocol::Event& event) const {
  nlohmann::json json = protocol::to_json(event);
  std::error_code missing;
  const auto bytes = fs::file_size(folder_.stderr_file(), missing);
  if (!missing) json["stderr_bytes"] = bytes;
  return json;
}

void Attempt::on_hello(const protocol::Hello& hello) {
  hello_ = hello;
  if (hello.protocol == protocol::version) return;
  give_up("the worker speaks version " + std::to_string(hello.protocol) +
              " of the protocol and forge version " + std::to_string(protocol::version),
          "build forge and its worker from the same sources");
}

void Attempt::on_answers(const protocol::Answers& answers) {
  try {
    examiner_.take(answers);
  } catch (const Error& problem) {
    give_up(problem.message(), problem.hint());
  }
}

/// What is acknowledged must be found again: under its name, with a manifest.
void Attempt::on_checkpoint(const protocol::CheckpointSaved& saved) {
  const std::string name = weights::checkpoint_name(saved.step);
  if (saved.path != "checkpoints/" + name) {
    give_up("the worker broke the protocol: it saved the checkpoint of step " +
                std::to_string(saved.step) + " as '" + saved.path.substr(0, 120) + "'",
            "it belongs into checkpoints/" + name);
    return;
  }
  weights::CheckpointState state;
  state.step = saved.step;
  state.identity = folder_.record().key;
  if (evaluated_ && evaluated_->step == saved.step) state.eval_loss = evaluated_->loss;
  try {
    weights::seal_checkpoint(folder_.checkpoints() / name, state);
    saved_ = true;
  } catch (const Error& problem) {
    give_up("the worker's checkpoint cannot be kept: " + problem.message(), problem.hint());
  }
}

void Attempt::on_progress(const protocol::Progress& progress) {
  if (!progress_ || !same(*progress_, progress)) sign_of_life();
  progress_ = progress;
  const double now = options_.clock();
  if (now - progress_written_ < options_.progress_seconds) return;
  progress_written_ = now;
  rewrite_loosely(folder_.progress_file(),
                  protocol::to_line(stamped(protocol::to_json(progress), number_)) + "\n");
}

void Attempt::write_environment(const protocol::Environment& environment) const {
  nlohmann::json json = protocol::to_json(environment);
  json.update(protocol::to_json(*hello_));
  json.erase("event");
  json["host"] = host_name();
  json["revision"] = folder_.record().revision;
  json["attempt"] = number_;
  write_file_atomic(folder_.environment_file(), json_text(json, 2) + "\n");
}

void Attempt::pass_on_stop() {
  const std::optional<Stop> asked = stop_watch_.asked();
  if (!asked || asked == stop_passed_on_) return;
  stop_passed_on_ = asked;
  if (asked == Stop::save) {
    worker_.ask_to_stop();
  } else {
    worker_.kill();
    killed_ = true;
  }
}

/// Only once it is known that the worker listens: the signal ends any other.
void Attempt::pass_on_save() {
  std::error_code missing;
  if (!hello_ || !fs::exists(folder_.save_file(), missing)) return;
  if (hello_->saves_on_request && !verdict_ && !stop_passed_on_) worker_.ask_to_save();
  remove_tree(folder_.save_file());
}

void Attempt::look_elsewhere() {
  const double now = options_.clock();
  if (!options_.meanwhile || now - looked_elsewhere_ < options_.meanwhile_seconds) return;
  looked_elsewhere_ = now;
  options_.meanwhile();
}

void Attempt::look_at_machine() {
  looked_at_machine_ = options_.clock();
  machine_load_.look(worker_.pid());
}

void Attempt::watch_silence() {
  const double quiet_seconds = options_.clock() - last_sign_;
  if (verdict_) {
    if (killed_ || quiet_seconds < options_.exit_grace_seconds) return;
    worker_.kill();  // it has said its last word and does not leave
    killed_ = true;
  } else if (quiet_seconds >= options_.silence_seconds) {
    give_up("the worker showed no work for " + human_duration(quiet_seconds) + " and was killed",
            "see " + folder_.stderr_file().string());
  }
}

void Attempt::give_up(std::string reason, std::string hint) {
  verdict_ = AttemptEnd{};
  verdict_->reason = std::move(reason);
  verdict_->hint = std::move(hint);
  worker_.kill();
  killed_ = true;
}

AttemptEnd Attempt::conclude(const ExitStatus& exit) const {
  AttemptEnd end;
  if (verdict_) {
    // A crash in a library's clean-up after the last word changes no number.
    end = *verdict_;
  } else if (stop_passed_on_) {
    end.state = RunState::stopped;
    end.reason = "stopped on request before it could save";
  } else if (exit.signal != 0) {
    end.reason = "the worker was killed by " + exit.describe();
    if (exit.signal == SIGKILL) end.hint = "the kernel does this where memory runs out: see dmesg";
    end.mendable = true;
  } else {
    end.reason = "the worker left without a last word, with " + exit.describe();
    end.hint = "see " + folder_.stderr_file().string();
  }
  end.exit = exit;
  end.saved = saved_;
  end.busy_elsewhere = machine_load_.busy_elsewhere();
  end.storage = end.state == RunState::failed && exit.code == protocol::exit_storage;
  return end;
}

/// Nothing can be recorded, so nothing more is done: whatever the worker went on to save would be
/// after a gap in the record, and no attempt may begin there.
void Attempt::end_unrecorded() {
  worker_.kill();
  while (!std::holds_alternative<ExitStatus>(worker_.next(options_.poll_seconds))) {
  }
}

}  // namespace forge::run

#include <chrono>
#include <iostream>
#include <thread>

#include "app/commands.h"
#include "app/output.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/run/follow.h"
#include "core/run/run_model.h"

namespace forge::app {
namespace {

struct RunsSaveOptions {
  std::string name;
  double wait_seconds = 120;
  bool json = false;
};

/// The worker that runs now, as it presented itself; nothing where it has not yet.
std::optional<protocol::Hello> worker_of(const run::RunFolder& folder) {
  std::optional<protocol::Hello> hello;
  for (const run::StoredEvent& stored : run::read_events(folder.events_file())) {
    if (stored.name == "attempt") hello.reset();
    if (stored.event && std::holds_alternative<protocol::Hello>(*stored.event))
      hello = std::get<protocol::Hello>(*stored.event);
  }
  return hello;
}

void require_running(const run::RunFolder& folder) {
  if (folder.state() == run::RunState::running) return;
  throw Error("run '" + folder.id() + "' does not run: it is " + run::name_of(folder.state()),
              {},
              "what it saved before is in " + shown_path(folder.checkpoints()),
              ExitCode::failed);
}

/// Waits, at most so many seconds, until the worker has said what it can.
void require_able(const run::RunFolder& folder, double seconds) {
  const double deadline = steady_seconds() + seconds;
  std::optional<protocol::Hello> hello;
  while (true) {
    require_running(folder);
    hello = worker_of(folder);
    if (hello || steady_seconds() >= deadline) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  if (!hello) {
    throw Error("the worker of run '" + folder.id() + "' has not said yet what it can do",
                {},
                "try again when it trains",
                ExitCode::failed);
  }
  if (hello->saves_on_request) return;
  throw Error("backend " + hello->backend + " does not say that it can save on request",
              {},
              "'forge runs stop' lets it save and stop; 'forge runs resume' goes on from there",
              ExitCode::failed);
}

/// The next checkpoint, or nothing where the run ends or the time is over before.
std::optional<protocol::CheckpointSaved> wait_for_checkpoint(run::Follower& follower,
                                                             double seconds) {
  const double deadline = steady_seconds() + seconds;
  while (true) {
    const run::Update update = follower.poll();
    for (const run::StoredEvent& stored : update.events) {
      if (stored.event && std::holds_alternative<protocol::CheckpointSaved>(*stored.event))
        return std::get<protocol::CheckpointSaved>(*stored.event);
    }
    if (update.over || steady_seconds() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

int save(const Context& context, const RunsSaveOptions& options) {
  const run::RunFolder folder = run::named_run(context.runs_dir(), options.name);
  require_able(folder, options.wait_seconds);
  run::Follower follower(folder);
  follower.skip_to_end();
  folder.request_save();
  nlohmann::json json = {{"run", folder.id()}, {"saved", false}, {"step", nullptr}, {"path", ""}};
  const bool waits = options.wait_seconds > 0;
  const auto saved = waits ? wait_for_checkpoint(follower, options.wait_seconds) : std::nullopt;
  if (saved) {
    const std::string path = (folder.path() / saved->path).string();
    json.update({{"saved", true}, {"step", saved->step}, {"path", path}});
    if (!options.json) {
      std::cout << folder.id() << ": saved step " << saved->step << ", "
                << human_bytes(double(saved->bytes)) << " in " << shown_path(path) << "\n";
    }
  }
  if (options.json) print_json(json);
  if (saved || !waits) {
    if (!waits && !options.json) std::cout << folder.id() << ": saves after this step\n";
    return 0;
  }
  throw Error(
      "run '" + folder.id() + "' " +
          (folder.state() == run::RunState::running
               ? "was asked to save and has not within " + human_duration(options.wait_seconds)
               : "ended before it saved"),
      {},
      "'forge runs logs " + folder.id() + "' tells why",
      ExitCode::failed);
}

}  // namespace

void add_runs_save(const Command& runs, Program& program) {
  auto options = std::make_shared<RunsSaveOptions>();
  const Command command =
      runs.add_subcommand("save", "Let a run save a checkpoint now and go on training");
  command.footer(
      "Waits until the checkpoint is written. It counts as one of the newest, of which\n"
      "train.keep_checkpoints are kept.\n"
      "\n"
      "Examples:\n"
      "  forge runs save train_llama-deb27d\n"
      "  forge runs save train_llama-deb27d --wait 0       only ask");
  command.add_option("RUN", options->name, "Its id or the beginning of it, or its folder")
      .required()
      .type_name("RUN|DIR");
  command.add_option("--wait", options->wait_seconds, "At most so many seconds; 0: do not wait")
      .non_negative()
      .type_name("SECONDS")
      .capture_default();
  command.add_flag("--json", options->json, "As JSON");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return save(c, *options); };
  });
}

}  // namespace forge::app

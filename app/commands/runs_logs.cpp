#include <unistd.h>

#include <chrono>
#include <iostream>
#include <thread>

#include "app/commands.h"
#include "app/terminal.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/json_text.h"
#include "core/queue/queue.h"
#include "core/run/run_model.h"
#include "core/upkeep/chronicle.h"

namespace forge::app {
namespace {

constexpr auto poll_interval = std::chrono::milliseconds(150);

struct RunsLogsOptions {
  std::string name;
  bool follow = false;
  bool prose = false;
  bool events = false;
  bool supervisor = false;
  bool json = false;
};

upkeep::Source source_of(const RunsLogsOptions& options) {
  if (options.prose) return upkeep::Source::prose;
  if (options.events) return upkeep::Source::events;
  return options.supervisor ? upkeep::Source::supervisor : upkeep::Source::all;
}

/// "2026-11-22 00:12:03", UTC.
std::string time_text(double time) {
  std::string text = utc_timestamp(time).substr(0, 19);
  text[10] = ' ';
  return text;
}

void print(const upkeep::Entry& entry, const RunsLogsOptions& options, bool colour) {
  if (options.json) {
    std::cout << json_text(to_json(entry)) << "\n";
  } else if (options.events) {
    std::cout << (entry.event.is_null() ? entry.text : json_text(entry.event)) << "\n";
  } else if (entry.time) {
    const bool bad =
        entry.kind == "failed" || (entry.kind == "ended" && entry.text.rfind("failed", 0) == 0);
    std::cout << styled(time_text(*entry.time), Style::dim, colour) << "  "
              << styled(entry.text, bad ? Style::red : Style::plain, colour) << "\n";
  } else if (source_of(options) == upkeep::Source::all) {
    std::cout << "                     | " << entry.text << "\n";
  } else {
    std::cout << entry.text << "\n";
  }
}

/// Nothing more will come of it.
bool is_over(const run::RunFolder& folder) {
  return !FileLock::is_held(folder.lock_file()) &&
         !queue::is_queued(folder.path().parent_path(), folder.id());
}

int print_logs(const Context& context, const RunsLogsOptions& options) {
  const run::RunFolder folder = run::named_run(context.runs_dir(), options.name);
  const bool colour = use_colour(STDOUT_FILENO);
  upkeep::Chronicle chronicle(folder, source_of(options));
  bool any = false;
  while (true) {
    const bool over = is_over(folder);  // asked first: what is written until then is seen below
    for (const upkeep::Entry& entry : chronicle.poll()) {
      print(entry, options, colour);
      any = true;
    }
    std::cout.flush();
    if (!std::cout) return 0;  // nobody reads any more
    if (!options.follow || over) break;
    std::this_thread::sleep_for(poll_interval);
  }
  if (!any && !options.json)
    std::cerr << "nothing there yet: the run is " << run::name_of(folder.state()) << "\n";
  return 0;
}

}  // namespace

void add_runs_logs(const Command& runs, Program& program) {
  auto options = std::make_shared<RunsLogsOptions>();
  const Command command =
      runs.add_subcommand("logs", "Print what happened in a run and what its worker said");
  command.footer(
      "Times are UTC. The worker's own words stand behind a bar, where they were said. Of "
      "training\n"
      "metrics about twenty are shown; --events has all.\n"
      "\n"
      "Examples:\n"
      "  forge runs logs train_llama-deb27d\n"
      "  forge runs logs train_llama-deb27d -f             until the run ends\n"
      "  forge runs logs train_llama-deb27d --events | jq .loss\n"
      "  forge runs logs train_llama-deb27d --supervisor   where it failed before it began");
  command.add_option("RUN", options->name, "Its id or the beginning of it, or its folder")
      .required()
      .type_name("RUN|DIR");
  command.add_flag("-f,--follow", options->follow, "Go on until the run ends");
  const Argument prose =
      command.add_flag("--stderr", options->prose, "Only the worker's words: stderr.log");
  Argument events =
      command.add_flag("--events", options->events, "Every event as it is stored, one JSON a line");
  Argument supervisor = command.add_flag(
      "--supervisor", options->supervisor, "What the supervisor said, mostly nothing");
  events.excludes(prose);
  supervisor.excludes(prose);
  supervisor.excludes(events);
  command.add_flag("--json", options->json, "One JSON object a line: time, attempt, kind, text");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return print_logs(c, *options); };
  });
}

}  // namespace forge::app

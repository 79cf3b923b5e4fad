#include "app/run_outcomes.h"
#include "app/output.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "app/run_report.h"
#include "app/terminal.h"
#include "core/base/fs.h"
#include "core/queue/dispatch.h"
#include "core/run/supervisor.h"

namespace forge::app {
namespace {

void report_failure(const std::string& label,
                    const run::RunFolder& folder,
                    const run::RunStatus& status) {
  std::cerr << "error: " << label << " failed: " << status.reason << "\n";
  for (const std::string& line : status.stderr_lines) std::cerr << "    " << line << "\n";
  if (!status.hint.empty()) std::cerr << "hint: " << status.hint << "\n";
  std::cerr << "its whole log: " << shown_path(folder.stderr_file()) << "\n";
}

/// As the supervisor's own: a stop and a full disk have a code each.
int exit_code_of(const run::RunStatus& status) {
  if (status.state == run::RunState::completed) return run::supervised_completed;
  if (status.state == run::RunState::stopped) return run::supervised_stopped;
  return status.storage ? run::supervised_storage : run::supervised_failed;
}

void print_results(const std::vector<store::RunSummary>& runs,
                   const store::ResultStore& store,
                   const std::filesystem::path& runs_dir,
                   bool json) {
  const bool colour = use_colour(STDOUT_FILENO);
  if (json) {
    nlohmann::json list = nlohmann::json::array();
    for (const store::RunSummary& run : runs) list.push_back(to_json(run));
    print_json(list);
  } else if (runs.size() == 1) {
    std::cout << result_text(
        runs[0], store.config(runs[0].id), shown_path(runs_dir / runs[0].id), colour);
  } else {
    std::cout << result_table(runs, colour);
  }
}

/// What a command says that does not wait.
void print_queued(const std::vector<ToDo>& runs, bool json) {
  nlohmann::json list = nlohmann::json::array();
  for (const ToDo& run : runs) {
    list.push_back({{"run", run.planned.record.id},
                    {"label", run.label},
                    {"action", name_of(run.planned.action)}});
  }
  if (json) {
    print_json(list);
    return;
  }
  for (const ToDo& run : runs) std::cout << run.planned.record.id << "\n";
  std::cerr << "'forge status' shows how they stand, 'forge runs stop' stops them\n";
}

}  // namespace

int conduct_and_report(const Context& context,
                       store::ResultStore& store,
                       const std::vector<ToDo>& runs,
                       bool json) {
  const std::filesystem::path runs_dir = context.runs_dir();
  const std::vector<Outcome> outcomes = conduct(context, runs, [&](size_t) {
    for (const std::string& warning : store.sync(runs_dir).warnings)
      std::cerr << "warning: " << warning << "\n";
  });
  std::vector<store::RunSummary> results;
  int worst = run::supervised_completed;
  for (size_t i = 0; i < runs.size(); ++i) {
    const Outcome& outcome = outcomes[i];
    if (!outcome.begun) {
      std::cerr << runs[i].label << ": not started\n";
      continue;
    }
    if (outcome.status.state == run::RunState::failed)
      report_failure(runs[i].label, runs[i].planned.folder, outcome.status);
    worst = std::max(worst, exit_code_of(outcome.status));
    if (auto summary = store.run(runs[i].planned.record.id)) results.push_back(std::move(*summary));
  }
  if (worst == run::supervised_stopped)
    std::cerr << "the same command goes on from the saved checkpoint\n";
  print_results(results, store, runs_dir, json);
  return worst;
}

int leave_in_queue(const Context& context, const std::vector<ToDo>& runs, bool json) {
  queue::dispatch(context.runs_dir(), context.program());
  print_queued(runs, json);
  return 0;
}

}  // namespace forge::app

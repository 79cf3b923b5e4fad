#pragma once

#include <functional>

#include "core/protocol/messages.h"
#include "core/run/launcher.h"

namespace forge::run {

/// Runs a worker for a job that is over soon and needs no run folder (describe, evaluate, generate,
/// bench) and passes each event on as it comes. Throws Error with what is wrong and the worker's
/// last stderr lines when it breaks the protocol, says `failed`, leaves with another exit status
/// than 0 or is silent for `silence_seconds`.
void run_job(Launcher& launcher,
             const WorkerCommand& command,
             const protocol::Request& request,
             double silence_seconds,
             const std::function<void(const protocol::Event&)>& on_event);

/// The only line that a small tool prints, e.g. `git describe`; "" when it cannot be started, fails
/// or takes longer than two seconds.
std::string line_of_tool(Launcher& launcher, const std::vector<std::string>& arguments);

/// Commit of the git repository that holds `folder`, "-dirty" appended where files differ from it;
/// "" where there is none.
std::string git_revision(Launcher& launcher, const std::filesystem::path& folder);

}  // namespace forge::run

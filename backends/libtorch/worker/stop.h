#pragma once

namespace forge::worker {

/// From here on SIGTERM, SIGINT, SIGHUP and SIGUSR2 ask for a stop instead of ending the process.
void listen_for_stop();

/// Whether a stop was asked for; looked at between steps.
bool stop_requested();

}  // namespace forge::worker

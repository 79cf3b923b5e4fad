#pragma once

namespace forge::worker {

/// From here on SIGTERM, SIGINT, SIGHUP and SIGUSR2 ask for a stop instead of ending the process,
/// and SIGUSR1 for a checkpoint.
void listen_for_stop();

/// Whether a stop was asked for; looked at between steps.
bool stop_requested();

/// Whether a checkpoint was asked for since the last call; looked at between steps.
bool take_save_request();

}  // namespace forge::worker

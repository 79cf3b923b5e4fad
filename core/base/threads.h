#pragma once

#include <functional>
#include <thread>

namespace forge {

/// Starts a thread. Throws Error where this process may start no more.
std::thread start_thread(std::function<void()> work);

/// Throws Error where this process may not start that many threads at once. Libraries wait for ever
/// for threads of theirs that could not be started.
void require_threads(int count);

}  // namespace forge

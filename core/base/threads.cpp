#include "core/base/threads.h"

#include <future>
#include <optional>
#include <system_error>
#include <vector>

#include "core/base/error.h"

namespace forge {
namespace {

Error refused_threads(const std::string& what, const std::system_error& problem) {
  return system_error("start " + what,
                      problem.code().value(),
                      "this user, container or job may have so many processes and threads at once "
                      "('ulimit -u' shows one limit): end some, or raise the limit");
}

}  // namespace

std::thread start_thread(std::function<void()> work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error& problem) {
    throw refused_threads("a thread", problem);
  }
}

void require_threads(int count) {
  std::promise<void> all_started;
  const std::shared_future<void> started = all_started.get_future().share();
  std::vector<std::thread> threads;
  std::optional<Error> refusal;
  try {
    for (int i = 0; i < count; ++i) threads.emplace_back([started] { started.wait(); });
  } catch (const std::system_error& problem) {
    refusal = refused_threads(std::to_string(count) + " threads", problem);
  }
  all_started.set_value();
  for (std::thread& thread : threads) thread.join();
  if (refusal) throw Error(*refusal);
}

}  // namespace forge

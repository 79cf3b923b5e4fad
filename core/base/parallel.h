#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/progress.h"

namespace forge {

/// Cores that this process may use: a container, taskset or a cluster's scheduler may leave it
/// fewer than the machine has.
int usable_cores();

/// Their numbers, where these are not all of the machine.
std::vector<int> own_cores();

/// Calls `action(0)` … `action(count - 1)`, in any order, on all usable cores, and returns when all
/// calls have ended. What calls throw is thrown here: of several exceptions that of the lowest
/// index, whatever the order was; the calls behind it may be left out. `progress` is called after
/// each, on any of the threads, one at a time.
void parallel_for(size_t count,
                  const std::function<void(size_t)>& action,
                  const CountProgress& progress = {});

/// Runs `action` on a thread of its own or, where this process may start no more, in the thread
/// that waits for the result. The future waits in its destructor.
template <class Action>
auto run_beside(Action action) {
  // The library moves what it is given into the thread before it finds that there is none, and
  // would run what is left: an action without what it was to work on.
  const auto kept = std::make_shared<Action>(std::move(action));
  return std::async(std::launch::async | std::launch::deferred, [kept] { return (*kept)(); });
}

/// Takes pieces of work from `next` (an optional Piece), calls `make` with them on all cores, and
/// `take` with what that gave, in order, until `take` returns false or `next` gives nothing. `next`
/// and `take` are called on the calling thread. At most two pieces a core are held at a time. What
/// one of them throws is thrown here, after the calls that are under way have ended.
template <class Next, class Make, class Take>
void ordered_pipeline(const Next& next, const Make& make, const Take& take) {
  using Piece = typename decltype(next())::value_type;
  using Result = decltype(make(std::declval<const Piece&>()));
  const auto cores = static_cast<size_t>(usable_cores());
  // One call more than cores, so that none idles while a result is taken. However this function is
  // left, no call outlives it.
  std::deque<std::future<Result>> under_way;
  bool at_end = false;
  while (true) {
    while (!at_end && under_way.size() <= cores) {
      std::optional<Piece> piece = next();
      at_end = !piece;
      if (at_end) break;
      under_way.push_back(run_beside([&make, piece = std::move(*piece)] { return make(piece); }));
    }
    if (under_way.empty()) return;
    const Result result = under_way.front().get();
    under_way.pop_front();
    if (!take(result)) return;
  }
}

}  // namespace forge

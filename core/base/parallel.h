#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/progress.h"

namespace forge {

/// Cores that this process may use: a container, taskset or a cluster's scheduler may leave it
/// fewer than the machine has.
int usable_cores();

/// Calls `action(0)` … `action(count - 1)`, in any order, on all usable cores, and returns when all
/// calls have ended. What calls throw is thrown here: of several exceptions that of the lowest
/// index, whatever the order was; the calls behind it may be left out. `progress` is called after
/// each, on any of the threads, one at a time.
void parallel_for(size_t count,
                  const std::function<void(size_t)>& action,
                  const CountProgress& progress = {});

/// Takes pieces of work from `next` (an optional Piece), calls `make` with them on all cores, and
/// `take` with what that gave, in order, until `take` returns false or `next` gives nothing. `next`
/// and `take` are called on the calling thread. At most two pieces a core are held at a time. What
/// one of them throws is thrown here, after the calls that are under way have ended.
template <class Next, class Make, class Take>
void ordered_pipeline(const Next& next, const Make& make, const Take& take) {
  using Piece = typename decltype(next())::value_type;
  using Result = decltype(make(std::declval<const Piece&>()));
  const auto cores = static_cast<size_t>(usable_cores());
  // One call more than cores, so that none idles while a result is taken. A future of std::async
  // waits in its destructor: however this function is left, no call outlives it.
  std::deque<std::future<Result>> under_way;
  bool at_end = false;
  while (true) {
    while (!at_end && under_way.size() <= cores) {
      std::optional<Piece> piece = next();
      at_end = !piece;
      if (at_end) break;
      const auto call = [&make, piece = std::make_shared<const Piece>(std::move(*piece))] {
        return make(*piece);
      };
      // Where this process may start no more threads, the one that waits does the work.
      under_way.push_back(std::async(std::launch::async | std::launch::deferred, call));
    }
    if (under_way.empty()) return;
    const Result result = under_way.front().get();
    under_way.pop_front();
    if (!take(result)) return;
  }
}

}  // namespace forge

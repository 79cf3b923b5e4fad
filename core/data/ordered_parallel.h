#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <optional>
#include <thread>
#include <vector>

namespace forge::data {

/// Takes pieces of work from `next`, calls `make` with them on all cores, and `take` with what that
/// gave, in order, until `take` returns false or `next` gives nothing. `next` and `take` are called
/// on the calling thread. At most two pieces a core are held at a time. What one of them throws is
/// thrown here, after the calls that are under way have ended.
template <class Piece, class Result>
void ordered_pipeline(const std::function<std::optional<Piece>()>& next,
                      const std::function<Result(const Piece&)>& make,
                      const std::function<bool(const Result&)>& take) {
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  // One call more than cores, so that none idles while a result is taken. A future of std::async
  // waits in its destructor: however this function is left, no call outlives it.
  std::deque<std::future<Result>> under_way;
  bool at_end = false;
  while (true) {
    while (!at_end && under_way.size() <= cores) {
      std::optional<Piece> piece = next();
      at_end = !piece;
      if (at_end) break;
      under_way.push_back(std::async(std::launch::async,
                                     [&make, piece = std::move(*piece)] { return make(piece); }));
    }
    if (under_way.empty()) return;
    const Result result = under_way.front().get();
    under_way.pop_front();
    if (!take(result)) return;
  }
}

/// Calls `make(0)`, `make(1)`, … on all cores and `take` with what they gave, in order, on the
/// calling thread, until `take` returns false or `count` results are taken (count < 0: no end). At
/// most two results a core are held at a time. What either throws is thrown here, after the calls
/// that are under way have ended.
void ordered_parallel(int64_t count,
                      const std::function<std::vector<int32_t>(int64_t)>& make,
                      const std::function<bool(const std::vector<int32_t>&)>& take);

}  // namespace forge::data
